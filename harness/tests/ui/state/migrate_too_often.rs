//@ names: `migrate`
//@ remedy: version 2 has 1 before it

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Old {
    turns: u32,
}

fn from_v1(old: Old) -> Result<Chat, String> {
    Ok(Chat { turns: old.turns })
}

fn from_v0(old: u32) -> Result<Old, String> {
    Ok(Old { turns: old })
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
#[state(version = 2, migrate = from_v1, migrate = from_v0)]
struct Chat {
    turns: u32,
}

fn main() {}
