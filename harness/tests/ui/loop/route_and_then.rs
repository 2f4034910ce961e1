//@ names: `then`
//@ remedy: method `then` is available on `NeedsThenEndOrRoute

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

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    More,
    Enough,
}

async fn add(_: View<Count>, _: Cx<()>) -> StepResult<Count> {
    Ok(Count::update().n(1))
}

fn next(count: &Count) -> Next {
    if count.n < 3 {
        Next::More
    } else {
        Next::Enough
    }
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define
                .run(add)
                .route(next, |next| match next {
                    Next::More => to(Step::Add),
                    Next::Enough => end(),
                })
                .then(Step::Add),
        })
        .build();
}
