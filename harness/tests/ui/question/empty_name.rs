//@ names: `Approve`
//@ remedy: remove `name`

use harness::Question;
use serde::{Deserialize, Serialize};

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool, name = "")]
struct Approve {
    tool: String,
}

fn main() {}
