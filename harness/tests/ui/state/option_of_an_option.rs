//@ names: `answer`, `notes`
//@ remedy: use an enum with a variant for each case
//@ lines: 12

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    answer: Option<Option<String>>,
    notes: Vec<Option<Option<u8>>>,
}

fn main() {}
