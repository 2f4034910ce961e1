//@ names: `Verdict`
//@ remedy: #[derive(Signal, Clone, Copy)]

use harness::StepId;

#[derive(Clone, Copy, Debug)]
enum Verdict {
    Good,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
#[step(ends = Verdict)]
enum Step {
    Read,
}

fn main() {
    let _ = Verdict::Good;
}
