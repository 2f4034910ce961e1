//! Runs with a counter as their state.

use std::sync::Arc;

use harness::prelude::*;

use super::{Error, Gate, STEPS, at_once, figures};
use crate::figure::Figure;
use crate::floor::BoxFuture;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: usize,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    gate: Gate,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Work,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    More,
    Enough,
}

async fn start(_count: View<Count>, cx: Cx<Ctx>) -> StepResult<Count> {
    cx.gate.pass().await;
    Ok(Count::update().n(1))
}

async fn work(_count: View<Count>, _cx: Cx<Ctx>) -> StepResult<Count> {
    tokio::task::yield_now().await;
    Ok(Count::update().n(1))
}

fn agent() -> Option<Agent<Ctx, Count>> {
    let next = |count: &Count| if count.n < STEPS { Next::More } else { Next::Enough };
    let harness = Harness::<Ctx, Count>::builder("many")
        .start(Step::Start)
        .steps(|define, step| match step {
            Step::Start => define.run(start).then(Step::Work),
            Step::Work => define.run(work).route(next, |signal| match signal {
                Next::More => to(Step::Work),
                Next::Enough => end(),
            }),
        })
        .build();
    Some(harness.ok()?.agent("many", ()))
}

struct Update {
    n: Option<usize>,
}

type Body =
    Box<dyn for<'a> Fn(&'a usize, &'a Gate) -> BoxFuture<'a, Result<Update, Error>> + Send + Sync>;

fn table() -> Arc<Vec<Body>> {
    Arc::new(vec![
        Box::new(|_, gate| {
            Box::pin(async move {
                gate.pass().await;
                Ok(Update { n: Some(1) })
            })
        }),
        Box::new(|_, _| {
            Box::pin(async move {
                tokio::task::yield_now().await;
                Ok(Update { n: Some(1) })
            })
        }),
    ])
}

async fn by_hand(table: Arc<Vec<Body>>, gate: Gate) -> Result<usize, Error> {
    let (mut n, mut at) = (0, 0);
    while n < STEPS {
        n += table[at](&n, &gate).await?.n.unwrap_or(0);
        at = 1;
    }
    Ok(n)
}

pub(super) fn runs() -> Vec<Figure> {
    let (Some(agent), table) = (agent(), table()) else { return Vec::new() };
    figures("runs-bare", 0, |runtime, count| {
        let ours = |gate| {
            let request = agent.run(Count::update(), Ctx::runtime().gate(gate).build());
            async move {
                let outcome = request.await;
                outcome.ok().and_then(|it| it.state().map(|count| count.n)).unwrap_or(0)
            }
        };
        let floor = |gate| {
            let run = by_hand(Arc::clone(&table), gate);
            async move { run.await.unwrap_or(0) }
        };
        (at_once(runtime, ours, count), at_once(runtime, floor, count))
    })
}
