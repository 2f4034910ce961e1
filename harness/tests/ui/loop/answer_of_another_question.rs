//@ names: renamed, Answered<Approve>, Answered<Rename>
//@ remedy: expected function signature

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Approve {
    n: u32,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct Rename {
    old: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Add,
}

async fn approve(count: View<Count>, _: Cx<()>) -> Result<Approve, StepError> {
    Ok(Approve { n: count.n })
}

async fn renamed(_: View<Count>, _: Cx<()>, said: Answered<Rename>) -> StepResult<Count> {
    Ok(Count::update().n(said.answer.len() as u32))
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define.ask(approve).answer(renamed).end(),
        })
        .build();
}
