//! The clauses, by what they are about.

mod calls;
mod errors;
mod replies;
mod requests;
mod streams;
mod usage;

use futures_util::future::BoxFuture;

use super::world::{Kept, World};

/// A promise and how to ask for it.
pub(super) struct Clause {
    /// Stays as it is: people name it where they leave it out.
    pub(super) name: &'static str,
    pub(super) run: fn(World) -> BoxFuture<'static, Kept>,
}

/// The clauses of a module: each a name and an async function.
macro_rules! clauses {
    ($($name:literal => $run:ident,)*) => {
        pub(super) const CLAUSES: &[super::Clause] = &[
            $(super::Clause { name: $name, run: |world| Box::pin($run(world)) },)*
        ];
    };
}
use clauses;

pub(super) fn all() -> impl Iterator<Item = &'static Clause> {
    [
        replies::CLAUSES,
        streams::CLAUSES,
        calls::CLAUSES,
        requests::CLAUSES,
        errors::CLAUSES,
        usage::CLAUSES,
    ]
    .into_iter()
    .flatten()
}
