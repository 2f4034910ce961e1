//@ names: add, View<Draft>, View<Count>
//@ remedy: expected function signature

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Draft {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Add,
}

async fn add(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> {
    Ok(Draft::update().text("more"))
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define.run(add).end(),
        })
        .build();
}
