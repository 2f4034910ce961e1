//@ names: `nested`
//@ remedy: remove it

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(nested)]
    Think,
}

fn main() {}
