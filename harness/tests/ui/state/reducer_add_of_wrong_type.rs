//@ names: `add`, `String`
//@ remedy: takes the integers, `f32`, `f64` and `Duration`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = add)]
    field: String,
}

fn main() {}
