//! Models that are made of other models.
//!
//! Each wrapper is an [`Llm`](harness::llm::Llm), so wrappers nest, and a step takes one in place of
//! a model:
//!
//! ```
//! use harness::llm::{Llm, Scripted};
//! use harness_providers::wrap::{Budgeted, Fallback, RateLimited};
//! use std::time::Duration;
//!
//! # let (large, small) = (Scripted::new(["a"]), Scripted::new(["b"]));
//! let large = RateLimited::new(large).requests(50, Duration::from_secs(60)).concurrency(8);
//! let model = Fallback::new(Budgeted::new(large).tokens(1_000_000)).or(small);
//! # assert_eq!(model.id().provider(), "scripted");
//! ```
//!
//! Every exchange is charged to the caller, whichever model it was made with. Each wrapper may be shared
//! by any number of concurrent calls, and a call that is dropped leaves nothing behind.

mod budgeted;
mod cached;
mod canonical;
mod fallback;
mod observe;
mod rate_limited;
mod recorded;
mod router;

pub use budgeted::Budgeted;
pub use cached::{CacheCounts, Cached};
pub use fallback::Fallback;
pub use rate_limited::RateLimited;
pub use recorded::{Recorded, RecordedError, UnknownRequest};
pub use router::Router;

use std::sync::{Mutex, MutexGuard, PoisonError};

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
