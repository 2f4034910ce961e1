//! Lists. There is no index beside the logs that could differ from them: a list is made from the
//! notes that sessions leave when they come to rest, and from the logs of those that have gone on
//! since.

use std::io;
use std::path::Path;

use harness::store::{Filter, Listing, OpenInterrupt, Row, StoreError};
use harness::{Seq, SessionId};

use super::catalog::Place;
use super::disk::Mode;
use super::error::failed;
use super::lease::read_small;
use super::record::{self, Record};
use super::rest::Rest;
use super::session::{Paths, Session, State};
use super::store::Inner;

impl Inner {
    pub(crate) fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        const CHUNK: usize = 256;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        self.look()?;
        let mut listing = Listing::default();
        let mut logs = self.next_logs(Place::Dividing(after.unwrap_or_default()), CHUNK);
        while let Some((last, _)) = logs.last() {
            let last = last.clone();
            for (key, log) in logs {
                let Some(summary) = self.remembered(&key, &log)? else { continue };
                if !filter.admits(&summary.summary) {
                    continue;
                }
                for row in rows(filter, &summary) {
                    if after.is_some_and(|after| *row.key() <= *after) {
                        continue;
                    }
                    if listing.rows.len() == limit {
                        listing.next = listing.rows.last().map(Row::key);
                        return Ok(listing);
                    }
                    listing.rows.push(row);
                }
            }
            logs = self.next_logs(Place::Behind(&last), CHUNK);
        }
        Ok(listing)
    }

    /// Whose log a file is. `None` if it is none's any more, or none's yet.
    pub(crate) fn id_of(&self, log: &Path) -> Result<Option<SessionId>, StoreError> {
        let file = match self.disk.open(log, Mode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("open", log, error)),
        };
        // The longest id, with every byte escaped, and what stands around it.
        let mut bytes = vec![0; harness::id::MAX_SESSION_ID * 6 + 512];
        let read = file.read_at(&mut bytes, 0).map_err(|error| failed("read", log, error))?;
        let line = bytes[..read].split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
        Ok(match record::is_sound(line).then(|| record::parse(line)).flatten() {
            Some(Record::Header(_, Some(header))) => Some(header.id),
            // What is wrong with it is told to whoever opens the session.
            _ => None,
        })
    }

    /// What a list says of a session. `None` if it does not exist.
    pub(crate) fn summary(&self, log: &Path) -> Result<Option<Rest>, StoreError> {
        let paths = Paths::of_log(log);
        let rest: Option<Rest> = read_small(&*self.disk, &paths.rest)
            .map_err(|error| failed("read", &paths.rest, error))?;
        if let Some(rest) = rest
            && std::fs::metadata(log).is_ok_and(|found| found.len() == rest.offset)
        {
            return Ok(Some(rest));
        }
        let Some(id) = self.id_of(log)? else { return Ok(None) };
        let session = self.session(&id);
        let mut state = session.lock();
        session.refresh(&*self.disk, &mut state)?;
        if state.index.removed {
            // Whoever removed it has not come so far as to take its files away.
            self.finish_removal(&session, &mut state)?;
        }
        Ok(if state.index.exists() { Rest::of(&state.index) } else { None })
    }

    /// What a damaged log says of its session before the damage; `None` if that is nothing.
    pub(crate) fn legible(&self, log: &Path) -> Result<Option<Rest>, StoreError> {
        let Some(id) = self.id_of(log)? else { return Ok(None) };
        let session = Session::new(id, Paths::of_log(log));
        let file = match self.disk.open(log, Mode::Read) {
            Ok(file) => file,
            // Somebody has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(session.failed("open", error)),
        };
        let len = file.stat().map_err(|error| session.failed("look at", error))?.len;
        let mut state = State::default();
        // How far it comes is all that is asked.
        let _ = session.catch_up(&*file, &mut state, len)?;
        Ok(Rest::of(&state.index).filter(|_| !state.index.removed))
    }
}

fn rows(filter: &Filter, rest: &Rest) -> Vec<Row> {
    let mut row = Row::new(rest.id.clone(), rest.summary.clone(), Seq(rest.head));
    (row.created, row.updated) = (rest.created, rest.updated);
    if !filter.interrupts {
        return vec![row];
    }
    let of = |interrupt: &OpenInterrupt| {
        let mut row = row.clone();
        row.interrupt = Some(interrupt.clone());
        row
    };
    let mut rows: Vec<Row> = rest.interrupts.iter().map(of).collect();
    rows.sort_by_key(Row::key);
    rows
}
