//@ names: `max`, `u32`
//@ remedy: supports `Option<T>`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = max)]
    field: u32,
}

fn main() {}
