//@ names: `Chat`, `Vec<String>`, `lines`, `notes`
//@ remedy: remove one `provides`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(provides, reduce = append)]
    lines: Vec<String>,
    #[state(provides)]
    notes: Vec<String>,
}

fn main() {}
