//@ names: add, Cx<Ctx>, Cx<()>
//@ remedy: expected function signature

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    greeting: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Add,
}

async fn add(_: View<Count>, cx: Cx<Ctx>) -> StepResult<Count> {
    Ok(Count::update().n(cx.greeting.len() as u32))
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define.run(add).end(),
        })
        .build();
}
