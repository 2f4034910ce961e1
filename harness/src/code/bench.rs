//! The worker of a session's program, in a slot.
use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_esg::{
    Blobs, CodeGraph, EsgError, Executor, Journal, JournalError, KillHandle, Ledger, Record,
};
use tokio::task::JoinError;

use super::state::{Code, Mark, next};

/// Where the programs of sessions run: a worker, and the store of their values. A slot holds it.
///
/// The worker starts when a step needs it, and stays: the next step finds its values live. Another
/// session, a fork or an earlier state finds a fresh worker, which loads the values it needs from the
/// blobs. With [blobs in a directory](Blobs::dir) so does another process.
///
/// ```
/// use harness::code::Bench;
/// use harness::esg::{Blobs, CPython, Trust};
///
/// let bench = Bench::new(|| CPython::find().trust(Trust::Mine).start(), Blobs::memory());
/// # let _ = bench;
/// ```
#[derive(Clone)]
pub struct Bench(Arc<Inner>);

struct Inner {
    start: Box<Start>,
    blobs: Blobs,
    live: Mutex<Option<Live>>,
}

type Failure = Box<dyn StdError + Send + Sync>;
type Start = dyn Fn(Ledger, Blobs) -> Result<CodeGraph, Failure> + Send + Sync;

/// A graph whose worker runs, and the records it has applied.
struct Live {
    graph: CodeGraph,
    mark: Mark,
    sink: Arc<Sink>,
}

/// Why a program could not be run. A step of the program that fails is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The worker did not start.
    #[error("failed to start a worker for code steps")]
    Start(#[source] Failure),
    /// The worker or the store of its values failed.
    #[error("failed to run code steps")]
    Graph(#[from] EsgError),
    /// What runs the worker panicked, or its runtime ended. It is not known whether a code step ran.
    #[error("running code steps was broken off")]
    BrokenOff(#[source] JoinError),
}

impl Bench {
    /// A bench whose workers `start` starts, with a store for the values.
    pub fn new<E, F>(start: impl Fn() -> Result<E, F> + Send + Sync + 'static, blobs: Blobs) -> Self
    where
        E: Executor + 'static,
        F: Into<Failure>,
    {
        let start = move |ledger: Ledger, blobs| {
            let executor = start().map_err(Into::into)?;
            Ok(CodeGraph::resume(ledger, executor, blobs))
        };
        Self(Arc::new(Inner { start: Box::new(start), blobs, live: Mutex::new(None) }))
    }

    /// Starts a worker for the program of this state, before a step needs it.
    ///
    /// # Errors
    /// If the worker does not start.
    pub async fn warm(&self, code: &Code) -> Result<(), BenchError> {
        self.with(code, |_| Ok(())).await
    }

    /// Uses the graph of this state. It blocks a thread of its own.
    ///
    /// # Errors
    /// If the worker does not start, or those of `work`. The next use starts a fresh worker then.
    pub async fn with<T: Send + 'static>(
        &self,
        code: &Code,
        work: impl FnOnce(&mut CodeGraph) -> Result<T, EsgError> + Send + 'static,
    ) -> Result<T, BenchError> {
        self.journalled(code, None, |_| {}, work).await
    }

    /// The same, with a journal for what it records, and a handle to end the running step.
    pub(super) async fn journalled<T: Send + 'static>(
        &self,
        code: &Code,
        journal: Option<Box<dyn Journal>>,
        begun: impl FnOnce(Option<KillHandle>) + Send + 'static,
        work: impl FnOnce(&mut CodeGraph) -> Result<T, EsgError> + Send + 'static,
    ) -> Result<T, BenchError> {
        let (inner, code) = (Arc::clone(&self.0), code.clone());
        let done = tokio::task::spawn_blocking(move || {
            let mut held = inner.live();
            let mut live = match held.take() {
                Some(live) if live.mark == code.mark() => live,
                _ => inner.start(&code)?,
            };
            begun(live.graph.kill_handle().ok());
            live.sink.open(journal, code.mark());
            let done = work(&mut live.graph);
            live.mark = live.sink.close();
            // After an error it is not known what is live.
            let done = done?;
            *held = Some(live);
            Ok(done)
        });
        done.await.unwrap_or_else(|error| Err(BenchError::BrokenOff(error)))
    }
}

impl Inner {
    fn live(&self) -> MutexGuard<'_, Option<Live>> {
        // A panic has left it empty.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, code: &Code) -> Result<Live, BenchError> {
        let graph = (self.start)(code.ledger().clone(), self.blobs.clone());
        let sink = Arc::new(Sink::default());
        let graph = graph.map_err(BenchError::Start)?.with_journal(Outlet(Arc::clone(&sink)));
        Ok(Live { graph, mark: code.mark(), sink })
    }
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("blobs", &self.0.blobs).finish_non_exhaustive()
    }
}

/// Where a live graph appends at present.
#[derive(Default)]
struct Sink(Mutex<Option<Target>>);

struct Target {
    journal: Option<Box<dyn Journal>>,
    /// Of what the graph has applied. The program itself is not kept: to copy it for each record would
    /// cost more with every one.
    mark: Mark,
}

impl Sink {
    fn target(&self) -> MutexGuard<'_, Option<Target>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, journal: Option<Box<dyn Journal>>, mark: Mark) {
        *self.target() = Some(Target { journal, mark });
    }

    /// The mark of what the graph has applied.
    fn close(&self) -> Mark {
        self.target().take().map(|target| target.mark).unwrap_or_default()
    }
}

struct Outlet(Arc<Sink>);

impl Journal for Outlet {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let mut target = self.0.target();
        let Some(Target { journal: Some(journal), mark }) = &mut *target else {
            return Err(JournalError::new("no step of a loop records this (use `execute`)"));
        };
        journal.append(records)?;
        *mark = records.iter().fold(*mark, |mark, record| next(&mark, record));
        Ok(())
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outlet")
    }
}

#[cfg(test)]
mod tests {
    use harness_esg::{CPython, Trust};

    use super::{Bench, BenchError, Blobs, Code};

    #[tokio::test]
    async fn a_panic_is_no_failed_start_and_the_next_use_starts_afresh() {
        let bench = Bench::new(|| CPython::find().trust(Trust::Mine).start(), Blobs::memory());
        let code = Code::default();
        let broken = bench.with(&code, |_| -> Result<(), _> { panic!("on purpose") }).await;
        assert!(matches!(broken, Err(BenchError::BrokenOff(_))), "{broken:?}");
        bench.warm(&code).await.unwrap();
    }
}
