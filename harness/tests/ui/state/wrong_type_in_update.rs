//@ names: `turns`
//@ remedy: expected `u32`, found `&str`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = add)]
    turns: u32,
    answer: Option<String>,
}

fn main() {
    let _ = Chat::update().turns("one");
}
