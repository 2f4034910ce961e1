//@ names: `Count`, `Vec<String>`, log
//@ remedy: write `#[state(provides)]` above the field of type `Vec<String>` in `Count`

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Log,
}

async fn log<S, C>(lines: View<S>, _: Cx<C>) -> StepResult<S>
where
    S: Has<Vec<String>, Change = Vec<String>>,
    C: Context,
{
    let count = lines.part().len();
    Ok(S::change(S::update(), vec![format!("line {count}")]))
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Log)
        .steps(|define, step| match step {
            Step::Log => define.run(log).end(),
        })
        .build();
}
