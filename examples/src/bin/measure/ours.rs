//! The two-step counter as a loop of ours.

use harness::RunRequest;
use harness::prelude::*;

use super::counting;
use super::{Figure, block_on, compare, floor};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Count {
    #[state(reduce = add)]
    thoughts: u64,
    #[state(reduce = add)]
    acts: u64,
}

/// The number of steps, which no step reads.
#[derive(Context)]
pub(super) struct Ctx {
    #[slot(runtime)]
    _steps: u64,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Think,
    Act,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Act,
    Enough,
}

async fn think(_count: View<Count>, _cx: Cx<Ctx>) -> StepResult<Count> {
    Ok(Count::update().thoughts(1))
}

async fn act(_count: View<Count>, _cx: Cx<Ctx>) -> StepResult<Count> {
    Ok(Count::update().acts(1))
}

pub(super) fn agent(steps: u64) -> Result<Agent<Ctx, Count>, harness::BuildError> {
    let next = move |count: &Count| {
        if count.thoughts + count.acts >= steps { Next::Enough } else { Next::Act }
    };
    let harness = Harness::<Ctx, Count>::builder("counter")
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define.run(think).route(next, |signal| match signal {
                Next::Act => to(Step::Act),
                Next::Enough => end(),
            }),
            Step::Act => define.run(act).then(Step::Think),
        })
        .budget(Budget::unbounded("the route counts the steps"))
        .build()?;
    Ok(harness.agent("counter", ()))
}

pub(super) fn request(agent: &Agent<Ctx, Count>, steps: u64) -> RunRequest<Count> {
    agent.run(Count::update(), Ctx::runtime()._steps(steps).build())
}

pub(super) fn run(agent: &Agent<Ctx, Count>, steps: u64) {
    let outcome = block_on(async { request(agent, steps).await });
    let reached = outcome.ok().and_then(|it| it.state().map(|it| it.thoughts + it.acts));
    assert!(
        reached.is_some_and(|reached| reached >= steps),
        "the loop did not reach its end: {reached:?}"
    );
}

fn run_floor(steps: u64) {
    let count = block_on(floor::run(steps));
    assert!(count.is_ok_and(|count| count.thoughts + count.acts >= steps));
}

/// Ten to a million steps.
pub(super) fn bare() -> Vec<Figure> {
    [10, 1_000, 100_000, 1_000_000]
        .into_iter()
        .filter_map(|steps| {
            let agent = agent(steps).ok()?;
            let repeat = 100_000u64.div_ceil(steps).min(10_000);
            Some(compare(
                format!("loop-bare/{steps}"),
                steps * repeat,
                || (0..repeat).for_each(|_| run(&agent, steps)),
                || (0..repeat).for_each(|_| run_floor(steps)),
            ))
        })
        .collect()
}

/// What a run costs apart from its steps: runs of one step.
pub(super) fn fixed() -> Vec<Figure> {
    const RUNS: u64 = 10_000;
    let Ok(agent) = agent(1) else { return Vec::new() };
    let mut figure = compare(
        "loop-bare-run".to_owned(),
        RUNS,
        || (0..RUNS).for_each(|_| run(&agent, 1)),
        || (0..RUNS).for_each(|_| run_floor(1)),
    );
    figure.unit = "ns/run of 1 step";
    vec![figure]
}

/// Allocations of one step.
pub(super) fn allocations() -> Vec<Figure> {
    let ours = |steps| {
        if let Ok(agent) = agent(steps) {
            run(&agent, steps);
        }
    };
    vec![counting::compare("loop-bare-allocations", ours, run_floor)]
}
