//@ names: Ended<Count>
//@ remedy: an ended session takes its next input by `agent.run(input, slots).session(id)`
//@ lines: 20

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

async fn again(agent: &Agent<(), Count>) -> Result<(), Box<dyn std::error::Error>> {
    let ended = agent.run(Count::update(), ()).await?.ended()?;
    agent.resume(&ended, Answers::none(), ()).await?;
    Ok(())
}

fn main() {}
