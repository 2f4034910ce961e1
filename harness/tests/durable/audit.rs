//! Rare cases in which a session must not be changed, lost or reported wrongly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::prelude::*;
use harness::run::QueueStatus;
use harness::store::MemoryStore;
use harness::{OnBusy, Seq, Sessions};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::busy::queued;
use super::rig::{Act, On, Rig, all, count, log, run_or_crash, runtime, settled};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    #[state(reduce = custom)]
    fragile: String,
    how: String,
}

fn custom(old: &mut String, new: String) {
    assert!(new != "panic", "a reducer panics");
    *old = new;
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = Value)]
struct What {
    of: String,
}

fn line(text: impl Into<String>) -> <Doc as State>::Update {
    Doc::update().lines([text.into()])
}

mod one {
    use super::*;

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub enum Step {
        Work,
        Close,
    }

    /// A loop of two steps.
    pub fn harness() -> Harness<(), Doc> {
        Harness::<(), Doc>::builder("steps")
            .start(Step::Work)
            .steps(|define, step| match step {
                Step::Work => define
                    .run(|_, cx: Cx<()>| async move {
                        let made = async || Ok(line_of(1));
                        let _: String = cx.once_per_session("made", made).await?;
                        Ok(line("work"))
                    })
                    .then(Step::Close),
                Step::Close => define.run(|_, _| async move { Ok(line("close")) }).end(),
            })
            .build()
            .unwrap()
    }

    fn line_of(n: u32) -> String {
        format!("made {n}")
    }
}

mod two {
    use super::*;

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub enum Step {
        Work,
    }

    /// The same loop, without its second step.
    pub fn harness() -> Harness<(), Doc> {
        Harness::<(), Doc>::builder("steps")
            .start(Step::Work)
            .steps(|define, step| match step {
                Step::Work => define
                    .run(|doc: View<Doc>, cx: Cx<()>| async move {
                        let again = async || Ok("made again".to_owned());
                        let made: String = cx.once_per_session("made", again).await?;
                        Ok(line(format!("{} {made}", doc.lines.len())))
                    })
                    .end(),
            })
            .build()
            .unwrap()
    }
}

#[tokio::test]
async fn a_turn_keeps_the_state_of_one_that_ended_at_a_step_that_is_gone() {
    let store = MemoryStore::new();
    let before = one::harness().agent("a", ()).store(store.clone());
    before.run(line("in"), ()).session("s").await.unwrap().ended().unwrap();
    let after = two::harness().agent("a", ()).store(store.clone());
    let ended = after.run(line("next"), ()).session("s").await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["in", "work", "close", "next", "4 made 1"]);
    assert_eq!(folded_lines(&store).await, json!(ended.state.lines));
}

async fn folded_lines(store: &MemoryStore) -> Value {
    super::rig::folded(store, "s").await["lines"].clone()
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Ask,
    Fill,
    Last,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Ask,
    Fill,
    End,
}

/// Where a step waits.
#[derive(Clone)]
struct Stand {
    at_work: Arc<Semaphore>,
    go: Arc<Semaphore>,
}

impl Stand {
    fn new() -> Self {
        Self { at_work: Arc::new(Semaphore::new(0)), go: Arc::new(Semaphore::new(0)) }
    }

    async fn at_work(&self) {
        self.at_work.acquire().await.unwrap().forget();
    }
}

/// A loop that waits, asks or runs for long, as `how` selects.
fn harness(stand: &Stand) -> Harness<(), Doc> {
    Harness::<(), Doc>::builder("audit")
        .start(Step::Start)
        .steps(|define, step| match step {
            Step::Start => {
                let stand = stand.clone();
                define
                    .run(move |doc: View<Doc>, _| {
                        let stand = stand.clone();
                        async move {
                            if doc.how.starts_with("wait") {
                                stand.at_work.add_permits(1);
                                stand.go.acquire().await?.forget();
                            }
                            Ok(Doc::update())
                        }
                    })
                    .route(
                        |doc: &Doc| match &*doc.how {
                            "ask" | "wait and ask" | "expire" => Next::Ask,
                            "fill" | "wait and fill" => Next::Fill,
                            _ => Next::End,
                        },
                        |next| match next {
                            Next::Ask => to(Step::Ask),
                            Next::Fill => to(Step::Fill),
                            Next::End => end(),
                        },
                    )
            }
            Step::Ask => define
                .run(|doc: View<Doc>, cx: Cx<()>| async move {
                    let asked = cx.ask("one", What { of: "one".into() });
                    if doc.how == "expire" {
                        let one = asked.expires(Duration::ZERO).await?;
                        return Ok(line(format!("{one:?}")));
                    }
                    let (one, two) = tokio::join!(asked, cx.ask("two", What { of: "two".into() }));
                    Ok(line(format!("{} {}", one?, two?)).how(""))
                })
                .end(),
            Step::Fill => define
                .run(|doc: View<Doc>, _| async move {
                    Ok(Doc::update()
                        .fragile(format!("{}{}", doc.lines.len(), "x".repeat(9_000)))
                        .lines([".".into()]))
                })
                .route(
                    |doc: &Doc| if doc.lines.len() < 20 { Next::Fill } else { Next::End },
                    |next| match next {
                        Next::Fill => to(Step::Fill),
                        Next::Ask => to(Step::Ask),
                        Next::End => end(),
                    },
                ),
            Step::Last => define.off("not here"),
        })
        .build()
        .unwrap()
}

