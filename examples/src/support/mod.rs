//! The agent of the programs `support` and `engine`: it helps the customers of a shop, and pays money
//! back only after a person has approved each refund.

mod script;

use std::path::PathBuf;
use std::sync::Arc;

use harness::BuildError;
use harness::approval::{Approval, Approve, Approved};
use harness::llm::{FnTool, ToolError, ToolSetError};
use harness::loops::{Conversation, tool_loop};
use harness::prelude::*;
use schemars::JsonSchema;

pub use script::model;

/// What the model asks for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Refund {
    order: String,
    cents: u64,
}

/// What a person is asked.
#[derive(Question, Clone, Debug, Serialize, Deserialize)]
#[question(answer = Approval)]
pub struct ApproveRefund {
    /// The number of the order.
    pub order: String,
    /// What the model wants to pay back.
    pub cents: u64,
}

/// The shop's bank: a file with a line for each payment.
#[derive(Clone, Debug)]
pub struct Bank {
    /// The file.
    pub payments: PathBuf,
}

impl Bank {
    fn pay(&self, refund: &Refund) -> Result<String, std::io::Error> {
        use std::io::Write as _;
        let mut file =
            std::fs::OpenOptions::new().create(true).append(true).open(&self.payments)?;
        file.write_all(format!("{} {}\n", refund.order, refund.cents).as_bytes())?;
        Ok(format!("paid {} cents for {}", refund.cents, refund.order))
    }
}

/// The tool that pays. A person approves each call, and a crash never makes one twice.
fn refund(bank: Bank) -> Approved<FnTool> {
    harness::llm::tool("refund", "Pays the money for an order back", move |refund: Refund| {
        let bank = bank.clone();
        async move { bank.pay(&refund).map_err(ToolError::from) }
    })
    .approve_with(|Refund { order, cents }| ApproveRefund { order: order.clone(), cents: *cents })
}

/// The price of an order.
#[tool(read)]
async fn price(
    /// The number of the order.
    order: String,
) -> Result<String, ToolError> {
    Ok(format!("{} cents", script::price(&order)))
}

/// The loop.
///
/// # Errors
/// It does not build.
pub fn support(model: Arc<dyn Llm>, bank: Bank) -> Result<Harness<(), Conversation>, NotBuilt> {
    let tools = ToolSet::builder().with(refund(bank)).with(price).build()?;
    Ok(tool_loop::<Conversation>(model, tools)
        .named("support")
        .system("You help the customers of a shop. Look up the price before you refund an order.")
        .build()?)
}

/// Why the loop does not build.
#[derive(Debug, thiserror::Error)]
pub enum NotBuilt {
    /// The loop itself.
    #[error(transparent)]
    Loop(#[from] BuildError),
    /// Its tools.
    #[error(transparent)]
    Tools(#[from] ToolSetError),
}
