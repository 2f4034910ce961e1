//! The parts of the `repair` program: running a Python script under limits,
//! proposing fixes by rules, judging them, and showing them.
//!
//! A round is: [`Python::run`], [`propose`] on the fault, [`judge`] the first
//! proposal, show [`unified`], and run [`Proposal::fixed`]. Whether a run is a
//! success is for [`Verdict::of`] to say, and whether to take the next proposal
//! for the same fault instead for [`progressed`].
//!
//! The limits stop a script that is broken, not one that is hostile: it runs
//! as the same user and can do what that user can.

mod diff;
mod fault;
mod group;
mod judge;
mod lex;
mod near;
mod python;
mod report;
mod rules;
mod scan;
mod source;
mod text;

pub use diff::{Paint, shown, unified};
pub use fault::{Callee, Ending, Facts, Fault, Frame, Operand, Ran, Syntax};
pub use judge::{Refusal, Verdict, judge, progressed};
pub use python::{Limits, Python, PythonError};
pub use rules::{Edit, Proposal, Rule, propose};
pub use source::{LoadError, MAX_BYTES, Script, load, shipped};
