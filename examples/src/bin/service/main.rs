//! An agent as an HTTP service: sessions are started, watched, listed and answered over HTTP, in the
//! format of [AG-UI](https://docs.ag-ui.com), and continue after the service was killed.
//!
//! ```text
//! cargo run -p examples --bin service -- --store sqlite:service.db
//! curl localhost:8080/sessions/n-1 -d '{"text": "Closed on Friday", "input": "1"}' # a first turn
//! curl -N localhost:8080/sessions/n-1/events                     # its events, live
//! curl localhost:8080/waiting                                    # what waits for a person
//! curl localhost:8080/sessions/n-1/resume \
//!     -d '[{"interruptId": "ID", "status": "resolved", "payload": true}]'
//! curl localhost:8080/sessions/n-1                               # where it is
//! ```
//!
//! The handlers only write to the store. A worker in the same process runs the sessions, so a second
//! service on the same store takes part in the work, and continues what a killed one has left.

mod agui;
mod routes;

use std::error::Error;
use std::future::IntoFuture as _;
use std::net::SocketAddr;

use clap::Parser;
use harness::BuildError;
use harness::prelude::*;
use harness::worker::Worker;
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(name = "service", about = "An agent behind HTTP")]
struct Options {
    /// Where the sessions are: `sqlite:FILE`, `file:DIR`, `postgres://..`, `redis://..`
    #[arg(long, value_name = "URL", default_value = "memory:")]
    store: String,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
}

/// A notice that a person releases.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Notice {
    text: String,
    /// The text as it was published.
    published: Option<String>,
}

/// What a person is asked. Front ends show the `message`.
#[derive(Question, Clone, Debug, Serialize, Deserialize)]
#[question(answer = bool)]
struct Release {
    message: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Tidy,
    Publish,
}

async fn tidy(notice: View<Notice>, _: Cx<()>) -> StepResult<Notice> {
    let words: Vec<&str> = notice.text.split_whitespace().collect();
    Ok(Notice::update().text(words.join(" ")).published(None))
}

/// Publishes the notice, if a person allows it: once, whatever becomes of this process.
async fn publish(notice: View<Notice>, cx: Cx<()>) -> StepResult<Notice> {
    let message = format!("Publish `{}`?", notice.text);
    if !cx.ask("release", Release { message }).await? {
        return Ok(Notice::update());
    }
    let text = notice.text.clone();
    let published = cx.once("publish", async move || Ok(text)).at_most_once().await?;
    Ok(Notice::update().published(Some(published)))
}

fn notices() -> Result<Harness<(), Notice>, BuildError> {
    Harness::builder("notices")
        .start(Step::Tidy)
        .steps(|define, step| match step {
            Step::Tidy => define.run(tidy).then(Step::Publish),
            Step::Publish => define.run(publish).end(),
        })
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Options { store, listen } = Options::parse();
    let store = harness_store::open(&store).await?;
    let events = agui::Events::default();
    let agent = notices()?.agent("notices", ()).shared_store(store.clone()).observe(events.clone());

    let listener = TcpListener::bind(listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let service = routes::service(agent.clone(), store, events);
    let worker = Worker::new().serve(&agent, |_session| async { Ok(()) }).start()?;
    tokio::select! {
        served = axum::serve(listener, service).into_future() => served?,
        () = terminated() => {}
    }
    // The runs at work settle first; what is due after that, another service takes.
    worker.drain().await;
    Ok(())
}

/// Waits for a signal that ends the process.
async fn terminated() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    if let Ok(mut terminate) = signal(SignalKind::terminate()) {
        tokio::select! {
            _ = interrupted => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    let _ = interrupted.await;
}
