//! A state that grows by one message a step.

use harness::BuildError;
use harness::prelude::*;

use super::floor::BoxFuture;
use super::{Figure, block_on, compare, failed};

const STEPS: u64 = 10_000;

pub(super) fn message(nth: usize) -> String {
    format!("{nth:0200}")
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Talk {
    #[state(reduce = append)]
    pub(super) messages: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Say,
}

#[derive(Signal, Clone, Copy, Debug)]
pub(super) enum Next {
    More,
    Enough,
}

async fn say(talk: View<Talk>, _cx: Cx<()>) -> StepResult<Talk> {
    Ok(Talk::update().messages([message(talk.messages.len())]))
}

pub(super) fn run(agent: &Agent<(), Talk>, steps: u64) {
    let outcome = block_on(async { agent.run(Talk::update(), ()).await });
    let said = outcome.ok().and_then(|it| it.state().map(|it| it.messages.len()));
    assert_eq!(said, Some(steps as usize));
}

async fn floor() -> Result<Vec<String>, std::io::Error> {
    type Body =
        Box<dyn for<'a> Fn(&'a [String]) -> BoxFuture<'a, Result<Vec<String>, std::io::Error>>>;
    let say: Body = Box::new(|talk| {
        let nth = talk.len();
        Box::pin(async move { Ok(vec![message(nth)]) })
    });
    let mut messages: Vec<String> = Vec::new();
    while (messages.len() as u64) < STEPS {
        let update = say(&messages).await?;
        messages.extend(update);
    }
    Ok(messages)
}

/// An agent that appends this many messages.
pub(super) fn agent(steps: u64) -> Result<Agent<(), Talk>, BuildError> {
    Ok(harness(steps)?.agent("talker", ()))
}

/// Its loop.
pub(super) fn harness(steps: u64) -> Result<Harness<(), Talk>, BuildError> {
    let next = move |talk: &Talk| {
        if talk.messages.len() as u64 >= steps { Next::Enough } else { Next::More }
    };
    Harness::<(), Talk>::builder("talker")
        .start(Step::Say)
        .steps(|define, step| match step {
            Step::Say => define.run(say).route(next, |signal| match signal {
                Next::More => to(Step::Say),
                Next::Enough => end(),
            }),
        })
        .budget(Budget::unbounded("the route counts the messages"))
        .build()
}

/// Ten thousand messages of 200 bytes.
pub(super) fn growing() -> Vec<Figure> {
    let Ok(agent) = agent(STEPS) else { return vec![failed("loop-growing")] };
    vec![compare(
        format!("loop-growing/{STEPS}"),
        STEPS,
        || run(&agent, STEPS),
        || assert!(block_on(floor()).is_ok_and(|said| said.len() as u64 == STEPS)),
    )]
}
