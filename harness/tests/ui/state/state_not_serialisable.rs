//@ names: `Chat`
//@ remedy: #[derive(serde::Serialize)]

use harness::State;

#[derive(State, Clone, Debug, Default)]
struct Chat {
    turns: u32,
}

fn main() {}
