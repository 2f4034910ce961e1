//@ names: `Step::Review`, `review::Step`
//@ remedy: write `#[step(nest)]`

use harness::StepId;

mod review {
    #[derive(harness::StepId, Clone, Debug, PartialEq)]
    pub enum Step {
        Approve,
    }
}

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    Write,
    Review(review::Step),
}

fn main() {
    let _ = (Step::all(), Step::Write.name());
}
