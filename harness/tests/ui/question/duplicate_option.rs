//@ names: `answer`
//@ remedy: remove one of them

use harness::Question;
use serde::{Deserialize, Serialize};

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool, answer = u8)]
struct Approve {
    tool: String,
}

fn main() {}
