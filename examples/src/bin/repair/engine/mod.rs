//! The repair engine, which knows no loop: it runs a Python script under limits, proposes repairs by
//! rules, judges them, and shows them as diffs.
//!
//! One round is: [`Python::run`], [`propose`] for the fault, [`judge()`] the first proposal, show
//! [`unified`], and run [`Proposal::fixed`]. [`Verdict::of`] says whether a run is a success,
//! [`progressed`] whether the repair helped or the next proposal for the same fault is worth a try.
//!
//! The limits stop a script that is broken, not one that is hostile: it runs as the same user and
//! can do what that user can.

// The matches of a lexer and of rules name the few tokens they are about.
#![allow(clippy::wildcard_enum_match_arm)]

mod diff;
mod fault;
mod group;
mod judge;
mod python;
mod report;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use diff::{Paint, unified};
pub(crate) use fault::{Ending, Ran};
pub(crate) use harness::esg::diagnosis::Fault;
#[cfg(test)]
pub(crate) use harness::esg::diagnosis::{Facts, Frame};
pub(crate) use harness::esg::patcher::{Evasion, Proposal, Rule, judge, propose};
pub(crate) use judge::{Verdict, progressed};
pub(crate) use python::{Limits, Python, PythonError};
pub(crate) use source::{LoadError, load, shipped};
