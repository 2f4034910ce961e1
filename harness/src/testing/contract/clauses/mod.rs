//! The clauses, by what they are about.

mod append;
mod batch;
mod concurrent;
mod damage;
mod due;
mod inbox;
mod lease;
mod list;
mod process;
mod read;
mod remove;
mod resend;

use super::Boxed;
use super::world::{Kept, World};

/// A promise and how to ask for it.
pub(super) struct Clause {
    /// Stays as it is: people name it where they leave it out.
    pub(super) name: &'static str,
    pub(super) run: fn(World) -> Boxed<Kept>,
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
        append::CLAUSES,
        batch::CLAUSES,
        resend::CLAUSES,
        lease::CLAUSES,
        remove::CLAUSES,
        read::CLAUSES,
        inbox::CLAUSES,
        list::CLAUSES,
        due::CLAUSES,
        concurrent::CLAUSES,
        process::CLAUSES,
        damage::CLAUSES,
    ]
    .into_iter()
    .flatten()
}
