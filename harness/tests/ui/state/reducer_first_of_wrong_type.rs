//@ names: `first`, `String`
//@ remedy: supports `Option<T>`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = first)]
    field: String,
}

fn main() {}
