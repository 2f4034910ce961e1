//@ names: `Chat`
//@ remedy: wrap it in a struct

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
enum Chat {
    #[default]
    Empty,
}

fn main() {
    let _ = Chat::update();
}
