//@ names: `Chat`
//@ remedy: use concrete types

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat<T> {
    turns: T,
}

fn main() {}
