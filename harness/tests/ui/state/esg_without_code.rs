//@ names: `Analysis`
//@ remedy: give it a field: `#[state(esg)] code: Code`
use harness::code::{self, Bench};
use harness::prelude::*;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Analysis {
    task: String,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    bench: Bench,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Run,
}

fn main() {
    let _ = Harness::<Ctx, Analysis>::builder("analyst").start(Step::Run).steps(|define, step| {
        match step {
            Step::Run => define.handler(code::execute(|cx: &Ctx| cx.bench.clone())).end(),
        }
    });
}
