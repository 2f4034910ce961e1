//@ names: `to`
//@ remedy: `async move || ..`, with clones
//@ lines: 20

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

async fn write(_: View<Count>, cx: Cx<()>) -> StepResult<Count> {
    let to = "all".to_owned();
    let _sent: String = cx.once("send", async || Ok(to.clone())).await?;
    Ok(Count::update())
}

fn main() {
    let _ = write;
}
