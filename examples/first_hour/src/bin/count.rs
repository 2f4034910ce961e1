//! Counts the lines of each file that it is given, four files at a time.
//!
//! ```text
//! count FILE...
//! ```

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    files: Vec<String>,
    #[state(reduce = append)]
    lines: Vec<String>,
    #[state(reduce = add)]
    total: usize,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Read,
}

async fn files(count: View<Count>, _cx: Cx<()>) -> Result<Vec<String>, StepError> {
    Ok(count.files.clone())
}

async fn read(file: String, _: View<Count>, _cx: Cx<()>) -> Result<(String, usize), StepError> {
    let lines = std::fs::read_to_string(&file)?.lines().count();
    Ok((file, lines))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counter = Harness::<(), Count>::builder("count")
        .start(Step::Read)
        .steps(|define, step| match step {
            Step::Read => define
                .each(files)
                .concurrency(4)
                .run(read)
                .fold_all(|_, counts| {
                    let mut update = Count::update();
                    for count in counts {
                        update = match count {
                            Ok((file, lines)) => {
                                update.lines([format!("{lines:6} {file}")]).total(lines)
                            }
                            Err(failure) => update.lines([format!("     - {failure}")]),
                        };
                    }
                    Ok(update)
                })
                .end(),
        })
        .build()?;
    let input = Count::update().files(std::env::args().skip(1).collect::<Vec<_>>());
    let ended = counter.agent("count", ()).run(input, ()).await?.ended()?;
    for line in &ended.state.lines {
        println!("{line}");
    }
    println!("{:6} in all", ended.state.total);
    Ok(())
}
