//@ names: Count, Has<Vec<String>>, log
//@ remedy: expected this to be `Vec<String>`

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(provides, reduce = keep, update = String)]
    lines: Vec<String>,
}

fn keep(lines: &mut Vec<String>, line: String) {
    lines.push(line);
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
