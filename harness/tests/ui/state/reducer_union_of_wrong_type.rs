//@ names: `union`, `Vec<u8>`
//@ remedy: supports `BTreeSet<T>` and `HashSet<T>`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = union)]
    field: Vec<u8>,
}

fn main() {}
