//@ names: `reply`
//@ remedy: `answer = Decision` and `name = "approve"`

use harness::Question;
use serde::{Deserialize, Serialize};

#[derive(Question, Serialize, Deserialize)]
#[question(reply = bool)]
struct Approve {
    tool: String,
}

fn main() {}
