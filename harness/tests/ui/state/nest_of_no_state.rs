//@ names: `title`, `String`
//@ remedy: #[derive(State, Clone, Default, Serialize, Deserialize)]

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Paper {
    #[state(nest)]
    title: String,
}

fn main() {}
