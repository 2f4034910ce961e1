//! Steps that call other agents: a child is a session of its own, which the engine runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::Sessions;
use harness::inspect::{Filter, Phase};
use harness::prelude::*;
use harness_store::restate::{RestateService, RestateStore};
use tokio::sync::watch;

use crate::place::{Addresses, name, rests, run};
use crate::server::Server;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    text: String,
    #[state(reduce = append)]
    parts: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Clear {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    times: Arc<AtomicU32>,
    /// Open once it is true.
    #[slot(required)]
    gate: watch::Sender<bool>,
}

/// Waits for the gate, asks, fails, or ends at once.
async fn legal(doc: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    let times = Arc::clone(&cx.times);
    let read = async move || Ok(times.fetch_add(1, Ordering::SeqCst));
    cx.once("read", read).await?;
    if doc.text == "wait" {
        let mut gate = cx.gate.subscribe();
        gate.wait_for(|open| *open).await.map_err(StepError::fatal)?;
    }
    if doc.text == "burn" {
        return Err(StepError::fatal("the paper burns"));
    }
    if doc.text == "ask" {
        let clear = cx.ask("clear", Clear { text: doc.text.clone() }).await?;
        return Ok(Doc::update().parts([format!("{} {clear}", doc.text)]));
    }
    Ok(Doc::update().parts([format!("{} read", doc.text)]))
}

fn child(name: &str, times: &Arc<AtomicU32>) -> Agent<Ctx, Doc> {
    gated(name, times, &watch::Sender::new(true))
}

fn gated(name: &str, times: &Arc<AtomicU32>, gate: &watch::Sender<bool>) -> Agent<Ctx, Doc> {
    Harness::<Ctx, Doc>::builder("legal")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define.run(legal).end(),
        })
        .build()
        .unwrap()
        .agent(name, Ctx::required().times(Arc::clone(times)).gate(gate.clone()).build())
}

/// Calls the child for each word, all at once.
fn parent(name: &str, child: &Agent<Ctx, Doc>) -> Agent<(), Doc> {
    let child = child.clone();
    Harness::<(), Doc>::builder("posts")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => {
                let child = child.clone();
                define
                    .each(|doc: View<Doc>, _| async move {
                        Ok(doc.text.split(' ').map(str::to_owned).collect::<Vec<_>>())
                    })
                    .run(move |word: String, _, cx: Cx<()>| {
                        let child = child.clone();
                        async move {
                            let called = cx.call(&child, Doc::update().text(word), ()).await?;
                            Ok(called.state.parts.concat())
                        }
                    })
                    .fold(|_, parts: Vec<String>| Ok(Doc::update().parts(parts)))
                    .end()
            }
        })
        .build()
        .unwrap()
        .agent(name, ())
}

