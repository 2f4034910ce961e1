//@ names: `merge`, `Vec<u8>`
//@ remedy: supports `BTreeMap<K, V>` and `HashMap<K, V>`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = merge)]
    field: Vec<u8>,
}

fn main() {}
