//@ names: `AddOne`, `Count`
//@ remedy: implement `Handler<(), Count>` for it

use harness::prelude::*;

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
enum Step {
    Add,
}

struct AddOne;

#[async_trait]
impl Handler<(), Draft> for AddOne {
    async fn run(&self, _: View<Draft>, _: Cx<()>) -> StepResult<Draft> {
        Ok(Draft::update())
    }
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Add)
        .steps(|define, step| match step {
            Step::Add => define.handler(AddOne).end(),
        })
        .build();
}
