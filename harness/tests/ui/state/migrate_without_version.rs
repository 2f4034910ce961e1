//@ names: `migrate`
//@ remedy: `version = 2`

use harness::State;
use serde::{Deserialize, Serialize};

fn from_v1(old: u32) -> Result<Chat, String> {
    Ok(Chat { turns: old })
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
#[state(migrate = from_v1)]
struct Chat {
    turns: u32,
}

fn main() {}
