//! The sessions of any store in a browser: which there are, where each of them is, what waits for a
//! person. The agents run elsewhere.
//!
//! ```text
//! cargo run -p examples --bin support -- start t-1 "o-7 is broken" --store shop
//! cargo run -p examples --bin inspector -- --store file:shop/store --allow-answers
//! ```
//!
//! The page leaves an answer in the inbox of the session. A worker, or the next run, applies it.
//!
//! On an address that other machines reach, it needs a token in `INSPECTOR_TOKEN`.

use std::error::Error;
use std::net::SocketAddr;

use clap::Parser;
use harness_inspector::Inspector;

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(name = "inspector", about = "The sessions of a store in a browser")]
struct Options {
    /// Where the sessions are: `sqlite:FILE`, `file:DIR`, `postgres://..`, `redis://..`,
    /// `restate://HOST:PORT/AGENT`
    #[arg(long, value_name = "URL")]
    store: String,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Answers questions, stops, forks and corrects sessions, and queues inputs
    #[arg(long)]
    allow_answers: bool,
    /// A name of this machine under which browsers reach it
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// The name that forms suggest as the author of an answer
    #[arg(long, value_name = "NAME", default_value = "")]
    by: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Options { store, listen, allow_answers, host, by } = Options::parse();
    let mut inspector = Inspector::new(harness_store::open(&store).await?).suggest_name(by);
    if allow_answers {
        inspector = inspector.allow_answers();
    }
    // Not on the command line, which every process of the machine can read.
    if let Ok(token) = std::env::var("INSPECTOR_TOKEN") {
        inspector = inspector.token(token);
    }
    let inspector = host.into_iter().fold(inspector, Inspector::host);
    let serving = inspector.bind(listen).await?;
    println!("listening on http://{}", serving.local_addr()?);
    tokio::select! {
        served = serving.serve() => served?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}
