//@ names: size
//@ remedy: because it captures state from its environment

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

fn main() {
    let size = String::from("two");
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define
                .run(async move |_count, _cx| Ok(Count::update().n(size.len() as u32)))
                .end(),
        })
        .build();
}
