//@ names: `&str`
//@ remedy: one without takes `()`
//@ lines: 18

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

fn agent(harness: &Harness<(), Count>) -> Agent<(), Count> {
    harness.agent("a", "prompt")
}

fn main() {}
