//@ names: `Ctx`, `OtherFixed`
//@ remedy: takes `Ctx::fixed()..build()`

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(Context)]
struct Ctx {
    greeting: String,
}

#[derive(Context)]
struct Other {
    size: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Add,
}

async fn add(_: View<Count>, _: Cx<Ctx>) -> StepResult<Count> {
    Ok(Count::update().n(1))
}

fn main() {
    let _ = Harness::<Ctx, Count>::builder("counter")
        .provide(Other::fixed().size(1).build())
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define.run(add).end(),
        })
        .build();
}
