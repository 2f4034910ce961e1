//! Tests of steps, loops, stores and adapters (feature `testing`). The guide has a page on it:
//! [testing](crate::_guide::testing).
//!
//! Of loops:
//!
//! - [`step`] enters one step, with scripted answers, and shows what it did.
//! - [`run`](run()) runs a whole loop with scripted answers, and shows how it settled and on which path.
//! - With this feature the clock of harness ([`UtcMillis::now`](crate::UtcMillis::now)) passes as the
//!   time of the tokio runtime does, so that questions expire where a test pauses it.
//!
//! Of stores:
//!
//! - [`Contract`] asks a store whether it keeps every promise of
//!   [`SessionStore`](crate::store::SessionStore), clause by clause; with hooks, it also damages what is
//!   stored ([`Damage`]), and kills processes that write ([`child_worker`]).
//! - [`Faulty`] wraps a store and fails chosen calls, before or after they have had their effect.
//! - [`Recorder`] wraps a store and records its calls, so that a test can assert what did *not*
//!   happen.
//! - [`survives_storage`] checks that a state is the same after it was stored.
//!
//! Of adapters:
//!
//! - [`AdapterContract`] asks an [`Llm`](crate::llm::Llm) that speaks the protocol of a vendor whether it
//!   keeps every promise, clause by clause, against a server in this process that speaks through a
//!   [`Wire`].
//! - [`WireServer`] is that server, for tests of loops over HTTP.

mod bench;
#[macro_use]
mod stop;
mod adapter;
mod contract;
mod drive;
mod error;
mod faulty;
mod recorder;
mod report;
mod script;
mod step;
mod storage;
mod suite;

pub use adapter::{AdapterContract, Wire, WireRequest, WireServer};
pub use contract::{Contract, Damage, child_worker};
pub use drive::{LoopTest, MakesSlots, RunSlots, Tested, run};
pub use error::TestError;
pub use faulty::{Call, Faults, Faulty};
pub use recorder::{Asked, Record, Recorder};
pub use report::{Checked, Report, Verdict};
pub use script::{NoSlots, Slots, Slotted, Who};
pub use step::{NotDone, StepTest, TestedStep, handler, step};
pub use storage::{LostInStorage, survives_storage};
