//! Session stores for [`harness`](https://docs.rs/harness): where the logs of durable sessions are
//! kept.
//!
//! | feature | store | shared by |
//! |---|---|---|
//! | `file` (on) | `FileStore`: a log of readable lines for each session | the processes of one machine |
//! | `sqlite` | `SqliteStore`: all sessions in one SQLite database, which is compiled in | the processes of one machine |
//! | `postgres` | `PostgresStore`: all sessions in one PostgreSQL database | all processes that reach its server |
//! | `redis` | `RedisStore`: all sessions in the memory of one Redis server | all processes that reach its server |
//! | `restate` | `restate`: sessions on a Restate server, which also runs them | all processes that reach its server |
//! | `encrypt` | `Encrypted`: encrypts what any store keeps | as the store inside |
//! | `code` | `Keys` encrypts programs of code steps, too | |

#![forbid(unsafe_code)]

#[cfg(feature = "encrypt")]
mod encrypt;
#[cfg(feature = "file")]
mod file;
#[cfg(any(feature = "file", feature = "sqlite"))]
mod local;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "restate")]
pub mod restate;
#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use harness::store::MemoryStore;

#[cfg(feature = "redis")]
pub use self::redis::{RedisStore, RedisStoreOptions};
#[cfg(feature = "encrypt")]
pub use encrypt::{Encrypted, Key, KeyError, Keys};
#[cfg(feature = "file")]
pub use file::{Backup, FileStore, FileStoreOptions};
#[cfg(any(feature = "file", feature = "sqlite"))]
pub use local::Sync;
pub use open::open;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresStore, PostgresStoreOptions};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteStore, SqliteStoreOptions};
