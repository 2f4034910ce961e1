//@ names: `Step`
//@ remedy: needs an enum

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
struct Step;

fn main() {}
