//@ names: `reducer`
//@ remedy: `provides` and `esg`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reducer = add)]
    turns: u32,
}

fn main() {}
