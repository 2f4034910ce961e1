//@ names: `Chat`
//@ remedy: name them

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat(u32);

fn main() {}
