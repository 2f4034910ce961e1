//@ names: `Receipt`, `once`
//@ remedy: write `#[derive(Serialize, Deserialize)]` above `Receipt`
//@ lines: 48

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Order {
    receipt: Option<String>,
}

struct Receipt;

async fn pay(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
    cx.once("pay", async || Ok(Receipt)).await?;
    Ok(Order::update())
}

fn main() {
    let _ = pay;
}
