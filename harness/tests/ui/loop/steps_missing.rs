//@ names: `Step`
//@ remedy: call `.steps(..)` before

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

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .build();
}
