//! Approvals of tool calls: who may do what, and what a person is asked.
//!
//! A [`Policy`] decides about each call: allow, deny, or ask a person. The person is asked a typed
//! question, [`ApproveCall`] or the tool's own, and answers with an [`Approval`].
//!
//! ```
//! use harness::approval::{Approval, Approve, Calls, Condition, Policy};
//! use harness::llm::EffectClass;
//! use harness::prelude::*;
//!
//! #[derive(Deserialize, schemars::JsonSchema)]
//! struct Refund { order: String, cents: u64 }
//!
//! /// What a person sees before money is paid back.
//! #[derive(Question, Serialize, Deserialize)]
//! #[question(answer = Approval)]
//! struct ApproveRefund { order: String, euros: String }
//!
//! let refund = harness::llm::tool("refund", "Pays an order back", async |refund: Refund| {
//!     Ok(format!("paid {} cents for {}", refund.cents, refund.order))
//! })
//! .approve_with(|refund: &Refund| ApproveRefund {
//!     order: refund.order.clone(),
//!     euros: format!("{}.{:02}", refund.cents / 100, refund.cents % 100),
//! });
//! let tools = ToolSet::builder().with(refund).build()?;
//!
//! let policy = Policy::new()
//!     .deny(Calls::of("read_file").with("/path", Condition::under("/etc")))
//!     .ask(Calls::of_class(EffectClass::Destructive));
//! # let _ = (tools, policy);
//! # Ok::<(), harness::llm::ToolSetError>(())
//! ```
//!
//! [`tool_loop`](crate::loops::tool_loop) does all of it. A loop of your own calls
//! [`Policy::judge`] in a step that commits the [`Ruling`], and [`Policy::settle`] in the step that
//! makes the call.
//!
//! # What decides
//!
//! The first row that applies:
//!
//! | | |
//! |---|---|
//! | the policy or a remembered rule denies it | it is denied |
//! | the policy or a remembered rule asks about it | a person is asked |
//! | a remembered rule allows it | it is allowed |
//! | the tool has a question ([`Approve::approve_with`]) | a person is asked |
//! | the policy allows it | it is allowed |
//! | otherwise, the default of the policy | reads and writes are allowed, and a person is asked about the rest |
//!
//! A ruling is made once, before anything is asked. A rule that is remembered later never answers a
//! question that is open: each question has an answer of its own.
//!
//! # What an approval is bound to
//!
//! To the SHA-256 of the canonical JSON of the tool (name, description, schema and class) and the
//! arguments. If the tool is another one by the time that the call is made, it is asked again. Edited
//! arguments have to match the schema of the tool, and no rule may deny them; otherwise the answer is
//! refused when it is given, in every process. Nothing is approved by an empty line, an omission or
//! an answer that does not parse.
//!
//! An approval is no authorisation: every program that can write to the store can answer.

mod answer;
mod book;
mod decision;
mod digest;
mod judge;
mod policy;
mod rule;
mod settle;
mod tool;

#[cfg(test)]
mod tests;

pub use answer::{Approval, ApproveCall, Remember, Scope};
pub use book::{RuleBook, RuleBookError};
pub use decision::Decision;
pub use digest::Sha256;
pub use judge::Ruling;
pub use policy::{Calls, Policy};
pub use rule::Rule;
pub use settle::Settled;
pub use tool::{Approve, Approved};

#[doc(inline)]
pub use crate::rule::{Arguments, Condition};
