//@ names: `Count`, `Vec<String>`, note
//@ remedy: write `#[state(provides)]` above the field of type `Vec<String>` in `Count`

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(provides, reduce = append)]
    lines: Vec<u32>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Note,
}

async fn note<S: Has<Vec<String>, Change = Vec<String>>>(_: View<S>, _: Cx<()>) -> StepResult<S> {
    Ok(S::change(S::update(), vec!["more".to_owned()]))
}

fn main() {
    let _ = Harness::<(), Count>::builder("counter")
        .start(Step::Note)
        .steps(|define, step| match step {
            Step::Note => define.run(note).end(),
        })
        .build();
}
