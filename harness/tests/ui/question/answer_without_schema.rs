//@ names: `Decision`
//@ remedy: write `#[derive(schemars::JsonSchema)]` above
//@ lines: 20

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
