//@ names: `Vec<String>`
//@ remedy: harness::code::Code
use harness::prelude::*;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Analysis {
    task: String,
    #[state(esg)]
    code: Vec<String>,
}

fn main() {}
