//@ names: `Chat`
//@ remedy: give them names

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat(u32);

fn main() {}
