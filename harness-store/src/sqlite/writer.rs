//! The thread that writes, and its transactions.
//!
//! Whatever waits when a transaction begins is done in it, and is answered after its commit: so many
//! sessions share one sync. A call that is refused has written nothing and leaves its neighbours alone.
//! If the database fails within a transaction, all of it is undone, and each of its calls gets a
//! transaction of its own.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use harness::SessionId;
use harness::store::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::{Fault, failed, is_busy, is_full, is_sync};
use super::schema;

/// The most calls, and bytes, in one transaction.
const MAX_CALLS: usize = 1_024;
const MAX_BYTES: u64 = 16 << 20;

/// How long to wait before trying again to lock a database that another process is writing to.
const PAUSE: Duration = Duration::from_millis(1);

/// A call that writes.
pub(crate) trait Call: Send {
    /// Does it, perhaps not for the first time: what was done before was undone. Says whether the
    /// database could do it; the result waits for the end of the transaction.
    fn run(&mut self, conn: &Connection) -> Result<(), ()>;
    /// Whether it must survive a loss of power, and so must everything that was written before.
    fn flush(&self) -> bool;
    fn bytes(&self) -> u64;
    /// Answers it. `end` is what came of its transaction.
    fn answer(self: Box<Self>, end: Result<(), StoreError>);
}

