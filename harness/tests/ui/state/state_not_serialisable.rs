//@ names: `Chat`
//@ remedy: #[derive(serde::Serialize)]

use harness::State;
use serde::Serialize;

#[derive(Serialize)]
struct Other;

#[derive(State, Clone, Debug, Default)]
struct Chat {
    turns: u32,
}

fn main() {}
