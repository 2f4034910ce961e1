//! Services in processes of their own, which are killed; and a server that is killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness::Sessions;
use harness::inspect::Phase;
use harness::observe::{self, Event};
use harness::prelude::*;
use harness_store::restate::{RestateService, RestateStore};
use tokio::sync::mpsc;

use crate::orders::{Death, Order, World, agent, die, effects, expected, slots};
use crate::place::{Addresses, name, run};
use crate::ports::free_port;
use crate::server::Server;

/// The test that is a service, in a process of its own.
const SERVICE: &str = "process::a_service_in_a_process_of_its_own";

#[test]
#[ignore = "it is what the other tests start"]
fn a_service_in_a_process_of_its_own() {
    let Ok(arguments) = std::env::var("HARNESS_SERVICE") else { return };
    let [name, port, file, death] = serde_json::from_str::<[String; 4]>(&arguments).unwrap();
    let (world, mut dies) = (World::new(file), None);
    let world = match death.split_once(' ') {
        Some(("before", at)) => world.dies(Death::Before(at.parse().unwrap())),
        Some(("after", at)) => world.dies(Death::After(at.parse().unwrap())),
        Some((event, at)) => {
            dies = Some((event.to_owned(), at.parse::<usize>().unwrap()));
            world
        }
        None => world,
    };
    let seen = AtomicUsize::new(0);
    let observer = move |event: &Event| {
        // An event of a commit comes when that is journalled.
        let is_it = |(what, at): &(String, usize)| {
            let found = event.to_string().contains(&format!(" {what}"));
            found && seen.fetch_add(1, Ordering::SeqCst) + 1 == *at
        };
        if !event.to_string().starts_with("run") && dies.as_ref().is_some_and(is_it) {
            die();
        }
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(async move {
            let agent = agent(&name).observe(observe::from_fn(observer));
            let service = RestateService::new().serve(&agent, move |_| {
                let slots = slots(&world);
                async move { Ok(slots) }
            });
            let address = format!("127.0.0.1:{port}").parse().unwrap();
            let listener = service.listen(address).await.unwrap();
            println!("\nlistens");
            listener.run_until(std::future::pending::<()>()).await;
        });
}

/// A service that is a process. It is killed when it is dropped.
pub(crate) struct Service(Child);

impl Service {
    pub(crate) fn start(name: &str, port: u16, world: &Path, death: &str) -> Self {
        let arguments = [name, &port.to_string(), world.to_str().unwrap(), death];
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([SERVICE, "--exact", "--ignored", "--nocapture"])
            .env("HARNESS_SERVICE", serde_json::to_string(&arguments).unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        assert!(lines.any(|line| line == "listens"));
        Self(process)
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn phase(store: &RestateStore, session: &str, phase: Phase) {
    let sessions = Sessions::new(store.clone());
    tokio::time::timeout(Duration::from_secs(60), async {
        while !sessions.status(session).await.is_ok_and(|status| status.phase == phase) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("`{session}` never was {phase:?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_killed_anywhere_repeats_only_what_has_no_result() {
    let effects_at = (1..=6).flat_map(|at| [("before", at), ("after", at)]);
    // The first step is entered again after its question.
    let boundaries = (1..=4).map(|at| ("started", at)).chain((1..=3).map(|at| ("committed", at)));
    let deaths = effects_at.chain(boundaries);
    for (when, at) in deaths {
        let (dir, port, name) = (tempfile::tempdir().unwrap(), free_port(), name("killed"));
        let file = dir.path().join("effects");
        let store = Addresses::shared().sessions(&agent(&name));
        let dies = Service::start(&name, port, &file, &format!("{when} {at}"));
        store.register(&format!("http://127.0.0.1:{port}")).await.unwrap();
        store.start("o", "in", &Order::update()).await.unwrap();
        let answer = async |_: &Service| {
            phase(&store, "o", Phase::Interrupted).await;
            let sessions = Sessions::new(store.clone());
            let id = sessions.status("o").await.unwrap().questions[0].id.clone();
            store.leave_answer("o", id, true.into(), None).await.unwrap();
        };
        let asked = match when {
            "started" => at > 1,
            "committed" => true,
            _ => at > 2,
        };
        if asked {
            answer(&dies).await;
        }
        let status = dies.wait();
        assert!(!status.success(), "it must die: {when} {at}");
        let lives = Service::start(&name, port, &file, "");
        if !asked {
            answer(&lives).await;
        }
        phase(&store, "o", Phase::Ended).await;
        let state = Sessions::new(store.clone()).state("o").await.unwrap();
        assert_eq!(state, serde_json::to_value(expected()).unwrap(), "{when} {at}");
        let mut lines = World::new(&file).lines();
        lines.sort();
        let made = lines.len();
        lines.dedup();
        assert_eq!(lines, effects(), "{when} {at}");
        let again = usize::from(when == "after");
        assert_eq!(made - lines.len(), again, "{when} {at}: {:?}", World::new(&file).lines());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_while_the_service_is_down_is_applied_by_another_process() {
    let (dir, port, name) = (tempfile::tempdir().unwrap(), free_port(), name("down"));
    let file = dir.path().join("effects");
    let store = Addresses::shared().sessions(&agent(&name));
    let first = Service::start(&name, port, &file, "");
    store.register(&format!("http://127.0.0.1:{port}")).await.unwrap();
    let asked = store.run("o", "in", &Order::update()).await.unwrap();
    drop(first);
    // It is inspected without the service, too.
    let sessions = Sessions::new(store.clone());
    assert_eq!(sessions.status("o").await.unwrap().questions.len(), 1);
    let id = asked.interrupts[0].clone();
    store.leave_answer("o", id, true.into(), Some("sam")).await.unwrap();
    let _second = Service::start(&name, port, &file, "");
    phase(&store, "o", Phase::Ended).await;
    let mut lines = World::new(&file).lines();
    lines.sort();
    assert_eq!(lines, effects());
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    times: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
}

#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Entered,
    Left,
    Dropped,
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    seen: mpsc::UnboundedSender<Seen>,
    #[slot(required)]
    leave: Arc<tokio::sync::Semaphore>,
}

/// Says that it was dropped, if it was not forgotten.
struct Guard(mpsc::UnboundedSender<Seen>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(Seen::Dropped);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_ends_what_is_at_work_and_repeats_it() {
    let mut server = Server::start();
    let harness = Harness::<Ctx, Doc>::builder("one")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define
                .run(|doc: View<Doc>, cx: Cx<Ctx>| async move {
                    cx.once("first", async || Ok(())).await?;
                    let guard = Guard(cx.seen.clone());
                    cx.seen.send(Seen::Entered).unwrap();
                    cx.leave.acquire().await.unwrap().forget();
                    std::mem::forget(guard);
                    cx.seen.send(Seen::Left).unwrap();
                    Ok(Doc::update().times(doc.times + 1))
                })
                .end(),
        })
        .build()
        .unwrap();
    let (seen, mut sees) = mpsc::unbounded_channel();
    let leave = Arc::new(tokio::sync::Semaphore::new(0));
    let agent = harness.agent("one", Ctx::required().seen(seen).leave(Arc::clone(&leave)).build());
    let store = server.addresses().sessions(&agent);
    let service = RestateService::new().serve(&agent, |_| async { Ok(()) });
    let _running = run(service, &store).await;
    store.start("d", "in", &Doc::update()).await.unwrap();
    assert_eq!(sees.recv().await, Some(Seen::Entered));
    server.kill();
    // No work is done that no engine knows of.
    assert_eq!(sees.recv().await, Some(Seen::Dropped));
    server.restart();
    assert_eq!(sees.recv().await, Some(Seen::Entered));
    leave.add_permits(1);
    assert_eq!(sees.recv().await, Some(Seen::Left));
    phase(&store, "d", Phase::Ended).await;
    assert_eq!(Sessions::new(store).state("d").await.unwrap()["times"], 1);
    assert!(sees.try_recv().is_err());
}
