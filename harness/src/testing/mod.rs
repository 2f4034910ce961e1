//! For authors of stores, and for tests of loops on stores (feature `testing`).
//!
//! - [`Contract`] asks a store whether it keeps every promise of
//!   [`SessionStore`](crate::store::SessionStore), clause by clause; with hooks, it also damages what is
//!   stored ([`Damage`]), and kills processes that write ([`child_worker`]).
//! - [`Faulty`] wraps a store and fails chosen calls, before or after they have had their effect.
//! - [`Recorder`] wraps a store and records its calls, so that a test can assert what did *not*
//!   happen.
//! - [`survives_storage`] checks that a state is the same after it was stored.

mod contract;
mod faulty;
mod recorder;
mod storage;

pub use contract::{Checked, Contract, Damage, Report, Verdict, child_worker};
pub use faulty::{Call, Faults, Faulty};
pub use recorder::{Asked, Record, Recorder};
pub use storage::{LostInStorage, survives_storage};
