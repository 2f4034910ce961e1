//! Requests to sessions: two at once, too large ones, stops, timers, bounds.

use std::sync::Arc;
use std::time::Duration;

use harness::Sessions;
use harness::inspect::Phase;
use harness::prelude::*;
use harness_store::restate::{RestateService, RestateStore};
use tokio::sync::{Semaphore, mpsc};

use crate::orders::{Order, World, agent, effects, expected, slots};
use crate::place::{Addresses, Running, name, run};

/// The orders of a test, with a service that makes so many writes in an invocation.
async fn orders(writes: u64) -> (tempfile::TempDir, World, RestateStore, Running) {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path().join("effects"));
    let agent = agent(&name("shop"));
    let store = Addresses::shared().sessions(&agent);
    let its = world.clone();
    let service = RestateService::new().writes_per_invocation(writes).serve(&agent, move |_| {
        let slots = slots(&its);
        async move { Ok(slots) }
    });
    let running = run(service, &store).await;
    (dir, world, store, running)
}

/// Waits until the session has this phase.
async fn rests(store: &RestateStore, session: &str, phase: Phase) -> harness::inspect::Status {
    let sessions = Sessions::new(store.clone());
    tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            match sessions.status(session).await {
                Ok(status) if status.phase == phase => break status,
                Ok(_) => {}
                Err(error) => assert!(error.is_not_found(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("it never was {phase:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_at_once_one_decides() {
    let (_dir, world, store, _running) = orders(64).await;
    for round in 0..10 {
        let session = format!("o{round}");
        let asked = store.run(&session, "in", &Order::update()).await.unwrap();
        let id = asked.interrupts[0].clone();
        let answer = |said: bool, by| store.answer(&session, id.clone(), said.into(), Some(by));
        let (yes, no) = tokio::join!(answer(true, "sam"), answer(false, "kim"));
        let refused = match (&yes, &no) {
            (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => refused,
            both => panic!("{both:?}"),
        };
        assert!(refused.is_conflict(), "{refused}");
        // The answer that decided is repeated.
        let again = answer(yes.is_ok(), "sam").await;
        assert!(again.is_err() || again.unwrap().phase == Phase::Ended);
        let state = Sessions::new(store.clone()).state(&session).await.unwrap();
        let said = if yes.is_ok() { "send true" } else { "send false" };
        assert_eq!(state["done"][2], said);
    }
    assert_eq!(world.lines().len(), 10 * effects().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_applies_once_and_another_of_its_id_is_refused() {
    let (_dir, world, store, _running) = orders(64).await;
    let first = store.run("o", "in", &Order::update()).await.unwrap();
    let again = store.run("o", "in", &Order::update()).await.unwrap();
    assert_eq!(first, again);
    let other = store.run("o", "in", &Order::update().sum(7)).await.unwrap_err();
    assert!(other.is_conflict() && other.to_string().contains("`in`"), "{other}");
    // The next turn begins when this one has ended.
    let queued = store.run("o", "in-2", &Order::update().sum(10)).await.unwrap();
    assert_eq!(queued.phase, Phase::Interrupted);
    let id = first.interrupts[0].clone();
    let next = store.answer("o", id, true.into(), None).await.unwrap();
    assert_eq!(next.phase, Phase::Interrupted);
    let state = Sessions::new(store.clone()).state("o").await.unwrap();
    assert_eq!(state["sum"], 16);
    assert_eq!(world.lines().len(), effects().len() + 2);
    let missing = store.resume("none").await.unwrap_err();
    assert!(missing.is_not_found(), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_of_many_writes_is_one_of_many_invocations() {
    for writes in [1, 3] {
        let (_dir, world, store, _running) = orders(writes).await;
        store.start("o", "in", &Order::update()).await.unwrap();
        let asked = rests(&store, "o", Phase::Interrupted).await;
        let id = asked.questions[0].id.clone();
        store.leave_answer("o", id, true.into(), None).await.unwrap();
        rests(&store, "o", Phase::Ended).await;
        let state = Sessions::new(store).state("o").await.unwrap();
        assert_eq!(state, serde_json::to_value(expected()).unwrap());
        let mut lines = world.lines();
        lines.sort();
        assert_eq!(lines, effects(), "{writes}");
    }
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    text: String,
    done: bool,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sure;

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    entered: mpsc::UnboundedSender<()>,
    #[slot(required)]
    leave: Arc<Semaphore>,
}

/// A loop of one step, and a second one after it.
fn one<F, Fut>(
    name: &str,
    body: F,
) -> (Agent<Ctx, Doc>, mpsc::UnboundedReceiver<()>, Arc<Semaphore>)
where
    F: Fn(View<Doc>, Cx<Ctx>) -> Fut + std::marker::Send + Sync + 'static,
    Fut: Future<Output = StepResult<Doc>> + std::marker::Send + 'static,
{
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Work,
        End,
    }
    let body = Arc::new(body);
    let harness = Harness::<Ctx, Doc>::builder("one")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => {
                let body = Arc::clone(&body);
                define.run(move |doc, cx| body(doc, cx)).then(Step::End)
            }
            Step::End => define.run(|_, _| async { Ok(Doc::update().done(true)) }).end(),
        })
        .build()
        .unwrap();
    let (entered, receiver) = mpsc::unbounded_channel();
    let leave = Arc::new(Semaphore::new(0));
    let slots = Ctx::required().entered(entered).leave(Arc::clone(&leave)).build();
    (harness.agent(name, slots), receiver, leave)
}

async fn serve(agent: &Agent<Ctx, Doc>) -> (RestateStore, Running) {
    let store = Addresses::shared().sessions(agent);
    let service = RestateService::new().serve(agent, |_| async { Ok(()) });
    let running = run(service, &store).await;
    (store, running)
}

/// A step that waits until the test lets it leave, or asks it to stop.
async fn waits(_: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    cx.entered.send(()).unwrap();
    tokio::select! {
        () = cx.cancelled() => {}
        permit = cx.leave.acquire() => permit.unwrap().forget(),
    }
    Ok(Doc::update().text("left"))
}

/// A step that waits until the test lets it leave.
async fn stays(_: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    cx.entered.send(()).unwrap();
    cx.leave.acquire().await.unwrap().forget();
    Ok(Doc::update().text("left"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_stopped_at_its_next_boundary_and_resumed() {
    let (agent, mut entered, _leave) = one(&name("stop"), waits);
    let (store, _running) = serve(&agent).await;
    store.start("d", "in", &Doc::update()).await.unwrap();
    entered.recv().await.unwrap();
    // The step at work finishes and commits.
    assert!(store.stop("d").await.unwrap());
    let status = rests(&store, "d", Phase::Stopped).await;
    assert_eq!(status.step, "End");
    assert!(!store.stop("d").await.unwrap(), "it rests");
    let ended = store.resume("d").await.unwrap();
    assert_eq!(ended.phase, Phase::Ended);
    let state = Sessions::new(store).state("d").await.unwrap();
    assert_eq!(state, serde_json::json!({"text": "left", "done": true}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_cancelled_in_a_step() {
    let (agent, mut entered, leave) = one(&name("cancel"), stays);
    let (store, _running) = serve(&agent).await;
    store.start("d", "in", &Doc::update()).await.unwrap();
    entered.recv().await.unwrap();
    assert!(store.cancel("d").await.unwrap());
    let status = rests(&store, "d", Phase::Stopped).await;
    assert_eq!(status.step, "Work");
    leave.add_permits(1);
    assert_eq!(store.resume("d").await.unwrap().phase, Phase::Ended);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invocation_that_is_cancelled_on_the_server_keeps_what_was_journalled() {
    let paid = Arc::new(Semaphore::new(0));
    let its = Arc::clone(&paid);
    let (agent, mut entered, leave) = one(&name("operator"), move |_, cx: Cx<Ctx>| {
        let paid = Arc::clone(&its);
        async move {
            let pay = async move || {
                paid.add_permits(1);
                Ok(())
            };
            cx.once("paid", pay).await?;
            cx.entered.send(())?;
            cx.leave.acquire().await?.forget();
            Ok(Doc::update().text("left"))
        }
    });
    let (store, _running) = serve(&agent).await;
    // A first turn: before it has ended, no session is seen.
    leave.add_permits(1);
    assert_eq!(store.run("d", "in", &Doc::update()).await.unwrap().phase, Phase::Ended);
    entered.recv().await.unwrap();
    let begun = store.start("d", "in-2", &Doc::update()).await.unwrap();
    entered.recv().await.unwrap();
    crate::server::cancel(&Addresses::shared(), &begun.invocation);
    // The server waits for the piece of work, whose result is then not taken.
    leave.add_permits(1);
    let status = rests(&store, "d", Phase::Running).await;
    assert_eq!((status.turn, &*status.step), (2, "Work"));
    leave.add_permits(1);
    assert_eq!(store.resume("d").await.unwrap().phase, Phase::Ended);
    assert_eq!(paid.available_permits(), 2, "the effect of each turn is made once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_by_sessions_reaches_the_engine() {
    let (agent, mut entered, leave) = one(&name("stop-sessions"), waits);
    let (store, _running) = serve(&agent).await;
    // A first turn, so that the session is there.
    leave.add_permits(1);
    assert_eq!(store.run("d", "in", &Doc::update()).await.unwrap().phase, Phase::Ended);
    entered.recv().await.unwrap();
    store.start("d", "in-2", &Doc::update()).await.unwrap();
    entered.recv().await.unwrap();
    let sessions = Sessions::new(store.clone());
    assert!(sessions.stop("d").await.unwrap());
    rests(&store, "d", Phase::Stopped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_sleeps_is_woken_by_the_engine() {
    let (agent, _entered, _leave) = one(&name("sleep"), |_, cx: Cx<Ctx>| async move {
        cx.sleep("nap", Duration::from_millis(1500)).await?;
        Ok(Doc::update().text("slept"))
    });
    let (store, _running) = serve(&agent).await;
    let sleeps = store.run("d", "in", &Doc::update()).await.unwrap();
    assert_eq!(sleeps.phase, Phase::Waiting);
    assert!(sleeps.due.is_some());
    let status = rests(&store, "d", Phase::Ended).await;
    assert!(status.updated >= sleeps.due.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_expires_by_the_clock_of_the_engine() {
    let (agent, _entered, _leave) = one(&name("expire"), |_, cx: Cx<Ctx>| async move {
        match cx.ask("sure", Sure).expires(Duration::from_millis(300)).await {
            Ok(sure) => Ok(Doc::update().text(format!("said {sure}"))),
            Err(error) if error.is_expired() => Ok(Doc::update().text("expired")),
            Err(error) => Err(error.into()),
        }
    });
    let (store, _running) = serve(&agent).await;
    let asked = store.run("d", "in", &Doc::update()).await.unwrap();
    assert_eq!(asked.phase, Phase::Interrupted);
    rests(&store, "d", Phase::Ended).await;
    let state = Sessions::new(store).state("d").await.unwrap();
    assert_eq!(state["text"], "expired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_of_a_megabyte_is_kept_and_one_of_forty_is_refused() {
    let (agent, _entered, _leave) = one(&name("large"), |doc: View<Doc>, cx: Cx<Ctx>| async move {
        let bytes = doc.text.parse::<usize>().unwrap();
        let sure = cx.ask("sure", Sure).await?;
        assert!(sure);
        Ok(Doc::update().text("x".repeat(bytes)))
    });
    let (store, _running) = serve(&agent).await;
    let answered = async |session: &str, bytes: usize| {
        let input = Doc::update().text(bytes.to_string());
        let asked = store.run(session, "in", &input).await.unwrap();
        store.answer(session, asked.interrupts[0].clone(), true.into(), None).await
    };
    assert_eq!(answered("small", 1 << 20).await.unwrap().phase, Phase::Ended);
    let sessions = Sessions::new(store.clone());
    let state = sessions.state("small").await.unwrap();
    assert_eq!(state["text"].as_str().unwrap().len(), 1 << 20);
    let refused = answered("large", 40 << 20).await.unwrap_err();
    assert!(refused.is_too_large() && refused.to_string().contains("bytes"), "{refused}");
    // Nothing is tried again, and the session is where it was.
    assert!(store.troubles("large").await.unwrap().is_empty());
    assert_eq!(sessions.state("large").await.unwrap()["text"], (40 << 20).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_fails_fails_the_turn_and_not_the_invocation() {
    let (agent, _entered, _leave) = one(&name("fail"), |doc: View<Doc>, _| async move {
        match doc.text.as_str() {
            "panic" => panic!("no"),
            _ => Err(StepError::fatal("the printer burns")),
        }
    });
    let (store, _running) = serve(&agent).await;
    for (session, why) in [("error", "the printer burns"), ("panic", "no")] {
        let failed = store.run(session, "in", &Doc::update().text(session)).await.unwrap();
        assert_eq!(failed.phase, Phase::Failed);
        assert!(failed.failure.as_ref().unwrap().contains(why), "{failed:?}");
        assert!(store.troubles(session).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_that_cannot_be_made_are_tried_again_by_the_engine() {
    let agent = agent(&name("slots"));
    let store = Addresses::shared().sessions(&agent);
    let dir = tempfile::tempdir().unwrap();
    let (world, tries) = (World::new(dir.path().join("effects")), Arc::new(Semaphore::new(2)));
    let service = RestateService::new().serve(&agent, move |_| {
        let (slots, tries) = (slots(&world), Arc::clone(&tries));
        async move {
            match tries.try_acquire() {
                Ok(permit) => {
                    permit.forget();
                    Err("the vault is closed".into())
                }
                Err(_) => Ok(slots),
            }
        }
    });
    let _running = run(service, &store).await;
    let asked = store.run("o", "in", &Order::update()).await.unwrap();
    assert_eq!(asked.phase, Phase::Interrupted);
}
