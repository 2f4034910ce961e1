//@ names: `lines`
//@ remedy: convert items of another type to `String`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = append)]
    lines: Vec<String>,
}

fn main() {
    let _ = Chat::update().lines([1]);
}
