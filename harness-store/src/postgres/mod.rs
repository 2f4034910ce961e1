//! Sessions in a PostgreSQL database, for processes of any number of machines.
//!
//! Each method but `send` and `remove` is one round trip: one statement, which calls one function that
//! the `schema` makes. Only the append of entries alone, which is most of what a run does, is a plain
//! statement; where it finds that it cannot append, the function reports why. The function locks the row of the session, decides and writes, so
//! the order in which transactions take that lock decides, across processes too. What it decides is
//! what the rules of all stores decide: when nothing was written, it reports what it has found, and
//! they say what follows.
//!
//! `client` has the connections and what their failures mean, `batch` what is kept of a batch, `group`
//! the appends that share a transaction, `listen` what notifies those that wait for due sessions.

mod append;
mod batch;
mod claim;
mod client;
mod due;
mod error;
mod group;
mod list;
mod listen;
mod open;
mod options;
mod read;
mod remove;
mod schema;
mod send;
mod store;
mod tls;
mod url;
mod version;

pub use options::PostgresStoreOptions;
pub use store::PostgresStore;
