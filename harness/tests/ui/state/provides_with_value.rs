//@ names: `provides`
//@ remedy: must be written as `provides`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(provides = Notes)]
    notes: Vec<String>,
}

fn main() {}
