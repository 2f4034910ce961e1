//@ names: `upsert`, `String`
//@ remedy: supports `Vec<T>`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = upsert(id))]
    field: String,
}

fn main() {}
