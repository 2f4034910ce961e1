//@ names: `longest`
//@ remedy: expected `usize`, found `String`

use harness::State;
use serde::{Deserialize, Serialize};

fn longest(field: &mut String, change: usize) {
    field.truncate(change);
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = longest)]
    line: String,
}

fn main() {}
