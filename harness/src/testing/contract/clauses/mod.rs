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

use super::world::World;
use crate::testing::suite::{Clause, clauses};

pub(super) fn all() -> impl Iterator<Item = &'static Clause<World>> {
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
