//@ names: `Decision`
//@ remedy: JsonSchema

use harness::Question;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum Decision {
    Yes,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = Decision)]
struct Approve {
    tool: String,
}

fn main() {}
