//! For those who write stores and those who test loops on them (feature `testing`).
//!
//! - [`Contract`] asks a store whether it keeps every promise of
//!   [`SessionStore`](crate::store::SessionStore), clause by clause; told how, it damages what is
//!   stored, too ([`Damage`]), and kills processes that write ([`child_worker`]).
//! - [`Faulty`] stands before a store and lets chosen calls fail, before or after they were done.
//! - [`Recorder`] stands before a store and writes down what it was asked, so that a test can say
//!   what did *not* happen.

mod contract;
mod faulty;
mod recorder;

pub use contract::{Checked, Contract, Damage, Report, Verdict, child_worker};
pub use faulty::{Call, Faults, Faulty};
pub use recorder::{Asked, Record, Recorder};
