//! The clauses, by what they are about.

mod calls;
mod errors;
mod replies;
mod requests;
mod streams;
mod usage;

use super::world::World;
use crate::testing::suite::{Clause, clauses};

pub(super) fn all() -> impl Iterator<Item = &'static Clause<World>> {
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
