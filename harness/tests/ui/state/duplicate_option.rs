//@ names: `reduce`
//@ remedy: remove one of them

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = add, reduce = add)]
    turns: u32,
}

fn main() {}
