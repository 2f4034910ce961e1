//@ names: `Draft`, `Step::Write`, `Step::Review`
//@ remedy: remove one of them

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(alias = "Draft")]
    Write,
    #[step(alias = "Draft")]
    Review,
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
