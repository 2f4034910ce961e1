//@ names: `Chat`, `Vec<String>`, lines
//@ remedy: conflicting implementations of trait `Has<Vec<String>>` for type `Chat`

use harness::State;
use serde::{Deserialize, Serialize};

type Notes = Vec<String>;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(provides)]
    lines: Vec<String>,
    #[state(provides)]
    notes: Notes,
}

fn main() {}
