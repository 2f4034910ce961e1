//@ names: `Start`
//@ remedy: derive(StepId

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Start {
    Add,
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter").start(Start::Add);
}
