//@ names: `Step::Review`
//@ remedy: write `Review(review::Step)`

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    Write,
    #[step(nest)]
    Review(Box<Step>, Box<Step>),
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
