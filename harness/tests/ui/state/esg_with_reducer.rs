//@ names: `esg`
//@ remedy: remove
use harness::code::Code;
use harness::prelude::*;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Analysis {
    #[state(esg, reduce = append)]
    code: Code,
}

fn main() {}
