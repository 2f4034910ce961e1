//@ names: `InDoubt`, `Retry`
//@ remedy: expected `InDoubt`

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Order {
    receipt: Option<String>,
}

async fn pay(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
    let charge = async || Ok("r-1".to_owned());
    let receipt = cx.once("pay", charge).in_doubt(Retry::exponential()).await?;
    Ok(Order::update().receipt(Some(receipt)))
}

fn main() {
    let _ = pay;
}
