//@ names: `Step`
//@ remedy: at least one variant

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {}

fn main() {}
