//@ names: `update`
//@ remedy: add `reduce = my_function`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(update = String)]
    lines: Vec<String>,
}

fn main() {}
