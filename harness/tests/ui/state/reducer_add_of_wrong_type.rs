//@ names: `add`, `String`
//@ remedy: supports integers, `f32`, `f64`, `Duration`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = add)]
    field: String,
}

fn main() {}
