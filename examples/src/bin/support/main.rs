//! An agent that helps the customers of a shop. It pays money back only after a person has approved
//! each refund. Every command is a process of its own: the tickets wait in a file store between them.
//!
//! ```text
//! cargo run -p examples --bin support -- start t-1 "o-7 and o-9 are broken"
//! cargo run -p examples --bin support -- list                              # what waits
//! cargo run -p examples --bin support -- approve t-1 o-7 --cents 500       # less than it wants
//! cargo run -p examples --bin support -- reject t-1 o-9 "it was never paid"
//! cargo run -p examples --bin support -- show t-1
//! cargo run -p examples --bin support -- work                              # continues what is answered
//! ```
//!
//! The `inspector` shows the tickets in a browser, and leaves answers to a process that works.
//!
//! Without a key the model is a script. `--model anthropic/claude-sonnet-4-5` uses another one.

mod commands;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    ExitCode::from(commands::run(commands::Options::parse()).await)
}
