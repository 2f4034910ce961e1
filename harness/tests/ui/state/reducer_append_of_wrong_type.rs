//@ names: `append`, `u32`
//@ remedy: supports `Vec<T>` and `VecDeque<T>`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = append)]
    field: u32,
}

fn main() {}
