//@ names: `Check`
//@ remedy: nest this one in another

use harness::prelude::*;

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

fn main() {
    let _ = Harness::<(), Draft>::builder("drafts")
        .start(Check::Read)
        .steps(|define, step| match step {
            Check::Read => define.run(read).end_with(Verdict::Good),
        })
        .build();
}
