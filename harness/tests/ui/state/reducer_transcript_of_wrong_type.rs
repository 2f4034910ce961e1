//@ names: `transcript`, `String`
//@ remedy: supports `Transcript`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)]
    field: String,
}

fn main() {}
