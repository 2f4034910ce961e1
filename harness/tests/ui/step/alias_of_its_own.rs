//@ names: `Write`
//@ remedy: remove this alias

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(alias = "Write")]
    Write,
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
