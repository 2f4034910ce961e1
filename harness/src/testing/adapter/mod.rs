//! The contract of adapters as a suite.

mod clauses;
mod outside;
mod server;
mod wire;
mod world;

use std::fmt;
use std::sync::Arc;

use super::report::Report;
use super::suite::Selection;
pub use outside::WireServer;
pub use wire::{Wire, WireRequest};
use world::World;

/// Checks an adapter, which is an [`Llm`](crate::llm::Llm) that speaks the protocol of a vendor, for
/// every promise that a loop relies on.
///
/// The author of the adapter writes a [`Wire`]: how the vendor's server speaks. The suite runs such a
/// server on the loopback interface, and asks the adapter for each promise by name.
///
/// ```no_run
/// use harness::testing::{AdapterContract, Wire};
///
/// # fn wire() -> impl Wire { struct W; impl Wire for W {
/// # fn adapter(&self, _: &str, _: &str) -> std::sync::Arc<dyn harness::llm::Llm> { unimplemented!() }
/// # fn protocol(&self) -> &'static str { "" }
/// # fn whole(&self, _: &harness::llm::Reply) -> String { String::new() }
/// # fn frames(&self, _: &[harness::llm::Delta]) -> Vec<String> { Vec::new() }
/// # fn rejects(&self, _: &harness::testing::WireRequest) -> Option<(u16, String)> { None }
/// # fn error(&self, _: harness::llm::LlmErrorKind, _: &str) -> Option<(u16, String)> { None }
/// # } W }
/// // #[tokio::test]
/// async fn every_clause_is_kept() {
///     AdapterContract::new(wire())
///         .skip("reply-that-is-too-large-is-refused", "the client of this adapter has no limit")
///         .check()
///         .await;
/// }
/// ```
///
/// It needs a tokio runtime with I/O and timers, and real time. Clauses that the vendor or the model
/// cannot keep, by what [`Llm::caps`](crate::llm::Llm::caps) and the wire say, are reported as
/// [skipped](super::Verdict::Skipped). Every clause has a name that stays.
pub struct AdapterContract {
    wire: Arc<dyn Wire>,
    selection: Selection,
}

impl AdapterContract {
    /// Checks the adapter of this wire.
    pub fn new(wire: impl Wire) -> Self {
        Self { wire: Arc::new(wire), selection: Selection::default() }
    }

    /// Checks only these clauses. A name that no clause has is a failure.
    #[must_use]
    pub fn only(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.selection.only(names);
        self
    }

    /// Leaves a clause out, and says so in the report. A name that no clause has is a failure.
    #[must_use]
    pub fn skip(mut self, name: impl Into<String>, why: impl Into<String>) -> Self {
        self.selection.skip(name, why);
        self
    }

    /// The names of all clauses, in the order in which they are checked.
    pub fn clauses() -> impl Iterator<Item = &'static str> {
        clauses::all().map(|clause| clause.name)
    }

    /// Checks the adapter.
    ///
    /// # Panics
    /// If it breaks a clause, with the list of those it breaks.
    pub async fn check(self) {
        self.run().await.assert();
    }

    /// Checks the adapter and reports the result.
    pub async fn run(self) -> Report {
        let world = || std::future::ready(World { wire: self.wire.clone() });
        self.selection.run("the adapter or its wire", clauses::all(), world).await
    }
}

impl fmt::Debug for AdapterContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdapterContract")
            .field("protocol", &self.wire.protocol())
            .field("selection", &self.selection)
            .finish()
    }
}
