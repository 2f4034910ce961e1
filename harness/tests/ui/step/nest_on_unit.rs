//@ names: `Step::Review`
//@ remedy: write `Review(review::Step)`

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    Write,
    #[step(nest)]
    Review,
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
