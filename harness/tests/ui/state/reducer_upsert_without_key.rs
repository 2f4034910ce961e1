//@ names: `upsert`, `rows`
//@ remedy: write `upsert(id)`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = upsert)]
    rows: Vec<u8>,
}

fn main() {}
