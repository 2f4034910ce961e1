//@ names: `Count`
//@ remedy: derive(State

use harness::prelude::*;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    n: u32,
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter");
}
