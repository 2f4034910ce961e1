//! OpenTelemetry for [`harness`](https://docs.rs/harness): the spans of runs, and metrics of them.
//!
//! One call sets it up. An agent that is observed has metrics, too:
//!
//! ```
//! use harness::prelude::*;
//! use harness_otel::Telemetry;
//! # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { text: String }
//! # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let telemetry = Telemetry::builder("support").attribute("service.version", "1.2").console().install()?;
//!
//! # let harness = Harness::<(), Doc>::builder("writer").start(Step::Write).steps(|define, step| match step {
//! #     Step::Write => define.run(|_, _| async move { Ok(Doc::update().text("hi")) }).end(),
//! # }).build()?;
//! let agent = harness.agent("writer", ()).observe(telemetry.metrics());
//! agent.run(Doc::update(), ()).await?.ended()?;
//!
//! telemetry.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! `.http("http://localhost:4318")` and `.grpc("http://localhost:4317")` export to a receiver by OTLP, with
//! the features of these names. `https://` needs `http-tls` or `grpc-tls`, and trusts the certificates that
//! the system trusts; `.header("authorization", token)` sends a token. A program that has a `tracing`
//! subscriber [adds a layer](Builder::layer) to it instead.
//!
//! # Spans
//!
//! ```text
//! invoke_agent support           a run: its session, how it has settled, what it has spent
//! ├── step Think                 an entry into a step: all attempts, and the retries as events
//! │   └── chat claude-x          a model call: its tokens, its cost, why it stopped
//! ├── step Run
//! │   └── replay Run             a program of code steps: those that ran, as events
//! └── step Act
//!     ├── item Act 0             an item of a step
//!     │   └── execute_tool find
//!     └── item Act 1
//!         └── invoke_agent find  a run that the step has started
//! ```
//!
//! Spans that the program and its libraries make in a step are in the step's span, those of a model's
//! adapter in that of its call. A span is exported within a second of its end, and all spans of a run
//! that has settled are over, also where a task still holds one. A task that outlives the step or the run
//! that started it has traces of its own, with links to them.
//!
//! A run that waits for an answer, or was stopped, is not an error. The run that resumes it, maybe in
//! another process and days later, has a trace of its own, with a link to the run before: the session
//! keeps the context. It also has links to where the answer was given, or the input of its turn was sent,
//! if that was in a span. A run that a step has started in another process, or that continues there,
//! has a link to that step. Requests to models and to MCP servers carry the context of their call.
//! [`RunRequest::trace`](harness::RunRequest::trace) makes a run a part of the trace
//! of a request.
//!
//! Whether a run is sampled is decided once, when it begins. One that is not has no spans of steps and
//! calls, which then cost nothing.
//!
//! Prompts, replies, arguments, results, questions, answers and messages of errors are not exported.
//! Errors have their kind, and items of a step the key that it [declares](harness::declare::NeedsItemBody::key),
//! if it does. [`Builder::content`] exports the messages of model calls, and the arguments and
//! results of tool calls; they, and what spans of other crates contain, can be
//! [redacted](Builder::redact).
//!
//! # Metrics
//!
//! [`Metrics`] counts what runs report. [`semconv`] has all names.
//!
//! | metric | of | attributes |
//! |---|---|---|
//! | `gen_ai.client.token.usage` | tokens of a model call | provider, model, `input` or `output` |
//! | `gen_ai.client.operation.duration` | seconds of a model call | provider, model, error |
//! | `gen_ai.execute_tool.duration` | seconds of a tool call | tool, outcome, error |
//! | `gen_ai.invoke_agent.duration` | seconds of a run | agent, end, error |
//! | `harness.step.duration` | seconds of a step or an item | agent, step, outcome |
//! | `harness.commits`, `harness.commit.size` | commits, and the sizes of their entries in the log | agent |
//! | `harness.interrupts` | questions asked, resolved, expired | agent, state |
//! | `harness.retries` | attempts that are repeated | agent, error |
//! | `harness.lease.losses` | runs that have lost their session | agent |
//! | `harness.runs.active` | runs at work | agent |
//! | `harness.workers.busy` | runs at work that workers have begun | agent |
//! | `harness.queue.age` | seconds that an input, an answer or a timer waited for a run | agent, cause |
//! | `harness.cost` | US dollars | provider, model |
//!
//! # Without a receiver
//!
//! A receiver that is slow, down or restarted does not delay a run. At most 8,192 spans wait for it;
//! further ones are dropped. A loss is reported once, as a warning, until an export succeeds; all losses
//! are [counted](Telemetry::lost).

mod console;
mod content;
mod export;
mod late;
mod metrics;
#[cfg(any(feature = "http", feature = "grpc"))]
mod otlp;
mod propagate;
mod queue;
pub mod semconv;
mod setup;
mod telemetry;
mod warnings;

pub use console::Console;
pub use export::Conventions;
pub use metrics::Metrics;
pub use semconv::Names;
pub use setup::{Builder, SetupError};
pub use telemetry::{ShutdownError, Telemetry};
