//! Macros of the `harness` crate: its derives, and `#[tool]`.
//!
//! Import them from `harness`: it re-exports each derive next to the trait it
//! implements and documents it with examples.
//!
//! Every derive has the same stages. `parse` reads the item and collects all
//! errors. Its result is a plain data model. `emit` turns the model into code.
//! An item with errors still yields a model, so one mistake causes one error.

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
mod tool;

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, parse_macro_input};

/// Implements `harness::State`: the update type, its setters and the reducers.
///
/// Options of a field:
///
/// - `#[state(reduce = append)]` sets the reducer: `append`, `add`, `max`,
///   `min`, `first`, `union`, `merge`, `upsert(key)`, `transcript`, or the path
///   of a function.
/// - `update = Type` sets the argument type of such a function.
/// - `provides` implements `harness::state::Has` for the field's type.
/// - `esg` is for a field of the type `harness::code::Code`: it folds its own
///   changes, and is provided.
///
/// Options of the struct: `#[state(version = 3, migrate = from_v2)]`.
#[proc_macro_derive(State, attributes(state))]
pub fn state(input: TokenStream) -> TokenStream {
    state::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Implements `harness::Context`, with a builder for each time at which slots
/// are filled.
///
/// By default a slot is filled when the harness is built. `#[slot(required)]`
/// and `#[slot(runtime)]` select a later time.
#[proc_macro_derive(Context, attributes(slot))]
pub fn context(input: TokenStream) -> TokenStream {
    context::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Implements `harness::StepId` for an enum with one variant per step.
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
/// `#[question(answer = Decision)]` sets the type of the answer and is
/// required. `name = "approve"` sets the stored name. The default is the type's
/// name in snake case.
#[proc_macro_derive(Question, attributes(question))]
pub fn question(input: TokenStream) -> TokenStream {
    question::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Turns an async function into a tool that a model can call.
///
/// The function's parameters are the arguments, its doc comment is the
/// description, and its name is the name of the tool.
#[proc_macro_attribute]
pub fn tool(args: TokenStream, function: TokenStream) -> TokenStream {
    let function = parse_macro_input!(function as ItemFn);
    tool::expand(args.into(), &function).into()
}
