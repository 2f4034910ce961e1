//@ names: `Step::Write`
//@ remedy: write the name that the step had before

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(alias = "")]
    Write,
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
