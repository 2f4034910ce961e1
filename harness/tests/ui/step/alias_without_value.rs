//@ names: `alias`
//@ remedy: alias = "Old"

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(alias)]
    Write,
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