pub fn agent(rig: &Rig) -> Agent<(), Doc> {
    harness(&Stand::new()).agent("a", ()).store(rig.clone())
}

pub async fn asks(agent: &Agent<(), Doc>) -> Vec<harness::InterruptId> {
    let outcome = agent.run(Doc::update().how("ask"), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    waiting.questions.iter().map(|asked| asked.id.clone()).collect()
}

#[tokio::test]
async fn a_log_is_read_across_a_snapshot_after_messages_that_were_passed_over() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = harness(&stand).agent("a", ()).store(rig.clone());
    let run = agent.run(Doc::update().how("wait and ask"), ()).session("s").start();
    stand.at_work().await;
    // A message that no run applies.
    let later = agent.run(line("x").how(""), ()).session("s").on_busy(OnBusy::Queue).await;
    queued(later);
    stand.go.add_permits(1);
    assert!(matches!(run.await.unwrap(), Outcome::Interrupted(_)));
    let next = agent.run(Doc::update().how("fill"), ()).session("s").withdraw_questions();
    next.await.unwrap().ended().unwrap();
    assert!(count(&rig.memory, "s", "snapshot").await > 0, "there is a snapshot");
    agent.history("s", Seq(0), 1_000).await.unwrap();
    agent.state_at("s", Seq(2)).await.unwrap();
}

#[tokio::test]
async fn a_queued_input_is_applied_after_a_turn_that_replaced_an_interrupted_one() {
    let (stand, rig) = (Stand::new(), Rig::new(MemoryStore::new()));
    let agent = harness(&stand).agent("a", ()).store(rig.clone());
    let run = agent.run(Doc::update().how("wait and ask"), ()).session("s").start();
    stand.at_work().await;
    queued(agent.run(line("queued").how(""), ()).session("s").on_busy(OnBusy::Queue).await);
    stand.go.add_permits(1);
    assert!(matches!(run.await.unwrap(), Outcome::Interrupted(_)));
    let next = agent.run(line("instead").how(""), ()).session("s").withdraw_questions();
    let ended = next.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["instead", "queued"]);
}

#[tokio::test]
async fn an_input_that_is_refused_withdraws_nothing() {
    let rig = Rig::new(MemoryStore::new());
    let agent = agent(&rig);
    asks(&agent).await;
    let before = all(&rig.memory, "s").await;
    let input = Doc::update().fragile("panic");
    agent.run(input, ()).session("s").withdraw_questions().await.unwrap_err();
    assert_eq!(all(&rig.memory, "s").await, before);
}

#[tokio::test]
async fn questions_whose_time_is_over_stand_in_nobodys_way() {
    let rig = Rig::new(MemoryStore::new());
    let agent = agent(&rig);
    let outcome = agent.run(Doc::update().how("expire"), ()).session("s").await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted(_)), "{outcome:?}");
    let next = agent.run(line("next").how(""), ()).session("s").withdraw_questions().await;
    assert_eq!(next.unwrap().ended().unwrap().state.lines, ["next"]);
    assert_eq!(super::rig::questions(&rig.memory, "s").await, 0);
}

