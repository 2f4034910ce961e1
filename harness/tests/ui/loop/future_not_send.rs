//@ names: `add`, `counter`, `Rc<u32>`
//@ remedy: `counter` maybe used later

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Add,
}

async fn add(_: View<Count>, _: Cx<()>) -> StepResult<Count> {
    let counter = std::rc::Rc::new(1);
    tokio::task::yield_now().await;
    Ok(Count::update().n(*counter))
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define.run(add).end(),
        })
        .build();
}

/// Another `Send`, so that the message names the trait by its path whatever crates are compiled.
pub mod other {
    pub struct Send;
}
