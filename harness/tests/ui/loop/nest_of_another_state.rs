//@ names: check, `Define<(), Count, Check>`, `Define<(), Draft, Check>`
//@ remedy: expected function signature

use harness::prelude::*;
use harness::{Define, declare::StepDef};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Draft {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Check {
    Read,
}

async fn read(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> {
    Ok(Draft::update().text("more"))
}

fn check(define: Define<(), Draft, Check>, step: Check) -> StepDef<(), Draft, Check> {
    match step {
        Check::Read => define.run(read).end(),
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    #[step(nest)]
    Check(Check),
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Check(Check::Read))
        .steps(|define, step| match step {
            Step::Check(step) => define.nest(Step::Check, check, step).end(),
        })
        .build();
}
