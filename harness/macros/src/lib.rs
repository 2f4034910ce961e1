//! Derives of the `harness` crate.
//!
//! Use them from there: each is re-exported beside the trait it implements, and
//! documented with examples. Every derive goes through the same stages: `parse`
//! reads the item and reports all mistakes at once, the result is a plain data
//! model, `emit` turns a model into code. A model also comes out of an item with
//! mistakes, so that one mistake is one error.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attr;
mod context;
mod diagnostics;
mod question;
mod shape;
mod signal;
mod state;
mod step;
mod text;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `harness::State`: the update type, its setters and the folding.
///
/// Options of a field: `#[state(reduce = append)]`, where the reducer is one of
/// `append`, `add`, `max`, `min`, `first`, `union`, `merge`, `upsert(key)`,
/// `transcript` or the path of a function; `update = Type` names what such a
/// function takes; `provides` implements `harness::state::Has` for the field's type. Options of the
/// struct: `#[state(version = 3, migrate =
/// from_v2)]`.
#[proc_macro_derive(State, attributes(state))]
pub fn state(input: TokenStream) -> TokenStream {
    state::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Implements `harness::Context`: a builder for each time at which slots are
/// filled.
///
/// A field is a slot filled when the harness is built; `#[slot(required)]` and
/// `#[slot(runtime)]` choose a later time.
#[proc_macro_derive(Context, attributes(slot))]
pub fn context(input: TokenStream) -> TokenStream {
    context::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Implements `harness::StepId` for an enum with one variant a step.
#[proc_macro_derive(StepId, attributes(step))]
pub fn step_id(input: TokenStream) -> TokenStream {
    step::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Implements `harness::Signal` for an enum whose variants carry no data.
#[proc_macro_derive(Signal, attributes(signal))]
pub fn signal(input: TokenStream) -> TokenStream {
    signal::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Implements `harness::Question`.
///
/// `#[question(answer = Decision)]` names the type of the answer and is
/// required; `name = "approve"` replaces the stored name, which is the type's in
/// snake case.
#[proc_macro_derive(Question, attributes(question))]
pub fn question(input: TokenStream) -> TokenStream {
    question::derive(&parse_macro_input!(input as DeriveInput)).into()
}
