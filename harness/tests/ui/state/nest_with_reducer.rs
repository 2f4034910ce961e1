//@ names: `essay`
//@ remedy: remove `reduce`, or `nest`

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Essay {
    text: String,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Paper {
    #[state(nest, reduce = append)]
    essay: Essay,
}

fn main() {}
