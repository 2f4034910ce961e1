//! Code that models write, on the execution state graph ([`esg`](crate::esg)).
//!
//! [`LlmPatcher`] asks a model for patches of a program of code steps. It is a
//! [`Patcher`](crate::esg::Patcher), as [`RulePatcher`](crate::esg::RulePatcher) is, which asks none.
mod patcher;
mod prompt;
mod reply;
#[cfg(test)]
mod tests;

pub use patcher::{LlmPatcher, NoPatch};
