//@ names: `flatten`
//@ remedy: wrap the field

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Inner {
    turns: u32,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[serde(flatten)]
    inner: Inner,
}

fn main() {}
