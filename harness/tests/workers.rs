//! Workers: which sessions they find, that two never run one, and what becomes of those they cannot
//! run.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use harness::prelude::*;
use harness::store::{MemoryStore, Phase, ReadRequest, SessionStore as _};
use harness::testing::{Call, Faulty};
use harness::worker::{Worker, WorkerError};
use harness::{Agent, FailureKind, Sessions};
use tokio::sync::{Notify, Semaphore};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Gate {
    Ask,
    GiveUp,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Approve;

type DocAgent = Agent<(), Doc>;

fn said(line: &str) -> DocUpdate {
    Doc::update().lines([line.to_owned()])
}

/// An agent whose one step is `work`.
fn agent<F, Fut>(work: F) -> DocAgent
where
    F: Fn(View<Doc>, Cx<()>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = StepResult<Doc>> + Send + 'static,
{
    let harness = Harness::<(), Doc>::builder("doc")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define.run(work.clone()).end(),
        })
        .build()
        .unwrap();
    harness.agent("doc", ())
}

async fn give_up(_: View<Doc>, _: Cx<()>) -> StepResult<Doc> {
    Ok(said("no answer came"))
}

fn done() -> DocAgent {
    agent(|doc: View<Doc>, _| async move {
        let last = doc.lines.last().cloned().unwrap_or_default();
        Ok(said(&format!("done {last}")))
    })
}

fn serve(agent: &DocAgent) -> Worker {
    Worker::new().serve(agent, |_| async { Ok(()) })
}

async fn phase(store: &MemoryStore, session: &str) -> Phase {
    let id = harness::SessionId::new(session).unwrap();
    store.read(&id, ReadRequest::summary()).await.unwrap().unwrap().summary.phase
}

/// Waits, by the clock of the runtime, until `holds`.
async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    for _ in 0..2_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still not: {what}");
}

#[tokio::test(start_paused = true)]
async fn an_input_that_is_queued_begins_a_session_and_its_giver_gets_its_own_outcome() {
    let store = MemoryStore::new();
    let agent = done().store(store.clone());
    let first = agent.enqueue("s", said("one")).input_id("1").await.unwrap();
    let second = agent.enqueue("s", said("two")).input_id("2").await.unwrap();
    // Again, and another one under its id.
    let again = agent.enqueue("s", said("one")).input_id("1").await.unwrap();
    let other = agent.enqueue("s", said("three")).input_id("1").await.unwrap_err();
    assert!(other.is_input_conflict(), "{other}");
    assert_eq!(phase(&store, "s").await, Phase::Ended);
    let worker = serve(&agent).start().unwrap();
    let ended = second.outcome().await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["one", "done one", "two", "done two"]);
    for queued in [first, again] {
        let ended = queued.outcome().await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["one", "done one"], "a later turn has begun since");
    }
    // Another process knows the input only by its id.
    let elsewhere = done().store(store.clone());
    let queued = elsewhere.enqueue("s", said("two")).input_id("2").await.unwrap();
    assert_eq!(queued.outcome().await.unwrap().ended().unwrap().state.lines.len(), 4);
    worker.drain().await;
    let ended = agent.state_at("s", store_head(&store, "s").await).await.unwrap();
    assert_eq!(ended.lines.len(), 4, "each input was applied once");
}

async fn store_head(store: &MemoryStore, session: &str) -> harness::Seq {
    let id = harness::SessionId::new(session).unwrap();
    store.read(&id, ReadRequest::summary()).await.unwrap().unwrap().head
}

