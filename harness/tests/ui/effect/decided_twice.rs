//@ names: `probe`, `Once`
//@ remedy: Decided

use harness::step::InDoubt;
use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Order {
    receipt: Option<String>,
}

async fn pay(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
    let charge = async || Ok("r-1".to_owned());
    let look = async || Ok(None);
    let receipt = cx.once("pay", charge).in_doubt(InDoubt::Retry).probe(look).await?;
    Ok(Order::update().receipt(Some(receipt)))
}

fn main() {
    let _ = pay;
}
