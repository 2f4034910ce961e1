//! The time of a runtime that a test has paused.

use std::time::Duration;

use harness::prelude::*;
use harness::store::MemoryStore;
use harness::testing;
use harness::{Agent, Outcome, UtcMillis};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Notice {
    #[state(reduce = append)]
    notes: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Ask,
    Inline,
    Late,
}

fn note(text: &str) -> StepResult<Notice> {
    Ok(Notice::update().notes([text.to_owned()]))
}

async fn inline(_: View<Notice>, cx: Cx<()>) -> StepResult<Notice> {
    match cx.ask("send", Send).expires(HOUR).await {
        Ok(_) => note("sent"),
        Err(error) if error.is_expired() => note("inline late"),
        Err(error) => Err(error.into()),
    }
}

async fn late(_: View<Notice>, _: Cx<()>) -> StepResult<Notice> {
    note("gate late")
}

fn both() -> [Agent<(), Notice>; 2] {
    let harness = Harness::<(), Notice>::builder("notices")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define
                .ask(|_, _| async move { Ok(Send) })
                .answer(|_, _, _| async move { note("sent") })
                .expires(HOUR, Step::Late)
                .end(),
            Step::Late => define.run(late).then(Step::Inline),
            Step::Inline => define.run(inline).end(),
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ());
    [agent.clone(), agent.store(MemoryStore::new())]
}

#[tokio::test(start_paused = true)]
async fn the_clock_stands_still_and_is_moved_by_a_test() {
    let before = UtcMillis::now();
    // Real time passes here, and is not seen.
    for _ in 0..3 {
        tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(3))).await.unwrap();
    }
    assert_eq!(UtcMillis::now(), before);
    tokio::time::advance(HOUR).await;
    assert_eq!(UtcMillis::now(), before.after(HOUR));
    tokio::time::sleep(HOUR).await;
    assert!(UtcMillis::now() >= before.after(2 * HOUR));
}

#[tokio::test]
async fn the_clock_is_that_of_the_system_where_no_test_moves_it() {
    let apart = |time: UtcMillis| {
        let system = UtcMillis::from(std::time::SystemTime::now());
        system.0.abs_diff(time.0)
    };
    // Both clocks are read one after the other, and may be far apart on a machine that is busy.
    let near = std::iter::repeat_with(|| apart(UtcMillis::now())).take(100).min();
    assert!(near.is_some_and(|millis| millis < 1000), "{near:?}");
}

#[tokio::test(start_paused = true)]
async fn questions_expire_when_a_test_moves_the_clock() {
    for agent in both() {
        let outcome = agent.run(Notice::update(), ()).await.unwrap();
        let Outcome::Interrupted(waiting) = &outcome else { panic!("{outcome:?}") };
        let asked = &waiting.questions[0];
        assert_eq!(asked.expires_at, Some(asked.asked_at.after(HOUR)));
        // A millisecond before it expires it still waits.
        tokio::time::advance(HOUR - Duration::from_millis(1)).await;
        let outcome = agent.resume(&outcome, Answers::none(), ()).await.unwrap();
        let Outcome::Interrupted(waiting) = &outcome else { panic!("{outcome:?}") };
        let answer = waiting.pending::<Send>().unwrap().answer(true);
        tokio::time::advance(Duration::from_millis(1)).await;
        let refused = agent.resume(&outcome, answer, ()).await.unwrap_err();
        assert!(refused.answer_error().is_some_and(|it| it.is_expired()), "{refused}");
        let outcome = agent.resume(&outcome, Answers::none(), ()).await.unwrap();
        assert_eq!(outcome.state().unwrap().notes, ["gate late"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_script_lets_questions_expire() {
    for agent in both() {
        let began = UtcMillis::now();
        let tested =
            testing::run(&agent, Notice::update()).expire(Step::Ask).expire("send").await.unwrap();
        assert_eq!(tested.steps(), ["Ask", "Late", "Inline"]);
        assert_eq!(tested.ended().unwrap().state.notes, ["gate late", "inline late"]);
        let passed = UtcMillis::now().0 - began.0;
        assert!((7_200_000..7_300_000).contains(&passed), "{passed}");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_time_outs_and_waits_take_no_time() {
    async fn flaky(_: View<Notice>, cx: Cx<()>) -> StepResult<Notice> {
        match cx.attempt() {
            1 => Err(StepError::retryable("busy").after(HOUR)),
            2 => std::future::pending().await,
            _ => {
                cx.sleep_until("hour", UtcMillis::now().after(HOUR).to_system_time()).await?;
                note("read")
            }
        }
    }
    let harness = Harness::<(), Notice>::dynamic("flaky")
        .start("read")
        .step("read", |define| {
            define.run(flaky).retry(Retry::exponential().times(3)).timeout(2 * HOUR).end()
        })
        .build()
        .unwrap();
    for agent in [harness.agent("a", ()), harness.agent("a", ()).store(MemoryStore::new())] {
        let began = UtcMillis::now();
        let tested = testing::run(&agent, Notice::update()).await.unwrap();
        assert_eq!(tested.steps(), ["read"]);
        assert_eq!(tested.ended().unwrap().state.notes, ["read"]);
        assert!(UtcMillis::now() >= began.after(4 * HOUR));
    }
}
