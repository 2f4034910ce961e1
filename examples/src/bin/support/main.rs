//! An agent that helps the customers of a shop. It pays money back only after a person has approved
//! each refund. Every command is a process of its own: the tickets wait in a file store between them.
//!
//! ```text
//! cargo run -p examples --bin support -- start t-1 "o-7 and o-9 are broken"
//! cargo run -p examples --bin support -- list                              # what waits
//! cargo run -p examples --bin support -- approve t-1 o-7 --cents 500       # less than it wants
//! cargo run -p examples --bin support -- reject t-1 o-9 "it was never paid"
//! cargo run -p examples --bin support -- show t-1
//! ```
//!
//! Without a key the model is a script. `--model anthropic/claude-sonnet-4-5` uses another one.

mod commands;
mod script;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use harness::approval::{Approval, Approve, Approved};
use harness::llm::ToolError;
use harness::loops::{Conversation, tool_loop};
use harness::prelude::*;
use schemars::JsonSchema;

#[tokio::main]
async fn main() -> ExitCode {
    ExitCode::from(commands::run(commands::Options::parse()).await)
}

/// What the model asks for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Refund {
    order: String,
    cents: u64,
}

/// What a person is asked.
#[derive(Question, Clone, Debug, Serialize, Deserialize)]
#[question(answer = Approval)]
struct ApproveRefund {
    order: String,
    cents: u64,
}

/// The shop's bank: a file with a line for each payment.
#[derive(Clone, Debug)]
struct Bank {
    payments: PathBuf,
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
fn refund(bank: Bank) -> Approved<harness::llm::FnTool> {
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
fn support(
    model: Arc<dyn Llm>,
    bank: Bank,
) -> Result<Harness<(), Conversation>, commands::Problem> {
    let tools = ToolSet::builder().with(refund(bank)).with(price).build()?;
    Ok(tool_loop::<Conversation>(model, tools)
        .named("support")
        .system("You help the customers of a shop. Look up the price before you refund an order.")
        .build()?)
}