#[tokio::test]
async fn an_answer_too_deep_for_the_log_is_refused_and_another_is_applied() {
    let rig = Rig::new(MemoryStore::new());
    let agent = agent(&rig);
    let ids = asks(&agent).await;
    let before = all(&rig.memory, "s").await;
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    for levels in [108, 125, 200] {
        let answer = Answers::json(ids[0].clone(), deep(levels));
        let err = agent.resume("s", answer.clone(), ()).await.unwrap_err();
        assert!(err.answer_error().is_some_and(|it| it.is_wrong_answer()), "{levels}: {err}");
        let sessions = Sessions::new(rig.clone());
        assert!(
            sessions
                .answer_json("s", answer)
                .await
                .unwrap_err()
                .answer_error()
                .is_some_and(|it| it.is_wrong_answer())
        );
    }
    assert_eq!(all(&rig.memory, "s").await, before);
    // The deepest that is taken can be read again, also out of a snapshot.
    for id in ids {
        agent.resume("s", Answers::json(id, deep(107)), ()).await.unwrap();
    }
    assert_eq!(
        agent.history("s", Seq(0), 99).await.unwrap().moments.last().unwrap().state.lines.len(),
        1
    );
}

#[tokio::test]
async fn a_step_that_asks_the_same_again_is_answered_though_it_asked_another_between() {
    let rig = Rig::new(MemoryStore::new());
    let (attempts, seen) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&seen);
    let harness = Harness::<(), Doc>::builder("again")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => {
                let (attempts, seen) = (Arc::clone(&attempts), Arc::clone(&seen));
                define
                    .run(move |_, cx: Cx<()>| {
                        let n = attempts.fetch_add(1, Ordering::SeqCst);
                        let seen = Arc::clone(&seen);
                        async move {
                            let of = if n % 2 == 0 { "even" } else { "odd" };
                            let said: Value = cx.ask("k", What { of: of.into() }).await?;
                            seen.fetch_add(1, Ordering::SeqCst);
                            Ok(line(said.to_string()))
                        }
                    })
                    .end()
            }
            _ => define.off("not here"),
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(rig.clone());
    let asked = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = asked else { panic!("{asked:?}") };
    let answer = Answers::json(waiting.questions[0].id.clone(), json!(1));
    let Outcome::Failed(failed) = agent.resume("s", answer, ()).await.unwrap() else { panic!() };
    assert_eq!(failed.failure.kind, harness::FailureKind::QuestionChanged);
    let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["1"]);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_run_that_crashed_half_answered_is_resumed_as_one_that_waits() {
    let memory = MemoryStore::new();
    let ids = runtime().block_on(asks(&agent(&Rig::new(memory.clone()))));
    // The answer is in the log; that the run waits again is not.
    let rig = Rig::nth(&memory, On::Append, 2, Act::HangBefore);
    let answer = Answers::json(ids[0].clone(), json!(1));
    assert!(run_or_crash(&rig, |rig| agent(rig).resume("s", answer, ())).is_none());
    runtime().block_on(async {
        let agent = agent(&Rig::new(memory.clone()));
        let outcome = agent.resume("s", Answers::none(), ()).await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let open: Vec<_> = waiting.questions.iter().map(|asked| asked.id.clone()).collect();
        assert_eq!(open, ids[1..]);
        settled(&memory, "s").await;
        let answer = Answers::json(ids[1].clone(), json!(2));
        let ended = agent.resume("s", answer, ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, ["1 2"]);
    });
}

/// A loop whose last step does what the test says.
fn closing(last: Arc<dyn Fn() -> StepResult<Doc> + Send + Sync>) -> Harness<(), Doc> {
    Harness::<(), Doc>::builder("closing")
        .start(Step::Start)
        .finally(Step::Last)
        .steps(|define, step| match step {
            Step::Start => define.run(|_, _| async { Ok(line("start")) }).end(),
            Step::Last => {
                let last = Arc::clone(&last);
                define
                    .run(move |_, _| {
                        let last = Arc::clone(&last);
                        async move {
                            tokio::task::yield_now().await;
                            last()
                        }
                    })
                    .end()
            }
            _ => define.off("not here"),
        })
        .build()
        .unwrap()
}

