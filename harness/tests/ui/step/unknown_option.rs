//@ names: `nested`
//@ remedy: on a variant are `nest`

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    #[step(nested)]
    Think,
}

fn main() {}
