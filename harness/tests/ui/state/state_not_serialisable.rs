//@ names: `Chat`
//@ remedy: write `#[derive(Serialize, Deserialize)]` above `Chat`
//@ lines: 20

use harness::State;
use serde::Serialize;

#[derive(Serialize)]
struct Other;

#[derive(State, Clone, Debug, Default)]
struct Chat {
    turns: u32,
}

fn main() {}
