//@ names: `size`
//@ remedy: `size` is a reference that is only valid in the function body

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

fn declare(size: &u32) {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(move |define, step| match step {
            Step::Add => define
                .run(move |_count, _cx| async move { Ok(Count::update().n(*size)) })
                .end(),
        })
        .build();
}

fn main() {
    declare(&2);
}
