//@ names: `Approve`
//@ remedy: #[question(answer = Decision)]

use harness::Question;
use serde::{Deserialize, Serialize};

#[derive(Question, Serialize, Deserialize)]
struct Approve {
    tool: String,
}

fn main() {
    let _ = Approve::NAME;
}
