//@ names: `Row`, `key`
//@ remedy: available field is: `id`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    id: u8,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = upsert(key))]
    rows: Vec<Row>,
}

fn main() {}
