//@ names: `bool`
//@ remedy: returns nothing, or `harness::state::Edits`

use harness::State;
use serde::{Deserialize, Serialize};

fn longest(field: &mut String, change: String) -> bool {
    *field = change;
    true
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = longest)]
    line: String,
}

fn main() {}
