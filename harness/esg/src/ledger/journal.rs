//! Where the records of a ledger go.
use std::error::Error as StdError;
use std::fmt;

use thiserror::Error;

use super::Record;

/// Stores the records of one ledger. A record counts once it is in the journal: a graph applies it
/// to its ledger only then.
///
/// A directory is one journal ([`CodeGraph::open`](crate::CodeGraph::open)). This one keeps records in
/// memory:
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use harness_esg::{Journal, JournalError, Record};
///
/// #[derive(Clone, Debug, Default)]
/// struct Kept(Arc<Mutex<Vec<Record>>>);
///
/// impl Journal for Kept {
///     fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
///         let mut kept = self.0.lock().map_err(|_| JournalError::new("a writer panicked"))?;
///         kept.extend_from_slice(records);
///         Ok(())
///     }
/// }
/// ```
pub trait Journal: Send + fmt::Debug {
    /// Appends records, all or none. They are durable when it returns.
    ///
    /// # Errors
    /// If they are not stored. The graph then continues as if what they record had not happened.
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError>;

    /// Appends a [`Record::Snapshot`]. The records before it are not needed any more, and may be
    /// removed. By default they stay.
    ///
    /// # Errors
    /// As [`append`](Self::append). Nothing is lost: the journal is only longer than it needs to be.
    fn compact(&mut self, snapshot: &Record) -> Result<(), JournalError> {
        self.append(std::slice::from_ref(snapshot))
    }
}

/// A journal failed to store records.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct JournalError {
    message: String,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl JournalError {
    /// An error with `message`.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Sets the error that caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }
}
