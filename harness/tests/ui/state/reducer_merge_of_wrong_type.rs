//@ names: `merge`, `Vec<u8>`
//@ remedy: takes a `BTreeMap<K, V>` or a `HashMap<K, V>`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = merge)]
    field: Vec<u8>,
}

fn main() {}