#[tokio::test]
async fn what_a_worker_that_lost_its_store_had_in_flight_continues_elsewhere() {
    const SESSIONS: usize = 20;
    let memory = MemoryStore::new();
    let first = Arc::new(AtomicBool::new(true));
    let (entered, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let work = {
        let (first, entered, ran) = (first.clone(), entered.clone(), ran.clone());
        move |_: View<Doc>, _: Cx<()>| {
            let (first, entered, ran) = (first.clone(), entered.clone(), ran.clone());
            async move {
                if first.load(Ordering::SeqCst) {
                    entered.add_permits(1);
                    pending::<()>().await;
                }
                ran.fetch_add(1, Ordering::SeqCst);
                Ok(said("done"))
            }
        }
    };
    let lease = Duration::from_millis(600);
    let cut = Faulty::new(memory.clone());
    let faults = cut.faults();
    let lost = agent(work.clone()).store(cut).lease(lease);
    for session in 0..SESSIONS {
        lost.enqueue(format!("s{session}"), said("go")).await.unwrap();
    }
    let worker = serve(&lost).start().unwrap();
    let _ = entered.acquire_many(SESSIONS as u32).await.unwrap();
    // As if its process had ended: it writes and renews nothing more.
    for call in [Call::Renew, Call::Append, Call::Release, Call::Claim, Call::ClaimDue, Call::Send]
    {
        faults.before(call, |_| true);
    }
    first.store(false, Ordering::SeqCst);
    let begun = Instant::now();
    let alive = agent(work).store(memory.clone()).lease(lease);
    let other = serve(&alive).start().unwrap();
    for session in 0..SESSIONS {
        let name = format!("s{session}");
        until(&name, async || phase(&memory, &name).await == Phase::Ended).await;
    }
    let took = begun.elapsed();
    assert!(took < lease + Duration::from_secs(2), "it took {took:?}");
    assert_eq!(ran.load(Ordering::SeqCst), SESSIONS as u32, "each once");
    other.drain().await;
    drop(worker);
}

fn asking() -> DocAgent {
    agent(|_: View<Doc>, cx: Cx<()>| async move {
        let yes = cx.ask("approve", Approve).await?;
        Ok(said(if yes { "approved" } else { "refused" }))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_workers_one_runs_what_was_approved() {
    const SESSIONS: usize = 200;
    let store = MemoryStore::new();
    let runs: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    let asking = {
        let runs = runs.clone();
        agent(move |_: View<Doc>, cx: Cx<()>| {
            let runs = runs.clone();
            async move {
                cx.ask("approve", Approve).await?;
                let session = cx.session_id().to_string();
                *runs.lock().unwrap().entry(session).or_default() += 1;
                Ok(said("approved"))
            }
        })
    };
    let agent = asking.store(store.clone());
    let workers = [serve(&agent).start().unwrap(), serve(&agent).start().unwrap()];
    let sessions = Sessions::new(store.clone());
    let mut queued = Vec::new();
    for session in 0..SESSIONS {
        queued.push(agent.enqueue(format!("s{session}"), said("go")).await.unwrap());
    }
    for queued in &queued {
        let outcome = queued.outcome().await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let yes = Answers::json(waiting.questions[0].id.clone(), true.into());
        let (id, sessions) = (queued.session.clone(), sessions.clone());
        sessions.answer_json(&id, yes).await.unwrap();
    }
    for queued in &queued {
        until("it ended", async || phase(&store, queued.session.as_str()).await == Phase::Ended)
            .await;
        let ended = queued.outcome().await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["go", "approved"]);
    }
    for worker in workers {
        assert_eq!(worker.failed(), []);
        worker.drain().await;
    }
    let runs = runs.lock().unwrap();
    assert!(runs.len() == SESSIONS && runs.values().all(|runs| *runs == 1), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_in_time_is_given_up() {
    let store = MemoryStore::new();
    let harness = Harness::<(), Doc>::builder("doc")
        .start(Gate::Ask)
        .steps(|define, step| match step {
            Gate::Ask => define
                .ask(|_doc, _cx| async move { Ok(Approve) })
                .answer(|_doc, _cx, _said| async move { Ok(said("approved")) })
                .expires(Duration::from_secs(3_600), Gate::GiveUp)
                .end(),
            Gate::GiveUp => define.run(give_up).end(),
        })
        .build()
        .unwrap();
    let agent = harness.agent("doc", ()).store(store.clone());
    let worker = serve(&agent).start().unwrap();
    let queued = agent.enqueue("s", said("go")).await.unwrap();
    let waiting = queued.outcome().await.unwrap();
    assert!(matches!(waiting, Outcome::Interrupted(_)), "{waiting:?}");
    tokio::time::sleep(Duration::from_secs(3_500)).await;
    assert_eq!(phase(&store, "s").await, Phase::Interrupted);
    // Its clock jumps.
    tokio::time::advance(Duration::from_secs(100_000)).await;
    until("it expired", async || phase(&store, "s").await == Phase::Ended).await;
    assert_eq!(worker.failed(), []);
    worker.drain().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_asks_its_store_once_a_second_and_an_input_wakes_it() {
    let store = Faulty::new(MemoryStore::new());
    let faults = store.faults();
    let agent = done().store(store);
    agent.run(said("settled"), ()).session("other").await.unwrap();
    let worker = serve(&agent).start().unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let asked = faults.calls(Call::ClaimDue);
    assert!((59..=62).contains(&asked), "{asked} calls in a minute");
    let begun = tokio::time::Instant::now();
    let queued = agent.enqueue("s", said("go")).await.unwrap();
    queued.outcome().await.unwrap().ended().unwrap();
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    worker.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_finishes_what_runs_and_begins_nothing() {
    let store = MemoryStore::new();
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (entered, go) = (entered.clone(), go.clone());
        agent(move |_: View<Doc>, _| {
            let (entered, go) = (entered.clone(), go.clone());
            async move {
                entered.notify_one();
                go.notified().await;
                Ok(said("done"))
            }
        })
    };
    let agent = slow.store(store.clone());
    agent.enqueue("a", said("go")).await.unwrap();
    let worker = serve(&agent).at_most(1).start().unwrap();
    entered.notified().await;
    agent.enqueue("b", said("go")).await.unwrap();
    let drained = tokio::spawn(worker.drain());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!drained.is_finished(), "it waits for the run");
    go.notify_one();
    drained.await.unwrap();
    assert_eq!(phase(&store, "a").await, Phase::Ended);
    assert_eq!(store_head(&store, "b").await, harness::Seq(1), "nothing but its beginning");
}

#[tokio::test(start_paused = true)]
async fn no_more_sessions_run_at_once_than_there_is_room_for() {
    let store = MemoryStore::new();
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counting = {
        let (now, most) = (now.clone(), most.clone());
        agent(move |_: View<Doc>, _| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(said("done"))
            }
        })
    };
    let agent = counting.store(store.clone());
    let mut queued = Vec::new();
    for session in 0..20 {
        queued.push(agent.enqueue(format!("s{session}"), said("go")).await.unwrap());
    }
    let slots = |_| async { Ok(()) };
    let worker = Worker::new().at_most(8).serve_at_most(3, &agent, slots).start().unwrap();
    for queued in queued {
        queued.outcome().await.unwrap().ended().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    worker.drain().await;
}

#[tokio::test(start_paused = true)]
async fn slots_that_cannot_be_made_are_tried_again_more_and_more_rarely() {
    let store = MemoryStore::new();
    let agent = done().store(store.clone());
    let (tries, broken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(true)));
    let worker = {
        let (tries, broken) = (tries.clone(), broken.clone());
        Worker::new().serve(&agent, move |_| {
            let (tries, broken) = (tries.clone(), broken.clone());
            async move {
                tries.fetch_add(1, Ordering::SeqCst);
                match broken.load(Ordering::SeqCst) {
                    true => Err("no connection to the printer".into()),
                    false => Ok(()),
                }
            }
        })
    };
    let worker = worker.start().unwrap();
    let queued = agent.enqueue("s", said("go")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let tried = tries.load(Ordering::SeqCst);
    assert!((4..=7).contains(&tried), "{tried} tries in a minute");
    let [failed] = &worker.failed()[..] else { panic!("{:?}", worker.failed()) };
    assert!(failed.reason.contains("printer") && failed.tries == tried, "{failed:?}");
    // Another session does not wait for it.
    broken.store(false, Ordering::SeqCst);
    let begun = tokio::time::Instant::now();
    let other = agent.enqueue("other", said("go")).await.unwrap();
    other.outcome().await.unwrap().ended().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    queued.outcome().await.unwrap().ended().unwrap();
    assert_eq!(worker.failed(), []);
    worker.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_input_of_a_turn_that_failed_does_not_keep_workers_busy() {
    let memory = MemoryStore::new();
    let store = Faulty::new(memory.clone());
    let faults = store.faults();
    let failing = agent(|_: View<Doc>, _| async move {
        Err::<DocUpdate, _>(StepError::fatal("it does not work"))
    });
    let agent = failing.store(store);
    let first = agent.enqueue("s", said("one")).await.unwrap();
    agent.enqueue("s", said("two")).await.unwrap();
    let worker = serve(&agent).start().unwrap();
    let outcome = first.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    agent.enqueue("s", said("three")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = faults.calls(Call::Release);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(faults.calls(Call::Release), before, "nothing was claimed");
    worker.drain().await;
}

#[tokio::test]
async fn a_session_that_keeps_ending_its_worker_fails() {
    let memory = MemoryStore::new();
    let tried = Arc::new(AtomicU32::new(0));
    let entered = Arc::new(Notify::new());
    let deadly = {
        let (tried, entered) = (tried.clone(), entered.clone());
        agent(move |_: View<Doc>, _| {
            let (tried, entered) = (tried.clone(), entered.clone());
            async move {
                tried.fetch_add(1, Ordering::SeqCst);
                entered.notify_one();
                pending().await
            }
        })
    };
    let lease = Duration::from_millis(50);
    let queued = deadly.clone().store(memory.clone()).enqueue("s", said("go")).await.unwrap();
    for _ in 0..5 {
        let store = Faulty::new(memory.clone());
        let faults = store.faults();
        let agent = deadly.clone().store(store).lease(lease);
        let worker = serve(&agent).start().unwrap();
        entered.notified().await;
        for call in [Call::Renew, Call::Append, Call::Release, Call::ClaimDue, Call::Claim] {
            faults.before(call, |_| true);
        }
        drop(worker);
    }
    let agent = deadly.store(memory.clone()).lease(lease);
    let worker = serve(&agent).start().unwrap();
    let Outcome::Failed(failed) = queued.outcome().await.unwrap() else { panic!() };
    assert_eq!(failed.failure.kind, FailureKind::CrashLoop);
    assert_eq!(tried.load(Ordering::SeqCst), 5);
    assert!(worker.failed()[0].reason.contains("5 runs in a row"), "{:?}", worker.failed());
    worker.drain().await;
}

#[tokio::test]
async fn a_run_that_is_dropped_with_its_runtime_is_continued() {
    let memory = MemoryStore::new();
    let first = Arc::new(AtomicBool::new(true));
    let work = {
        let first = first.clone();
        agent(move |_: View<Doc>, _| {
            let first = first.clone();
            async move {
                if first.swap(false, Ordering::SeqCst) {
                    pending::<()>().await;
                }
                Ok(said("done"))
            }
        })
    };
    let agent = work.store(memory.clone());
    let own = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let worker = {
        let _own = own.enter();
        serve(&agent).start().unwrap()
    };
    let queued = agent.enqueue("s", said("go")).await.unwrap();
    until("it runs", async || !first.load(Ordering::SeqCst)).await;
    own.shutdown_background();
    let other = serve(&agent).start().unwrap();
    let ended = queued.outcome().await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["go", "done"]);
    other.drain().await;
    drop(worker);
}

#[tokio::test]
async fn a_worker_that_serves_nothing_does_not_start() {
    let none = Worker::new().start().unwrap_err();
    assert!(matches!(none, WorkerError::NoAgent), "{none}");
    let homeless = serve(&done()).start().unwrap_err();
    assert!(matches!(homeless, WorkerError::NoStore { .. }), "{homeless}");
    let store: Arc<dyn harness::store::SessionStore> = Arc::new(MemoryStore::new());
    let agent = done().shared_store(store);
    let slots = |_| async { Ok(()) };
    let twice = serve(&agent).serve(&agent, slots).start().unwrap_err();
    assert!(matches!(twice, WorkerError::ServedTwice { .. }), "{twice}");
    let unstored = done().enqueue("s", said("go")).await.unwrap_err();
    assert!(unstored.to_string().contains("store"), "{unstored}");
}

#[tokio::test(start_paused = true)]
async fn an_input_that_an_asking_session_has_waits_for_the_answer() {
    let store = MemoryStore::new();
    let agent = asking().store(store.clone());
    let worker = serve(&agent).start().unwrap();
    let first = agent.enqueue("s", said("one")).await.unwrap();
    let Outcome::Interrupted(waiting) = first.outcome().await.unwrap() else { panic!() };
    let second = agent.enqueue("s", said("two")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let yes = Answers::json(waiting.questions[0].id.clone(), true.into());
    Sessions::new(store.clone()).answer_json("s", yes).await.unwrap();
    let Outcome::Interrupted(waiting) = second.outcome().await.unwrap() else { panic!() };
    assert_eq!(waiting.state.lines, ["one", "approved", "two"]);
    worker.drain().await;
}
