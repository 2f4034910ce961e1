//! What `run` and `resume` do with a session in each phase.

use harness::observe::Streamed;
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{graph::Limit, id::MAX_SESSION_ID};

use super::rig::{Act, On, Rig, all, run_or_crash, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    /// What the step is to do.
    mode: String,
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct What;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
    Ask,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    Ask,
    End,
}

async fn work(doc: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    match &*doc.mode {
        "fail" if cx.attempt() == 1 => return Err(StepError::fatal("no")),
        "stop" => cx.cancelled().await,
        _ => {}
    }
    Ok(Doc::update().lines([format!("worked {}", doc.mode)]))
}

fn next(doc: &Doc) -> Next {
    match &*doc.mode {
        "ask" => Next::Ask,
        "loop" | "stop" if doc.lines.len() < 7 => Next::Again,
        _ => Next::End,
    }
}

fn harness() -> Harness<(), Doc> {
    Harness::<(), Doc>::builder("table")
        .start(Step::Work)
        .budget(Budget::steps(4))
        .steps(|define, step| match step {
            Step::Work => define.run(work).route(next, |next| match next {
                Next::Again => to(Step::Work),
                Next::Ask => to(Step::Ask),
                Next::End => end(),
            }),
            Step::Ask => define
                .ask(|_doc, _cx| async move { Ok(What) })
                .answer(|_doc, _cx, said| async move { Ok(Doc::update().lines([said.answer])) })
                .end(),
        })
        .build()
        .unwrap()
}

fn agent(store: &MemoryStore) -> Agent<(), Doc> {
    harness().agent("a", ()).store(store.clone())
}

fn input(mode: &str) -> <Doc as State>::Update {
    Doc::update().mode(mode)
}

#[tokio::test]
async fn new_and_ended() {
    let store = MemoryStore::new();
    assert!(agent(&store).resume("s", Answers::none(), ()).await.unwrap_err().is_not_found());
    let one = Answers::json("q", 1.into());
    assert!(agent(&store).resume("s", one, ()).await.unwrap_err().is_not_found());
    let ended = agent(&store).run(input("end"), ()).session("s").await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["worked end"]);
    let before = all(&store, "s").await;
    assert!(agent(&store).resume("s", Answers::none(), ()).await.unwrap_err().is_not_waiting());
    let one = Answers::json("q", 1.into());
    assert!(
        agent(&store)
            .resume("s", one, ())
            .await
            .unwrap_err()
            .answer_error()
            .is_some_and(|it| it.is_unknown_interrupt())
    );
    assert_eq!(all(&store, "s").await, before);
    let next = agent(&store).run(input("end"), ()).session("s").await.unwrap().ended().unwrap();
    assert_eq!((next.state.lines.len(), next.steps), (2, 1));
}

