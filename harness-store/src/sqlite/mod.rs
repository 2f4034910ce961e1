//! Sessions in one SQLite database, for the processes of one machine.
//!
//! All writes of a store run on one thread (`writer`), which commits the calls that wait at the same
//! time in one transaction and answers them after it. Reads run on threads of their own (`readers`),
//! each in one read transaction. `schema` has the tables, `row` the row of a session, `batch` what is
//! kept of a batch.
//!
//! Every decision that depends on what is stored is made inside the transaction that writes, from what
//! it reads there. So the order of the transactions decides, across processes too.

mod append;
mod backup;
mod batch;
mod claim;
mod due;
mod error;
mod list;
mod open;
mod options;
mod read;
mod readers;
mod remove;
mod row;
mod schema;
mod send;
mod shared;
mod store;
mod writer;

#[cfg(test)]
mod tests;

pub use options::SqliteStoreOptions;
pub use store::SqliteStore;
