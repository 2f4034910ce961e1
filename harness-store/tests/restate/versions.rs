//! Programs that change while sessions wait, and steps that do something else the second time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use harness::Sessions;
use harness::inspect::Phase;
use harness::prelude::*;
use harness_store::restate::RestateService;

use restate_sdk::prelude::ContextTimers as _;
use restate_sdk::prelude::{HandlerError, Json, ObjectContext};
use tokio::sync::{Semaphore, mpsc};

use crate::place::{Addresses, name, run};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    text: String,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sure;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Old {
    Ask,
    Print,
}

fn old(name: &str) -> Agent<(), Doc> {
    Harness::<(), Doc>::builder("notices")
        .start(Old::Ask)
        .steps(|define, step| match step {
            Old::Ask => define
                .ask(|_, _| async { Ok(Sure) })
                .answer(|_, _, _: harness::Answered<Sure>| async { Ok(Doc::update()) })
                .then(Old::Print),
            Old::Print => define.run(|_, _| async { Ok(Doc::update().text("old")) }).end(),
        })
        .build()
        .unwrap()
        .agent(name, ())
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum New {
    Write,
}

fn new(name: &str) -> Agent<(), Doc> {
    Harness::<(), Doc>::builder("notices")
        .start(New::Write)
        .steps(|define, step| match step {
            New::Write => define.run(|_, _| async { Ok(Doc::update().text("new")) }).end(),
        })
        .build()
        .unwrap()
        .agent(name, ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_refused_by_a_loop_that_does_not_fit_and_kept() {
    let name = name("versions");
    let store = Addresses::shared().sessions(&old(&name));
    let serve = |agent: Agent<(), Doc>| RestateService::new().serve(&agent, |_| async { Ok(()) });
    let _old = run(serve(old(&name)), &store).await;
    let asked = store.run("d", "in", &Doc::update()).await.unwrap();
    let id = asked.interrupts[0].clone();
    let _new = run(serve(new(&name)), &store).await;
    let refused = store.answer("d", id.clone(), true.into(), None).await.unwrap_err();
    assert!(refused.is_conflict() && refused.to_string().contains("`Ask`"), "{refused}");
    let sessions = Sessions::new(store.clone());
    assert_eq!(sessions.status("d").await.unwrap().phase, Phase::Interrupted);
    assert_eq!(store.run("other", "in", &Doc::update()).await.unwrap().phase, Phase::Ended);
    // Inspection needs no loop; the answer waits for one that fits.
    sessions.answer_json("d", Answers::json(id, true.into())).await.unwrap();
    let _again = run(serve(old(&name)), &store).await;
    assert_eq!(store.resume("d").await.unwrap().phase, Phase::Ended);
    assert_eq!(sessions.state("d").await.unwrap()["text"], "old");
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    keys: Arc<Mutex<Vec<String>>>,
    #[slot(required)]
    entered: Arc<AtomicU32>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_does_something_else_the_second_time_contradicts_no_journal() {
    // The keys of its effects are others in each attempt, and its first attempt is dropped with its
    // process: after two effects it waits without end.
    let harness = Harness::<Ctx, Doc>::builder("one")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define
                .run(|_, cx: Cx<Ctx>| async move {
                    let attempt = cx.entered.fetch_add(1, Ordering::SeqCst);
                    for part in 0..2 {
                        let (key, keys) = (format!("{attempt}.{part}"), Arc::clone(&cx.keys));
                        let its = key.clone();
                        cx.once(&key, async move || {
                            keys.lock().unwrap().push(its);
                            Ok(())
                        })
                        .await?;
                    }
                    if attempt == 0 {
                        cx.entered.fetch_add(10, Ordering::SeqCst);
                        std::future::pending::<()>().await;
                    }
                    Ok(Doc::update().text(attempt.to_string()))
                })
                .end(),
        })
        .build()
        .unwrap();
    let (keys, entered) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
    let slots = Ctx::required().keys(Arc::clone(&keys)).entered(Arc::clone(&entered)).build();
    let agent = harness.agent(name("random"), slots);
    let mut server = crate::server::Server::start();
    let store = server.addresses().sessions(&agent);
    let service = RestateService::new().serve(&agent, |_| async { Ok(()) });
    let _running = run(service, &store).await;
    store.start("d", "in", &Doc::update()).await.unwrap();
    while entered.load(Ordering::SeqCst) < 10 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The invocation is repeated after this, with the same journal.
    server.kill();
    server.restart();
    let sessions = Sessions::new(store.clone());
    loop {
        match sessions.status("d").await {
            Ok(status) if status.phase == Phase::Ended => break,
            Ok(_) => {}
            Err(error) => assert!(error.is_not_found() || !error.is_damaged(), "{error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(sessions.state("d").await.unwrap()["text"], "11");
    assert_eq!(*keys.lock().unwrap(), ["0.0", "0.1", "11.0", "11.1"]);
    assert!(store.troubles("d").await.unwrap().is_empty());
}

/// A loop of one step, which waits if it has something to wait for.
fn writes(
    name: &str,
    text: &'static str,
    leave: Option<(mpsc::UnboundedSender<()>, Arc<Semaphore>)>,
) -> Agent<(), Doc> {
    Harness::<(), Doc>::builder("notices")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => {
                let leave = leave.clone();
                define
                    .run(move |_, _| {
                        let leave = leave.clone();
                        async move {
                            if let Some((begun, leave)) = leave {
                                begun.send(())?;
                                leave.acquire().await?.forget();
                            }
                            Ok(Doc::update().text(text))
                        }
                    })
                    .end()
            }
        })
        .build()
        .unwrap()
        .agent(name, ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_program_ends_what_it_has_begun_and_the_new_one_does_the_rest() {
    let (name, leave) = (name("drain"), Arc::new(Semaphore::new(0)));
    let (begins, mut begun) = mpsc::unbounded_channel();
    let old = writes(&name, "old", Some((begins, Arc::clone(&leave))));
    let store = Addresses::shared().sessions(&old);
    let serve = |agent: Agent<(), Doc>| RestateService::new().serve(&agent, |_| async { Ok(()) });
    let _old = run(serve(old), &store).await;
    store.start("d", "in", &Doc::update()).await.unwrap();
    let sessions = Sessions::new(store.clone());
    // It is at the old one when the new one comes.
    begun.recv().await.unwrap();
    let _new = run(serve(writes(&name, "new", None)), &store).await;
    assert_eq!(store.run("e", "in", &Doc::update()).await.unwrap().phase, Phase::Ended);
    assert_eq!(sessions.state("e").await.unwrap()["text"], "new");
    leave.add_permits(1);
    while !sessions.status("d").await.is_ok_and(|it| it.phase == Phase::Ended) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(sessions.state("d").await.unwrap()["text"], "old");
    assert_eq!(store.run("d", "in-2", &Doc::update()).await.unwrap().phase, Phase::Ended);
    assert_eq!(sessions.state("d").await.unwrap()["text"], "new");
}

/// A program that does other things than ours under the same name.
struct Mismatched;

#[restate_sdk::object]
impl Mismatched {
    #[handler]
    async fn start(
        &self,
        ctx: ObjectContext<'_>,
        _input: Json<serde_json::Value>,
    ) -> Result<(), HandlerError> {
        ctx.sleep(std::time::Duration::from_millis(1)).await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_contradicts_the_journal_of_another_one_is_reported_in_words() {
    let server = crate::server::Server::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("effects");
    let (name, port) = ("Mismatched", crate::ports::free_port());
    let store = server.addresses().sessions(&crate::orders::agent(name));
    // It dies with a journal, and the other program takes its place.
    let dies = crate::process::Service::start(name, port, &file, "before 2");
    store.register(&format!("http://127.0.0.1:{port}")).await.unwrap();
    store.start("o", "in", &crate::orders::Order::update()).await.unwrap();
    assert!(!dies.wait().success());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let endpoint = restate_sdk::endpoint::Endpoint::builder().bind(Mismatched).build();
    let server = restate_sdk::http_server::HttpServer::new(endpoint);
    tokio::spawn(server.serve_with_cancel(listener, std::future::pending::<()>()));
    let reported = async {
        loop {
            let troubles = store.troubles("o").await.unwrap();
            let ours = |it: &str| it.contains("is not the one that began it");
            if troubles.iter().any(|it| ours(&it.failure)) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), reported).await;
    assert!(waited.is_ok(), "{:?}", store.troubles("o").await);
}