#[tokio::test]
async fn interrupted() {
    let store = MemoryStore::new();
    let outcome = agent(&store).run(input("ask"), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let before = all(&store, "s").await;
    let err = agent(&store).run(input("end"), ()).session("s").await.unwrap_err();
    assert!(
        err.is_pending_interrupt()
            && err.to_string().contains(&waiting.questions[0].id.to_string())
    );
    // Nothing answered: still interrupted, and nothing is written.
    let outcome = agent(&store).resume("s", Answers::none(), ()).await.unwrap();
    assert!(matches!(&outcome, Outcome::Interrupted(it) if it.questions.len() == 1), "{outcome:?}");
    assert_eq!(all(&store, "s").await, before);
    // Withdrawn: the next turn begins, and answers are refused.
    let next = agent(&store).run(input("end"), ()).session("s").withdraw_questions().await.unwrap();
    assert_eq!(next.ended().unwrap().state.lines, ["worked ask", "worked end"]);
    let late = waiting.pending::<What>().unwrap().answer("late".into());
    let err = agent(&store).resume("s", late, ()).await.unwrap_err();
    assert!(err.answer_error().is_some_and(|it| it.is_unknown_interrupt()), "{err}");
}

#[tokio::test]
async fn stopped_cancelled_dropped() {
    for how in ["stop", "cancel", "drop"] {
        let store = MemoryStore::new();
        let mut run = agent(&store).run(input("stop"), ()).session("s").start();
        let mut events = run.events();
        while let Some(event) = events.next().await {
            if matches!(&event, Streamed::Event(event) if event.step.is_some()) {
                break;
            }
        }
        match how {
            "stop" => run.stop(),
            "cancel" => run.cancel(),
            _ => {}
        }
        if how == "drop" {
            drop(run);
            while events.next().await.is_some() {}
            super::rig::settled(&store, "s").await;
        } else {
            let outcome = run.await.unwrap();
            let Outcome::Stopped(stopped) = &outcome else { panic!("{how}: {outcome:?}") };
            assert_eq!(stopped.cancelled, how == "cancel");
            // What a stopped step returned is kept, of a cancelled one it is not.
            assert_eq!(stopped.state.lines.len(), usize::from(how == "stop"), "{how}");
        }
        let before = all(&store, "s").await;
        let err = agent(&store).run(input("end"), ()).session("s").await.unwrap_err();
        assert!(err.is_unsettled(), "{how}: {err}");
        assert_eq!(all(&store, "s").await, before);
        let run = agent(&store).resume("s", Answers::none(), ()).start();
        run.stop();
        let outcome = run.await.unwrap();
        assert!(matches!(outcome, Outcome::Stopped(_)), "{how}: {outcome:?}");
    }
}

#[tokio::test]
async fn failed_and_exhausted() {
    let store = MemoryStore::new();
    let outcome = agent(&store).run(input("fail"), ()).session("s").await.unwrap();
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.message, "no");
    let err = agent(&store).run(input("end"), ()).session("s").await.unwrap_err();
    assert!(err.is_unsettled(), "{err}");
    // The same step again, at the same position: it is its second attempt.
    let ended = agent(&store).resume(&failed, Answers::none(), ()).await.unwrap().ended().unwrap();
    assert_eq!((ended.state.lines.len(), ended.steps), (1, 1));

    let outcome = agent(&store).run(input("loop"), ()).session("t").await.unwrap();
    let Outcome::Exhausted(out) = outcome else { panic!("{outcome:?}") };
    assert_eq!((out.limit, out.state.lines.len()), (Limit::Steps, 4));
    let err = agent(&store).run(input("end"), ()).session("t").await.unwrap_err();
    assert!(err.is_unsettled(), "{err}");
    // What the turn has spent still counts.
    let again = agent(&store).resume("t", Answers::none(), ()).await.unwrap();
    assert!(matches!(&again, Outcome::Exhausted(out) if out.state.lines.len() == 4), "{again:?}");
    let more =
        agent(&store).resume("t", Answers::none(), ()).budget(Budget::steps(6)).await.unwrap();
    assert!(matches!(&more, Outcome::Exhausted(out) if out.state.lines.len() == 6), "{more:?}");
    let more =
        agent(&store).resume("t", Answers::none(), ()).budget(Budget::steps(9)).await.unwrap();
    assert_eq!(more.ended().unwrap().state.lines.len(), 7);
}

#[test]
fn crashed() {
    let store = MemoryStore::new();
    let rig = Rig::nth(&store, On::Append, 3, Act::HangAfter);
    let request =
        |rig: &Rig| harness().agent("a", ()).store(rig.clone()).run(input("loop"), ()).session("s");
    assert!(run_or_crash(&rig, request).is_none());
    runtime().block_on(async {
        let err = agent(&store).run(input("end"), ()).session("s").await.unwrap_err();
        assert!(err.is_unsettled(), "{err}");
        let budget = Budget::steps(9);
        let on = agent(&store).resume("s", Answers::none(), ()).budget(budget).await.unwrap();
        let ended = on.ended().unwrap();
        assert_eq!((ended.state.lines.len(), ended.steps), (7, 7));
    });
}

#[tokio::test]
async fn of_another_agent() {
    let store = MemoryStore::new();
    agent(&store).run(input("end"), ()).session("s").await.unwrap();
    let before = all(&store, "s").await;
    let other = harness().agent("b", ()).store(store.clone());
    let err = other.run(input("end"), ()).session("s").await.unwrap_err();
    assert!(err.is_wrong_agent(), "{err}");
    let err = other.resume("s", Answers::none(), ()).await.unwrap_err();
    assert!(err.is_wrong_agent(), "{err}");
    assert_eq!(all(&store, "s").await, before);
    agent(&store).run(input("end"), ()).session("s").await.unwrap().ended().unwrap();
}

#[tokio::test]
async fn legal_and_illegal_ids() {
    let store = MemoryStore::new();
    let rig = Rig::new(store.clone());
    let agent = || harness().agent("a", ()).store(rig.clone());
    let long = "x".repeat(MAX_SESSION_ID + 1);
    for id in ["", &*long] {
        let err = agent().run(input("end"), ()).session(id).await.unwrap_err();
        assert!(err.is_invalid_session_id(), "{err}");
        let err = agent().resume(id, Answers::none(), ()).await.unwrap_err();
        assert!(err.is_invalid_session_id(), "{err}");
    }
    assert_eq!((rig.count(On::Claim), rig.count(On::Read)), (0, 0));
    let longest = "x".repeat(MAX_SESSION_ID);
    for id in ["../../etc/passwd", "a\0b", "\n", " ", "🦀/..", "CON", &*longest] {
        agent().run(input("end"), ()).session(id).await.unwrap().ended().unwrap();
        let err = agent().resume(id, Answers::none(), ()).await.unwrap_err();
        assert!(err.is_not_waiting(), "{id:?}: {err}");
    }
}
