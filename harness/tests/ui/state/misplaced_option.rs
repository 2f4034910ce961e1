//@ names: `version`
//@ remedy: belongs on a struct

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(version = 3)]
    turns: u32,
}

fn main() {}