#[test]
fn last_steps_that_end_the_process_do_not_change_how_the_turn_has_ended() {
    let memory = MemoryStore::new();
    let harness = closing(Arc::new(|| Ok(line("last"))));
    // Each run gets to its last step, and no further.
    for n in 0..5 {
        let at = if n == 0 { 3 } else { 2 };
        let rig = Rig::nth(&memory, On::Append, at, Act::HangBefore);
        let agent = harness.agent("a", ()).store(rig.clone());
        let outcome = run_or_crash(&rig, |_| match n {
            0 => agent.run(line("in"), ()).session("s"),
            _ => agent.resume("s", Answers::none(), ()),
        });
        assert!(outcome.is_none(), "{n}: {outcome:?}");
    }
    let agent = harness.agent("a", ()).store(memory.clone());
    runtime().block_on(async {
        let outcome = agent.resume("s", Answers::none(), ()).await.unwrap();
        let ended = outcome.ended().unwrap();
        assert_eq!(ended.state.lines, ["in", "start"]);
        assert!(ended.finally_failure.is_some());
        // It is over: the next turn begins.
        let log = log(&memory, "s").await.len();
        assert!(agent.resume("s", Answers::none(), ()).await.unwrap_err().is_not_waiting());
        assert_eq!(super::rig::log(&memory, "s").await.len(), log);
    });
}

#[tokio::test]
async fn a_reducer_that_panics_in_the_last_steps_does_not_change_how_the_turn_has_ended() {
    let memory = MemoryStore::new();
    let harness = closing(Arc::new(|| Ok(Doc::update().fragile("panic"))));
    let agent = harness.agent("a", ()).store(memory.clone());
    let outcome = agent.run(line("in"), ()).session("s").await.unwrap();
    let ended = outcome.ended().unwrap();
    assert_eq!(ended.state.lines, ["in", "start"]);
    assert!(ended.finally_failure.is_some());
}

#[tokio::test]
async fn an_input_queued_for_a_run_that_settled_meanwhile_is_reported_as_queued() {
    let (stand, memory) = (Stand::new(), MemoryStore::new());
    let agent = harness(&stand).agent("a", ()).store(memory.clone());
    let run = agent.run(Doc::update().how("wait and ask"), ()).session("s").start();
    stand.at_work().await;
    let late = Rig::nth(&memory, On::Send, 1, Act::Pause);
    let other = harness(&stand).agent("a", ()).store(late.clone());
    let queue = other.run(line("late").how(""), ()).session("s").on_busy(OnBusy::Queue).start();
    late.reached().await;
    stand.go.add_permits(1);
    let outcome = run.await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    late.go();
    assert_eq!(queued(queue.await).status, QueueStatus::Unsettled);
    let answers = waiting.questions.iter().fold(Answers::none(), |answers, asked| {
        answers.and(Answers::json(asked.id.clone(), json!(0)))
    });
    let ended = agent.resume("s", answers, ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["0 0", "late"]);
}

#[tokio::test]
async fn answers_recorded_while_a_refused_run_holds_the_session_are_applied() {
    for again in [false, true] {
        let memory = MemoryStore::new();
        let answers = agent(&Rig::new(memory.clone()));
        let ids = asks(&answers).await;
        let answer = |n: usize| Answers::json(ids[n].clone(), json!(n));
        answers.resume("s", answer(0), ()).await.unwrap();
        let rig = Rig::nth(&memory, On::Release, 1, Act::Pause);
        let holds = agent(&rig);
        let refused = match again {
            // It was taken before: nothing is done.
            true => holds.resume("s", answer(0), ()).start(),
            false => holds.run(line("x"), ()).session("s").input_id("k").start(),
        };
        rig.reached().await;
        let err = answers.resume("s", answer(1), ()).await.unwrap_err();
        assert!(err.is_busy() && err.answers_recorded(), "{err}");
        rig.go();
        match (again, refused.await) {
            (true, outcome) => drop(outcome.unwrap().ended().unwrap()),
            (false, outcome) => assert!(outcome.unwrap_err().is_pending_interrupt()),
        }
        settled(&memory, "s").await;
        assert_eq!(folded_lines(&memory).await, json!(["0 1"]));
    }
}

#[tokio::test]
async fn a_session_that_is_deleted_while_it_is_resumed_is_not_found() {
    for on in [On::Send, On::Claim] {
        let memory = MemoryStore::new();
        let ids = asks(&agent(&Rig::new(memory.clone()))).await;
        let rig = Rig::nth(&memory, on, 1, Act::Pause);
        let answer = Answers::json(ids[0].clone(), json!(0));
        let resumed = agent(&rig).resume("s", answer, ()).start();
        rig.reached().await;
        Sessions::new(memory.clone()).delete("s").await.unwrap();
        rig.go();
        let error = resumed.await.unwrap_err();
        assert!(error.is_not_found(), "{on:?}: {error}");
    }
}
