//@ names: `versoin`
//@ remedy: `version = 3` and `migrate = from_v2`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
#[state(versoin = 3)]
struct Chat {
    turns: u32,
}

fn main() {}
