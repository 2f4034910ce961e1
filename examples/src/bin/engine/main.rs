//! The agent of `support`, run by a Restate server instead of by its own process: tickets are started
//! by HTTP, refunds are approved by any process, and if the service is killed, the next one continues its
//! tickets.
//!
//! ```text
//! restate-server &                                          # ports 8080 and 9070
//! cargo run -p examples --bin engine -- serve               # the process that works
//! cargo run -p examples --bin engine -- start t-1 "o-7 and o-9 are broken"
//! cargo run -p examples --bin engine -- list                # what waits
//! cargo run -p examples --bin engine -- approve t-1 o-7
//! cargo run -p examples --bin engine -- reject t-1 o-9 "it was never paid"
//! cargo run -p examples --bin engine                        # all of this, and a kill -9 in the middle
//! ```
//!
//! `HARNESS_RESTATE_INGRESS` and `HARNESS_RESTATE_ADMIN` say where another server is. Without this program,
//! `curl localhost:8080/restate/send/support/t-1/start -H 'content-type: application/json' -d @input.json`
//! starts a ticket, too.

mod commands;
mod story;

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use examples::support::{self, Bank, support};
use harness::id::AgentId;
use harness::loops::Conversation;
use harness::prelude::*;
use harness_store::restate::{RestateService, RestateStore};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Clone, Debug, Parser)]
#[command(about = "Refunds that a person approves, on a Restate server")]
struct Options {
    #[command(subcommand)]
    command: Option<Do>,
    /// The name of the agent: tickets of one name are served by one service
    #[arg(long, global = true, value_name = "NAME", default_value = "support")]
    agent: String,
    /// The file of the payments
    #[arg(long, global = true, value_name = "FILE", default_value = "payments.txt")]
    payments: PathBuf,
}

#[derive(Clone, Debug, Subcommand)]
enum Do {
    /// Works on the tickets until it is interrupted
    Serve {
        /// Where the server reaches this process
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
        listen: SocketAddr,
        /// Never answers, as a model that hangs
        #[arg(long, hide = true)]
        hangs: bool,
    },
    /// Starts a ticket with a message of the customer, or continues one
    Start { ticket: String, message: String },
    /// Lists the refunds that wait for an approval
    List,
    /// Approves a refund
    Approve { ticket: String, order: String },
    /// Rejects a refund, for a reason that the model is sent
    Reject { ticket: String, order: String, reason: String },
}

impl Options {
    /// The tickets, from outside of the service.
    fn tickets(&self) -> Fallible<RestateStore> {
        let set = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let ingress = set("HARNESS_RESTATE_INGRESS", "http://127.0.0.1:8080");
        let admin = set("HARNESS_RESTATE_ADMIN", "http://127.0.0.1:9070");
        Ok(RestateStore::new(&AgentId::new(&*self.agent), &ingress, &admin)?)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let done = match options.command.clone() {
        Some(Do::Serve { listen, hangs }) => serve(&options, listen, hangs).await,
        Some(command) => commands::run(&options, command).await,
        None => story::run(options).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("engine: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The process that works. The harness is the one that runs on every store.
async fn serve(options: &Options, listen: SocketAddr, hangs: bool) -> Fallible<()> {
    let model: Arc<dyn Llm> = match hangs {
        true => Arc::new(story::hanging_model()),
        false => Arc::new(support::model()),
    };
    let bank = Bank { payments: options.payments.clone() };
    let agent: Agent<(), Conversation> = support(model, bank)?.agent(&*options.agent, ());
    let service = RestateService::new().serve(&agent, |_ticket| async { Ok(()) });
    let service = service.listen(listen).await?;
    let address = service.address();
    let work = tokio::spawn(service.run_until(tokio::signal::ctrl_c()));
    options.tickets()?.register(&format!("http://{address}")).await?;
    println!("works at {address}");
    Ok(work.await?)
}
