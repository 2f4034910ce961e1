//@ names: `Step::Write`
//@ remedy: write the former name of the step

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(alias = "")]
    Write,
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
