//@ names: `Step`
//@ remedy: found `NeedsThenEndOrRoute
//@ lines: 12

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Add,
}

async fn add(_: View<Count>, _: Cx<()>) -> StepResult<Count> {
    Ok(Count::update().n(1))
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define.run(add),
        })
        .build();
}
