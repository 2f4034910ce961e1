//@ names: `size`
//@ remedy: use the `move` keyword

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

fn declare(size: u32) {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(move |define, step| match step {
            Step::Add => define
                .run(|_count, _cx| {
                    let n = size;
                    async move { Ok(Count::update().n(n)) }
                })
                .end(),
        })
        .build();
}

fn main() {
    declare(2);
}
