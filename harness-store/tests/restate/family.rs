//! Stops that reach children, and calls that the engine cannot keep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use harness::Sessions;
use harness::context::RuntimeSlots;
use harness::inspect::Phase;
use harness::prelude::*;
use harness::run::CallError;
use harness_store::restate::{RestateService, RestateStore};

use crate::place::{Addresses, name, rests, run, until};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    text: String,
    free: bool,
    #[state(reduce = append)]
    parts: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    End,
}

/// Whether the leaf may end, and how often it has worked.
#[derive(Clone, Default)]
struct Gate {
    open: Arc<AtomicBool>,
    times: Arc<AtomicU32>,
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    gate: Gate,
}

/// Until the gate is open, goes round, or stays in one step.
async fn wait(doc: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    cx.gate.times.fetch_add(1, Ordering::SeqCst);
    let free = cx.gate.open.load(Ordering::SeqCst);
    if !free && doc.text == "stay" {
        std::future::pending::<()>().await;
    }
    Ok(Doc::update().free(free).parts(free.then(|| "free".to_owned())))
}

fn leaf(name: &str, gate: &Gate) -> Agent<Ctx, Doc> {
    let required = Ctx::required().gate(gate.clone()).build();
    Harness::<Ctx, Doc>::builder("leaf")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define.run(wait).route(
                |doc: &Doc| if doc.free { Next::End } else { Next::Again },
                |next| match next {
                    Next::Again => to(Step::Work),
                    Next::End => end(),
                },
            ),
        })
        .budget(Budget::unbounded("the tests end it"))
        .build()
        .unwrap()
        .agent(name, required)
}

/// Hands its input to another agent. An error of the call is what it fails with.
fn above<C, R>(
    of: &str,
    child: &Agent<C, Doc>,
    slots: impl Fn() -> R + Clone + Send + Sync + 'static,
) -> Agent<(), Doc>
where
    C: Context,
    R: RuntimeSlots<C> + Send + 'static,
{
    let child = child.clone();
    Harness::<(), Doc>::builder("above")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => {
                let (child, slots) = (child.clone(), slots.clone());
                define
                    .run(move |doc: View<Doc>, cx: Cx<()>| {
                        let input = Doc::update().text(doc.text.clone());
                        let called = cx.call(&child, input, slots());
                        async move {
                            let refused = |error: CallError| {
                                let refused = error.is_refused();
                                StepError::fatal(format!("refused: {refused}: {error}"))
                            };
                            Ok(Doc::update().parts(called.await.map_err(refused)?.state.parts))
                        }
                    })
                    .end()
            }
        })
        .build()
        .unwrap()
        .agent(name(of), ())
}

/// The session that another one waits for.
async fn child_of(store: &RestateStore, session: &str) -> String {
    let status = until(store, session, |status| !status.children.is_empty()).await;
    status.children[0].session.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_reaches_the_children_and_theirs_and_a_resume_continues_them() {
    for (text, cancel) in [("round", false), ("stay", true)] {
        let gate = Gate::default();
        let leaf = leaf(&name("leaf"), &gate);
        let middle = above("middle", &leaf, || ());
        let top = above("top", &middle, || ());
        let server = Addresses::shared();
        let stores = (server.sessions(&top), server.sessions(&middle), server.sessions(&leaf));
        let service = RestateService::new()
            .serve(&top, |_| async { Ok(()) })
            .serve(&middle, |_| async { Ok(()) })
            .serve(&leaf, |_| async { Ok(()) });
        let _running = run(service, &stores.0).await;
        let waits = stores.0.run("s", "in", &Doc::update().text(text)).await.unwrap();
        assert_eq!(waits.phase, Phase::Waiting);
        let between = child_of(&stores.0, "s").await;
        let last = child_of(&stores.1, &between).await;
        while gate.times.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }

        let asked = match cancel {
            true => stores.0.cancel("s").await,
            false => stores.0.stop("s").await,
        };
        assert!(asked.unwrap(), "{text}");
        rests(&stores.2, &last, Phase::Stopped).await;
        rests(&stores.1, &between, Phase::Stopped).await;
        rests(&stores.0, "s", Phase::Stopped).await;

        gate.open.store(true, Ordering::SeqCst);
        let before = gate.times.load(Ordering::SeqCst);
        stores.0.resume("s").await.unwrap();
        rests(&stores.0, "s", Phase::Ended).await;
        let state = Sessions::new(stores.0.clone()).state("s").await.unwrap();
        assert_eq!(state["parts"], serde_json::json!(["free"]), "{text}");
        assert_eq!(gate.times.load(Ordering::SeqCst), before + 1, "{text}");
        assert_eq!(child_ended(&stores.2).await, 1, "{text}: no child was started twice");
    }
}

