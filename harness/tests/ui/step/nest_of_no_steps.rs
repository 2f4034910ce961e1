//@ names: `String`
//@ remedy: write `#[derive(StepId, Clone, Debug, PartialEq)]` above the enum

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    Write,
    #[step(nest)]
    Review(String),
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
