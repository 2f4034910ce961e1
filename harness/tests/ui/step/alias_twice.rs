//@ names: `Draft`
//@ remedy: remove this alias

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(alias = "Draft", alias = "Draft")]
    Write,
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
