//! Code that models write, on the execution state graph ([`esg`](crate::esg)).
//!
//! The program of a session is a field of its state, [`Code`], and the steps of this module are steps of
//! a loop like any other: they are retried, gated, budgeted, interrupted and resumed as others are. The
//! program itself consists of steps too; in this module they are called *code steps* where both meet.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness::code::{self, Bench, Code};
//! use harness::esg::{Blobs, CPython, RulePatcher, Trust};
//! use harness::prelude::*;
//! # use harness::llm::Scripted;
//!
//! #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
//! struct Analysis {
//!     task: String,
//!     #[state(esg)]
//!     code: Code,
//! }
//!
//! #[derive(Context)]
//! struct Ctx {
//!     #[slot(runtime)]
//!     model: Arc<dyn Llm>,
//!     #[slot(runtime)]
//!     bench: Bench, // the worker that runs the code steps
//! }
//!
//! #[derive(StepId, Clone, Debug, PartialEq, Eq)]
//! enum Step { Write, Run, Diagnose, Repair }
//!
//! #[derive(Signal, Clone, Copy, Debug)]
//! enum Found { Works, Fails }
//!
//! fn found(state: &Analysis) -> Found {
//!     if state.code.is_ok() { Found::Works } else { Found::Fails }
//! }
//!
//! let analyst = Harness::<Ctx, Analysis>::builder("analyst")
//!     .start(Step::Write)
//!     .steps(|define, step| match step {
//!         Step::Write => define
//!             .handler(code::generate(|cx: &Ctx| cx.model.clone(), |state: &Analysis| state.task.clone()))
//!             .then(Step::Run),
//!         Step::Run => define.handler(code::execute(|cx: &Ctx| cx.bench.clone())).route(
//!             found,
//!             |found| match found {
//!                 Found::Works => end(),
//!                 Found::Fails => to(Step::Diagnose),
//!             },
//!         ),
//!         Step::Diagnose => {
//!             define.handler(code::diagnose(|cx: &Ctx| cx.bench.clone())).then(Step::Repair)
//!         }
//!         Step::Repair => define.handler(code::patch(|_: &Cx<Ctx>| RulePatcher)).then(Step::Run),
//!     })
//!     .budget(Budget::steps(40))
//!     .build()?;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! // A model would be an adapter. This one replies from a script, and misspells a name.
//! let model = Scripted::new(["```python\n# %% load\nrows = [3, 1]\n# %% total\ntotal = sum(row)\n```"]);
//! let bench = Bench::new(|| CPython::find().trust(Trust::Mine).start(), Blobs::memory());
//! let slots = Ctx::runtime().model(Arc::new(model)).bench(bench).build();
//! let agent = analyst.agent("analyst", ());
//! let ended = agent.run(Analysis::update().task("Add the rows up."), slots).await?.ended()?;
//! assert_eq!(&*ended.state.code.program().step("total")?.source, "total = sum(rows)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | step | does |
//! |---|---|
//! | [`generate`] | asks a model for the program |
//! | [`execute`] | runs the code steps that an edit affects |
//! | [`diagnose`](diagnose()) | finds out why one fails |
//! | [`patch`](patch()) | asks a [`Patcher`](crate::esg::Patcher) for a patch, and applies it |
//! | [`review`](review()) | asks a person |
//!
//! [`RulePatcher`](crate::esg::RulePatcher) patches without a model, and [`LlmPatcher`] asks one.
mod bench;
mod calls;
mod diagnose;
mod execute;
mod generate;
mod patch;
mod patcher;
mod prompt;
mod replay;
mod reply;
mod review;
mod state;
#[cfg(test)]
mod tests;

pub use bench::{Bench, BenchError};
pub use calls::StepModel;
pub use diagnose::{Diagnose, diagnose};
pub use execute::{Execute, execute};
pub use generate::{Generate, NoProgram, generate};
pub use patch::{Patch, Unpatched, patch};
pub use patcher::{LlmPatcher, NoPatch};
pub use review::{Review, ReviewCode, review};
pub use state::{Code, CodeChange, Coded, Reviewed};
