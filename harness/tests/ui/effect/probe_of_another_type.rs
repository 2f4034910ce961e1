//@ names: `probe`, `Option<String>`
//@ remedy: expected

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Order {
    receipt: Option<String>,
}

async fn pay(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
    let charge = async || Ok("r-1".to_owned());
    let look = async || Ok("r-1".to_owned());
    let receipt: String = cx.once("pay", charge).probe(look).await?;
    Ok(Order::update().receipt(Some(receipt)))
}

fn main() {
    let _ = pay;
}
