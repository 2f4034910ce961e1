//! The guide: a page for each part of the framework. Its examples are tests.
//!
//! - [state]: fields, reducers, updates, versions
//! - [the loop](the_loop): steps, routes, items, error routes, budgets, what `build()` reports
//! - [context]: slots and when they are filled
//! - [questions]: gates, inline questions, answers
//! - [running]: outcomes, stopping, events, observers
//! - [sessions]: stores, resuming in another process, effects, versions, the past
//! - [operating sessions](operate): checks before a deploy, corrections, pruning
//! - [workers]: sessions that any number of processes run
//! - [scale]: what a million suspended sessions and ten thousand turns a second need
//! - [models]: models, transcripts, calls of tools
//! - [tools]: the loop of an agent with tools, approvals, rules
//! - [code]: the loop of an agent that writes, runs and repairs a program (feature `code`)
//! - [telemetry]: events, spans, OpenTelemetry
//! - [testing]: one step, a whole loop with scripted answers, time, crashes (feature `testing`)
//! - [why it is so](design): the decisions, their reasons and their costs
//! - [beside other frameworks](compare): what others do that this one does not, and the reverse
//! - [coming from the TypeScript harness](from_typescript)
//!
//! The execution state graph itself is documented in its own crate, `harness::esg` (feature `code`).

#[doc = include_str!("../docs/state.md")]
pub mod state {}

#[doc = include_str!("../docs/loop.md")]
pub mod the_loop {}

#[doc = include_str!("../docs/context.md")]
pub mod context {}

#[doc = include_str!("../docs/questions.md")]
pub mod questions {}

#[doc = include_str!("../docs/running.md")]
pub mod running {}

#[doc = include_str!("../docs/sessions.md")]
pub mod sessions {}

#[doc = include_str!("../docs/operate.md")]
pub mod operate {}

#[doc = include_str!("../docs/workers.md")]
pub mod workers {}

#[doc = include_str!("../docs/scale.md")]
pub mod scale {}

#[doc = include_str!("../docs/models.md")]
pub mod models {}

#[doc = include_str!("../docs/tools.md")]
pub mod tools {}

#[cfg_attr(feature = "code", doc = include_str!("../docs/code.md"))]
#[cfg_attr(not(feature = "code"), doc = "This page needs the feature `code`.")]
pub mod code {}

#[doc = include_str!("../docs/telemetry.md")]
pub mod telemetry {}

#[cfg_attr(feature = "testing", doc = include_str!("../docs/testing.md"))]
#[cfg_attr(not(feature = "testing"), doc = "This page needs the feature `testing`.")]
pub mod testing {}

#[doc = include_str!("../docs/design.md")]
pub mod design {}

#[doc = include_str!("../docs/compare.md")]
pub mod compare {}

#[doc = include_str!("../docs/from_typescript.md")]
pub mod from_typescript {}
