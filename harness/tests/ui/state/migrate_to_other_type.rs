//@ names: `from_v1`
//@ remedy: expected

use harness::State;
use serde::{Deserialize, Serialize};

fn from_v1(old: u32) -> Result<String, String> {
    Ok(old.to_string())
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
#[state(version = 2, migrate = from_v1)]
struct Chat {
    turns: u32,
}

fn main() {}
