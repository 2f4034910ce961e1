//@ names: `transcript`, `Notes`
//@ remedy: implement `harness::state::Fold`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Notes {
    lines: Vec<String>,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)]
    notes: Notes,
}

fn main() {}
