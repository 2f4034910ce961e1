//! Sessions on a Redis server, for processes of any number of machines.
//!
//! Each method is one call of one script, which decides and writes while nothing else happens on the
//! server. What a script decides is what the rules of all stores decide: when nothing was written, it
//! reports what it has found, and they say what follows. `scripts` has them; `client` has the
//! connections and what their failures mean, `check` what a server must promise, `frame` how entries
//! and messages are stored.

mod append;
mod check;
mod claim;
mod client;
mod due;
mod error;
mod frame;
mod inner;
mod known;
mod list;
mod listener;
mod open;
mod options;
mod read;
mod remove;
mod reply;
mod scripts;
mod send;
mod store;

pub use options::RedisStoreOptions;
pub use store::RedisStore;