fn serve(parent: &Agent<(), Doc>, child: &Agent<Ctx, Doc>) -> RestateService {
    RestateService::new().serve(parent, |_| async { Ok(()) }).serve(child, |_| async { Ok(()) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_are_sessions_of_the_engine_and_run_once() {
    let times = Arc::new(AtomicU32::new(0));
    let child = child(&name("legal"), &times);
    let parent = parent(&name("posts"), &child);
    let server = Addresses::shared();
    let (posts, legals) = (server.sessions(&parent), server.sessions(&child));
    let _running = run(serve(&parent, &child), &posts).await;
    let input = Doc::update().text("one ask two");
    let waits = posts.run("p", "in", &input).await.unwrap();
    assert_eq!(waits.phase, Phase::Waiting);

    // The question stands in the session of the child, and is answered there.
    let sessions = Sessions::new(legals.clone());
    let asks = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let open = sessions.pending_interrupts().await.unwrap().rows;
            if let Some(row) = open.into_iter().next() {
                break row;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let asks = asks.await.expect("the child never asked");
    assert_eq!(asks.interrupt.question["text"], "ask");
    let asked = asks.interrupt.id.clone();
    legals.answer(asks.session.as_str(), asked, true.into(), Some("kim")).await.unwrap();
    rests(&posts, "p", Phase::Ended).await;
    let state = Sessions::new(posts.clone()).state("p").await.unwrap();
    assert_eq!(state["parts"], serde_json::json!(["one read", "ask true", "two read"]));
    assert_eq!(times.load(Ordering::SeqCst), 3);
    assert!(posts.troubles("p").await.unwrap().is_empty());

    // A child that fails is an error in the step that called it.
    let failed = posts.start("q", "in", &Doc::update().text("burn")).await;
    failed.unwrap();
    let status = rests(&posts, "q", Phase::Failed).await;
    assert!(format!("{status:?}").contains("the paper burns"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_is_started_once_although_the_server_is_killed() {
    let times = Arc::new(AtomicU32::new(0));
    let child = child("legal", &times);
    let parent = parent("posts", &child);
    let mut server = Server::start();
    let (posts, legals) =
        (server.addresses().sessions(&parent), server.addresses().sessions(&child));
    let _running = run(serve(&parent, &child), &posts).await;
    posts.run("p", "in", &Doc::update().text("ask one")).await.unwrap();
    let sessions = Sessions::new(legals.clone());
    while sessions.pending_interrupts().await.map_or(0, |open| open.rows.len()) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.kill();
    server.restart();
    let open = loop {
        match sessions.pending_interrupts().await {
            Ok(open) if !open.rows.is_empty() => break open.rows,
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let asked = open[0].interrupt.id.clone();
    legals.leave_answer(open[0].session.as_str(), asked, true.into(), None).await.unwrap();
    rests(&posts, "p", Phase::Ended).await;
    let state = Sessions::new(posts).state("p").await.unwrap();
    assert_eq!(state["parts"], serde_json::json!(["ask true", "one read"]));
    assert_eq!(times.load(Ordering::SeqCst), 2);
}

/// The phase that the child with this text is in; `None` before it exists.
async fn phase_of(legals: &RestateStore, text: &str) -> Option<(String, Phase)> {
    let sessions = Sessions::new(legals.clone());
    for row in sessions.all(&Filter::sessions()).await.unwrap() {
        let id = row.session.to_string();
        if sessions.state(&*id).await.is_ok_and(|state| state["text"] == text) {
            return Some((id, row.phase));
        }
    }
    None
}

async fn child_rests(legals: &RestateStore, text: &str, phase: Phase) -> String {
    let wait = async {
        loop {
            match phase_of(legals, text).await {
                Some((id, found)) if found == phase => break id,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), wait).await;
    found.unwrap_or_else(|_| panic!("the child `{text}` never was {phase:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_of_the_parent_stops_its_children_and_a_resume_continues_them() {
    for cancel in [true, false] {
        let (times, gate) = (Arc::new(AtomicU32::new(0)), watch::Sender::new(false));
        let child = gated(&name("legal"), &times, &gate);
        let parent = parent(&name("posts"), &child);
        let server = Addresses::shared();
        let (posts, legals) = (server.sessions(&parent), server.sessions(&child));
        let _running = run(serve(&parent, &child), &posts).await;
        posts.run("p", "in", &Doc::update().text("wait ask one")).await.unwrap();
        // The effect of each child comes before its gate and its question.
        while times.load(Ordering::SeqCst) < 3 || gate.receiver_count() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        child_rests(&legals, "ask", Phase::Interrupted).await;
        child_rests(&legals, "one", Phase::Ended).await;
        let stopped = match cancel {
            true => posts.cancel("p").await,
            false => posts.stop("p").await,
        };
        assert!(stopped.unwrap());
        rests(&posts, "p", Phase::Stopped).await;
        match cancel {
            // In the middle of its step.
            true => drop(child_rests(&legals, "wait", Phase::Stopped).await),
            // Its step is its last one: its turn is over when the gate opens.
            false => {
                gate.send_replace(true);
                child_rests(&legals, "wait", Phase::Ended).await;
            }
        }
        rests(&posts, "p", Phase::Stopped).await;

        gate.send_replace(true);
        posts.resume("p").await.unwrap();
        child_rests(&legals, "wait", Phase::Ended).await;
        let asks = child_rests(&legals, "ask", Phase::Interrupted).await;
        let open = Sessions::new(legals.clone()).pending_interrupts().await.unwrap().rows;
        let open = open.into_iter().find(|row| row.session.as_str() == asks).unwrap();
        legals.answer(&asks, open.interrupt.id, true.into(), None).await.unwrap();
        rests(&posts, "p", Phase::Ended).await;
        let state = Sessions::new(posts.clone()).state("p").await.unwrap();
        assert_eq!(state["parts"], serde_json::json!(["wait read", "ask true", "one read"]));
        assert_eq!(times.load(Ordering::SeqCst), 3, "effects of stopped children happen once");
        assert!(posts.troubles("p").await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_of_a_parent_that_asks_stops_its_children() {
    let (times, gate) = (Arc::new(AtomicU32::new(0)), watch::Sender::new(false));
    let child = gated(&name("legal"), &times, &gate);
    let called = child.clone();
    let parent = Harness::<(), Doc>::builder("asks")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => {
                let child = called.clone();
                define
                    .run(move |_, cx: Cx<()>| {
                        let child = child.clone();
                        async move {
                            let clear = cx.ask("clear", Clear { text: "own".to_owned() });
                            let call = cx.call(&child, Doc::update().text("wait"), ());
                            let (clear, called) = tokio::join!(clear, call);
                            Ok(Doc::update()
                                .parts([format!("{} {}", clear?, called?.state.parts[0])]))
                        }
                    })
                    .end()
            }
        })
        .build()
        .unwrap()
        .agent(name("asks"), ());
    let server = Addresses::shared();
    let (asks, legals) = (server.sessions(&parent), server.sessions(&child));
    let _running = run(serve(&parent, &child), &asks).await;
    let asked = asks.run("p", "in", &Doc::update()).await.unwrap();
    assert_eq!(asked.phase, Phase::Interrupted);
    while times.load(Ordering::SeqCst) < 1 || gate.receiver_count() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(asks.cancel("p").await.unwrap());
    child_rests(&legals, "wait", Phase::Stopped).await;
    rests(&asks, "p", Phase::Interrupted).await;

    // Its answer continues both.
    gate.send_replace(true);
    asks.answer("p", asked.interrupts[0].clone(), true.into(), None).await.unwrap();
    rests(&asks, "p", Phase::Ended).await;
    let state = Sessions::new(asks).state("p").await.unwrap();
    assert_eq!(state["parts"], serde_json::json!(["true wait read"]));
    assert_eq!(times.load(Ordering::SeqCst), 1);
}
