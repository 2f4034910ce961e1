//@ names: `version`
//@ remedy: written as `version = 3`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
#[state(version)]
struct Chat {
    turns: u32,
}

fn main() {}