/// A call, and where its answer goes.
pub(crate) struct Work<T, F> {
    pub(crate) work: F,
    pub(crate) session: SessionId,
    pub(crate) flush: bool,
    pub(crate) bytes: u64,
    pub(crate) done: Option<Result<T, Fault>>,
    pub(crate) to: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, Fault> + Send> Call for Work<T, F> {
    fn run(&mut self, conn: &Connection) -> Result<(), ()> {
        let done = (self.work)(conn);
        let fine = !matches!(done, Err(Fault::Sql(_)));
        self.done = Some(done);
        if fine { Ok(()) } else { Err(()) }
    }

    fn flush(&self) -> bool {
        self.flush
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn answer(self: Box<Self>, end: Result<(), StoreError>) {
        let answer = match (self.done, end) {
            (Some(Ok(done)), Ok(())) => Ok(done),
            // What it has read was committed before, or is now.
            (Some(Err(fault)), Ok(())) | (Some(Err(fault @ Fault::Sql(_))), Err(_)) => {
                Err(fault.into_error(Some(&self.session)))
            }
            (_, Err(error)) => Err(error),
            (None, Ok(())) => Err(super::error::ended()),
        };
        // The caller may wait no more.
        let _ = self.to.send(answer);
    }
}

/// How a transaction failed.
enum Failed {
    /// It did not begin.
    Begin(Fault),
    /// It was undone as a whole.
    Undone(rusqlite::Error),
    /// One of its calls failed, and all were undone.
    Call,
    /// It may have been committed.
    Unsure(rusqlite::Error),
}

#[derive(Debug)]
pub(crate) struct Writer {
    conn: Connection,
    patience: Duration,
    /// Whether commits may sync at all, and whether the next one does.
    may_sync: bool,
    syncs: Option<bool>,
    /// A sync has failed.
    broken: bool,
}

impl Writer {
    pub(crate) fn new(conn: Connection, patience: Duration, may_sync: bool) -> Self {
        Self { conn, patience, may_sync, syncs: None, broken: false }
    }

    /// Works until no store sends calls any more.
    pub(crate) fn run(mut self, calls: &Receiver<Box<dyn Call>>) {
        let mut left = None;
        while let Some(first) = left.take().or_else(|| calls.recv().ok()) {
            let mut bytes = first.bytes();
            let mut group = vec![first];
            while group.len() < MAX_CALLS {
                match calls.try_recv() {
                    Ok(call) if bytes + call.bytes() > MAX_BYTES => {
                        left = Some(call);
                        break;
                    }
                    Ok(call) => {
                        bytes += call.bytes();
                        group.push(call);
                    }
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            self.group(group);
        }
    }

    fn group(&mut self, mut calls: Vec<Box<dyn Call>>) {
        match self.transaction(&mut calls) {
            Ok(()) => calls.into_iter().for_each(|call| call.answer(Ok(()))),
            Err(Failed::Undone(_) | Failed::Call) if calls.len() > 1 => {
                calls.into_iter().for_each(|call| self.group(vec![call]));
            }
            Err(failed) => {
                let error = || answer(&failed);
                calls.into_iter().for_each(|call| call.answer(Err(error())));
            }
        }
    }

    fn transaction(&mut self, calls: &mut [Box<dyn Call>]) -> Result<(), Failed> {
        if self.broken {
            let what = "a sync of the database has failed, so what the disk has of it is unknown \
                 (end this process, check the disk, and open the store again)";
            let error =
                StoreError::Unavailable { what: what.into(), ambiguous: false, source: None };
            return Err(Failed::Begin(error.into()));
        }
        let flush = self.may_sync && calls.iter().any(|call| call.flush());
        self.begin(flush).map_err(Failed::Begin)?;
        let before = self.conn.total_changes();
        for call in calls.iter_mut() {
            if call.run(&self.conn).is_err() {
                self.undo();
                return Err(Failed::Call);
            }
        }
        let written = match flush && self.conn.total_changes() == before {
            true => self.touch(),
            false => Ok(()),
        };
        let committed = written.and_then(|()| self.execute("COMMIT"));
        committed.map_err(|error| {
            self.undo();
            self.broken = is_sync(&error);
            if is_full(&error) || is_busy(&error) {
                Failed::Undone(error)
            } else {
                Failed::Unsure(error)
            }
        })
    }

    fn begin(&mut self, flush: bool) -> Result<(), Fault> {
        // Without `FULL`, a commit is in the page cache: it survives the end of the process, and the
        // next commit with it syncs the same file.
        if self.syncs != Some(flush) {
            self.execute(if flush {
                "PRAGMA synchronous = FULL"
            } else {
                "PRAGMA synchronous = NORMAL"
            })?;
            self.syncs = Some(flush);
        }
        let begun = Instant::now();
        loop {
            match self.execute("BEGIN IMMEDIATE") {
                Ok(()) => break,
                // SQLite itself would wait up to 100 ms between two tries, and so come last.
                Err(error) if is_busy(&error) && begun.elapsed() < self.patience => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error.into()),
            }
        }
        schema::check(&self.conn).inspect_err(|_| self.undo())
    }

    /// Makes a commit that has nothing else to write sync what was written before.
    fn touch(&self) -> rusqlite::Result<()> {
        self.execute("UPDATE store SET flushes = flushes + 1")
    }

    fn undo(&self) {
        // After some failures SQLite has done so by itself.
        if !self.conn.is_autocommit() {
            let _ = self.execute("ROLLBACK");
        }
    }

    fn execute(&self, what: &str) -> rusqlite::Result<()> {
        let mut statement = self.conn.prepare_cached(what)?;
        // A pragma may answer with a row.
        statement.query([])?.next().map(drop)
    }
}

fn answer(failed_as: &Failed) -> StoreError {
    let copy = |error: &rusqlite::Error| match error {
        rusqlite::Error::SqliteFailure(codes, text) => {
            rusqlite::Error::SqliteFailure(*codes, text.clone())
        }
        _ => rusqlite::Error::InvalidQuery,
    };
    match failed_as {
        Failed::Begin(Fault::Sql(error)) | Failed::Undone(error) => failed(copy(error), None),
        Failed::Begin(Fault::Refused(StoreError::NewerFormat { found, known })) => {
            StoreError::NewerFormat { found: *found, known: *known }
        }
        Failed::Begin(Fault::Refused(error)) => {
            StoreError::Unavailable { what: error.to_string(), ambiguous: false, source: None }
        }
        Failed::Unsure(error) => StoreError::Unavailable {
            what: "a commit failed, and may have reached the disk".into(),
            ambiguous: true,
            source: Some(copy(error).into()),
        },
        // Each call knows its own.
        Failed::Call => super::error::ended(),
    }
}
