//! Questions that expire.

use std::time::Duration;

use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Agent, FailureKind, Outcome};

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
    Sent,
    Late,
}

fn note(text: &str) -> StepResult<Notice> {
    Ok(Notice::update().notes([text.to_owned()]))
}

/// A gate whose question expires after `expires`.
fn gate(expires: Duration, fails: bool) -> Agent<(), Notice> {
    let harness = Harness::<(), Notice>::builder("notices")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => {
                let gate = define
                    .ask(|_notice, _cx| async move { Ok(Send) })
                    .answer(|_notice, _cx, said| async move { note(&format!("{}", said.answer)) });
                match fails {
                    true => gate.expires_or_fails(expires).on_error(Step::Late).then(Step::Sent),
                    false => gate.expires(expires, Step::Late).then(Step::Sent),
                }
            }
            Step::Sent => define.run(|_notice, _cx| async move { note("sent") }).end(),
            Step::Late => define
                .run(|_notice, cx: Cx<()>| async move {
                    let kind = cx.failure().map(|failure| failure.kind);
                    note(&format!("late {kind:?}"))
                })
                .end(),
        })
        .build()
        .unwrap();
    harness.agent("notices", ())
}

/// The same question, asked inside of a step.
fn inline(expires: Duration) -> Agent<(), Notice> {
    let harness = Harness::<(), Notice>::builder("notices")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define
                .run(move |_notice, cx: Cx<()>| async move {
                    match cx.ask("send", Send).expires(expires).await {
                        Ok(said) => note(&format!("{said}")),
                        Err(error) if error.is_expired() => note("late"),
                        Err(error) => Err(error.into()),
                    }
                })
                .end(),
            Step::Sent | Step::Late => define.off("asked inline"),
        })
        .build()
        .unwrap();
    harness.agent("notices", ())
}

/// With and without a store.
fn both(agent: &Agent<(), Notice>) -> [Agent<(), Notice>; 2] {
    [agent.clone(), agent.clone().store(MemoryStore::new())]
}

async fn asked(agent: &Agent<(), Notice>) -> harness::Interrupted<Notice> {
    match agent.run(Notice::update(), ()).await.unwrap() {
        Outcome::Interrupted(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_expired_gate_takes_no_answer_and_goes_where_it_says() {
    for agent in both(&gate(Duration::ZERO, false)) {
        let waiting = asked(&agent).await;
        assert_eq!(waiting.questions[0].expires_at, Some(waiting.questions[0].asked_at));
        let answer = waiting.pending::<Send>().unwrap().answer(true);
        let refused = agent.resume(&waiting, answer, ()).await.unwrap_err();
        assert!(refused.answer_error().is_some_and(|it| it.is_expired()), "{refused}");
        let ended = agent.resume(&waiting, Answers::none(), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.notes, ["late None"]);
    }
}

#[tokio::test]
async fn an_expired_gate_without_a_target_fails() {
    for agent in both(&gate(Duration::ZERO, true)) {
        let waiting = asked(&agent).await;
        let ended = agent.resume(&waiting, Answers::none(), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.notes, [format!("late {:?}", Some(FailureKind::Expired))]);
    }
}

#[tokio::test]
async fn a_gate_that_is_answered_in_time_continues() {
    for agent in both(&gate(Duration::from_secs(3600), false)) {
        let waiting = asked(&agent).await;
        let outcome = agent.resume(&waiting, Answers::none(), ()).await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let answer = waiting.pending::<Send>().unwrap().answer(true);
        let ended = agent.resume(&waiting, answer, ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.notes, ["true", "sent"]);
    }
}

#[tokio::test]
async fn an_expired_question_is_an_error_in_the_step_that_asks() {
    for agent in both(&inline(Duration::ZERO)) {
        let waiting = asked(&agent).await;
        let answer = waiting.pending::<Send>().unwrap().answer(true);
        assert!(
            agent
                .resume(&waiting, answer, ())
                .await
                .unwrap_err()
                .answer_error()
                .is_some_and(|it| it.is_expired())
        );
        let ended = agent.resume(&waiting, Answers::none(), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.notes, ["late"]);
    }
}
