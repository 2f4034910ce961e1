//@ names: `Verdict`, `Other`
//@ remedy: expected `Verdict`, found `Other`

use harness::prelude::*;
use harness::{Define, declare::StepDef};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Draft {
    text: String,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Verdict {
    Good,
    Bad,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
#[step(ends = Verdict)]
enum Check {
    Read,
}

async fn read(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> {
    Ok(Draft::update().text("more"))
}

#[derive(Signal, Clone, Copy, Debug)]
enum Other {
    Done,
}

fn check(define: Define<(), Draft, Check>, step: Check) -> StepDef<(), Draft, Check> {
    match step {
        Check::Read => define.run(read).end_with(Verdict::Good),
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    #[step(nest)]
    Check(Check),
}

fn main() {
    let _ = Harness::<(), Draft>::builder("drafts")
        .start(Step::Check(Check::Read))
        .steps(|define, step| match step {
            Step::Check(step) => define.nest(Step::Check, check, step).route(|verdict| match verdict {
                Other::Done => end(),
            }),
        })
        .build();
}
