//@ names: `union`, `Vec<u8>`
//@ remedy: takes a `BTreeSet<T>` or a `HashSet<T>`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = union)]
    field: Vec<u8>,
}

fn main() {}