/// How many sessions of an agent have ended.
async fn child_ended(store: &RestateStore) -> usize {
    use harness::store::{Filter, SessionStore};
    let listed = store.list(&Filter::default(), None, 100).await.unwrap();
    assert!(listed.rows.iter().all(|row| row.summary.phase == Phase::Ended), "{listed:?}");
    listed.rows.len()
}

#[derive(Context)]
struct Given {
    #[slot(runtime)]
    word: String,
}

fn speaks() -> Agent<Given, Doc> {
    Harness::<Given, Doc>::builder("speaks")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define
                .run(|_: View<Doc>, cx: Cx<Given>| async move {
                    Ok(Doc::update().parts([cx.word.clone()]))
                })
                .end(),
        })
        .build()
        .unwrap()
        .agent(name("speaks"), ())
}

fn word(word: &str) -> <Given as Context>::Runtime {
    Given::runtime().word(word.to_owned()).build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_cannot_give_its_slots_is_refused_unless_the_service_says_whose_they_are() {
    let child = speaks();
    let server = Addresses::shared();
    for declared in [false, true] {
        let parent = above("parent", &child, || word("of the call"));
        let store = server.sessions(&parent);
        let mut service = RestateService::new()
            .serve(&parent, |_| async { Ok(()) })
            .serve(&child, |_| async { Ok(word("of the service")) });
        if declared {
            service = service.calls(child.id());
        }
        let _running = run(service, &store).await;
        store.start("s", "in", &Doc::update()).await.unwrap();
        if declared {
            rests(&store, "s", Phase::Ended).await;
            let state = Sessions::new(store).state("s").await.unwrap();
            assert_eq!(state["parts"], serde_json::json!(["of the service"]));
        } else {
            let failed = rests(&store, "s", Phase::Failed).await;
            let failed = format!("{:?}", failed.failure);
            assert!(failed.contains("refused: true"), "{failed}");
            assert!(failed.contains("runtime slots"), "{failed}");
            assert!(failed.contains(".calls(agent.id())"), "{failed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_no_service_runs_is_refused_or_reported() {
    let child = leaf(&name("leaf"), &Gate::default());
    let server = Addresses::shared();
    let parent = above("parent", &child, || ());
    let store = server.sessions(&parent);
    let alone = || RestateService::new().serve(&parent, |_| async { Ok(()) });
    {
        let _running = run(alone(), &store).await;
        store.start("s", "in", &Doc::update()).await.unwrap();
        let failed = format!("{:?}", rests(&store, "s", Phase::Failed).await.failure);
        assert!(failed.contains("refused: true"), "{failed}");
        assert!(failed.contains("this service does not serve it"), "{failed}");
    }

    // Another service of the server should serve it, and there is none.
    let _running = run(alone().calls(child.id()), &store).await;
    store.start("t", "in", &Doc::update()).await.unwrap();
    let trouble = tokio::time::timeout(Duration::from_secs(40), async {
        loop {
            if let Some(trouble) = store.troubles("t").await.unwrap().into_iter().next() {
                break trouble;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let trouble = trouble.await.expect("nothing is reported");
    let words = format!("calls agent `{}`, and no service of the server serves it", child.id());
    assert!(trouble.failure.contains(&words), "{trouble:?}");

    // One that comes later runs it, and nothing is lost.
    let gate = Gate::default();
    gate.open.store(true, Ordering::SeqCst);
    let late = leaf(child.id().as_str(), &gate);
    let leaves = server.sessions(&late);
    let _late = run(RestateService::new().serve(&late, |_| async { Ok(()) }), &leaves).await;
    rests(&store, "t", Phase::Ended).await;
}
