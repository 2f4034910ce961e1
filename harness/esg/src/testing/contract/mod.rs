//! The contract of executors as a suite.
mod clauses;
mod sources;

use std::fmt;

pub use sources::Sources;

use crate::exec::Executor;
use clauses::{CLAUSES, Held};

/// Checks an [`Executor`] for every promise, by name. One call shows whether graphs can rely on it.
///
/// ```
/// use harness_esg::testing::{ExecutorContract, Sources, TinyWorker};
///
/// let report = ExecutorContract::new(Sources::tiny(), || Ok(TinyWorker::new())).check();
/// assert!(report.is_kept(), "{report}");
/// ```
///
/// A clause that needs what the executor [cannot do](crate::Caps), or what its language has no
/// [source](Sources) for, is reported as skipped. Each clause works in workers of its own.
pub struct ExecutorContract {
    sources: Sources,
    start: Start,
    only: Option<Vec<String>>,
}

type Start = Box<dyn Fn() -> Result<Box<dyn Executor>, String>>;

impl ExecutorContract {
    /// Checks the executor that `start` starts. It is called several times; each call must start a
    /// fresh worker of the same kind.
    pub fn new<E: Executor + 'static>(
        sources: Sources,
        start: impl Fn() -> Result<E, Box<dyn std::error::Error>> + 'static,
    ) -> Self {
        let start = move || match start() {
            Ok(worker) => Ok(Box::new(worker) as Box<dyn Executor>),
            Err(error) => Err(format!("failed to start a worker: {error}")),
        };
        Self { sources, start: Box::new(start), only: None }
    }

    /// Checks these clauses only.
    #[must_use]
    pub fn only<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.only = Some(names.into_iter().map(str::to_owned).collect());
        self
    }

    /// The names of all clauses.
    pub fn clauses() -> impl Iterator<Item = &'static str> {
        CLAUSES.iter().map(|(name, _)| *name)
    }

    /// Checks every clause.
    #[must_use]
    pub fn check(&self) -> ContractReport {
        let mut report = ContractReport::default();
        let wanted =
            |name: &str| self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == name));
        for (name, clause) in CLAUSES.iter().filter(|(name, _)| wanted(name)) {
            match clause(&self.sources, &*self.start) {
                Ok(Held::Kept) => report.kept.push(name),
                Ok(Held::Skipped(why)) => report.skipped.push((name, why)),
                Err(why) => report.broken.push((name, why)),
            }
        }
        report
    }
}

impl fmt::Debug for ExecutorContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorContract").field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// Which promises an executor keeps.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ContractReport {
    /// The clauses that hold.
    pub kept: Vec<&'static str>,
    /// The clauses that do not apply, and why.
    pub skipped: Vec<(&'static str, &'static str)>,
    /// The clauses that do not hold, and what was found.
    pub broken: Vec<(&'static str, String)>,
}

impl ContractReport {
    /// Whether every clause that applies holds.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.broken.is_empty()
    }
}

impl fmt::Display for ContractReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, why) in &self.broken {
            writeln!(f, "broken: {name}: {why}")?;
        }
        for (name, why) in &self.skipped {
            writeln!(f, "skipped: {name}: {why}")?;
        }
        write!(f, "kept: {}", self.kept.len())
    }
}

#[cfg(test)]
mod tests;
