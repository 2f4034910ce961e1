//! Runs with a conversation as their state.

use std::sync::Arc;

use harness::prelude::*;

use super::{Error, Gate, STEPS, at_once, figures};
use crate::figure::Figure;
use crate::floor::BoxFuture;
use crate::growing::message;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Talk {
    #[state(reduce = append)]
    messages: Vec<String>,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    gate: Gate,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Say,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    More,
    Enough,
}

async fn say(talk: View<Talk>, cx: Cx<Ctx>) -> StepResult<Talk> {
    let nth = talk.messages.len();
    if nth == cx.gate.at {
        cx.gate.pass().await;
    } else {
        tokio::task::yield_now().await;
    }
    Ok(Talk::update().messages([message(nth)]))
}

fn agent() -> Option<Agent<Ctx, Talk>> {
    let next = |talk: &Talk| if talk.messages.len() < STEPS { Next::More } else { Next::Enough };
    let harness = Harness::<Ctx, Talk>::builder("many")
        .start(Step::Say)
        .steps(|define, step| match step {
            Step::Say => define.run(say).route(next, |signal| match signal {
                Next::More => to(Step::Say),
                Next::Enough => end(),
            }),
        })
        .build();
    Some(harness.ok()?.agent("many", ()))
}

struct Update {
    messages: Vec<String>,
}

type Body = Box<
    dyn for<'a> Fn(&'a [String], &'a Gate) -> BoxFuture<'a, Result<Update, Error>> + Send + Sync,
>;

fn table() -> Arc<Vec<Body>> {
    Arc::new(vec![Box::new(|talk, gate| {
        Box::pin(async move {
            let nth = talk.len();
            if nth == gate.at {
                gate.pass().await;
            } else {
                tokio::task::yield_now().await;
            }
            Ok(Update { messages: vec![message(nth)] })
        })
    })])
}

async fn by_hand(table: Arc<Vec<Body>>, gate: Gate) -> Result<Vec<String>, Error> {
    let (mut messages, at) = (Vec::new(), 0);
    while messages.len() < STEPS {
        messages.extend(table[at](&messages, &gate).await?.messages);
    }
    Ok(messages)
}

pub(super) fn runs() -> Vec<Figure> {
    let (Some(agent), table) = (agent(), table()) else { return Vec::new() };
    figures("runs", STEPS / 2, |runtime, count| {
        let ours = |gate| {
            let request = agent.run(Talk::update(), Ctx::runtime().gate(gate).build());
            async move {
                let outcome = request.await;
                outcome.ok().and_then(|it| it.state().map(|talk| talk.messages.len())).unwrap_or(0)
            }
        };
        let floor = |gate| {
            let run = by_hand(Arc::clone(&table), gate);
            async move { run.await.map_or(0, |talk| talk.len()) }
        };
        (at_once(runtime, ours, count), at_once(runtime, floor, count))
    })
}
