//@ names: `Review`, `Step::Write`
//@ remedy: remove one of them

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(alias = "Review")]
    Write,
    Review,
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
