//! Lists. There is no index beside the logs that could differ from them: a list is made from the
//! notes that sessions leave when they come to rest, and from the logs of those that have gone on
//! since. That costs two small reads for each session at rest.

use std::io;
use std::path::Path;
use std::sync::PoisonError;

use harness::store::{Filter, Listing, Row, StoreError};
use harness::{Seq, SessionId};

use super::disk::Mode;
use super::error::failed;
use super::lease::read_small;
use super::record::{self, Record};
use super::session::{Paths, Rest};
use super::store::Inner;

impl Inner {
    pub(crate) fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        let mut logs = Vec::new();
        for log in self.logs()? {
            if let Some(id) = self.id_of(&log)? {
                logs.push((id, log));
            }
        }
        logs.sort_unstable();
        let mut listing = Listing::default();
        for (id, log) in logs {
            // All keys of a session begin with its id; the cheapest test that skips most.
            if after.is_some_and(|after| is_behind(after, &id)) {
                continue;
            }
            let Some(summary) = self.summary(&log)? else { continue };
            if !filter.admits(&summary.facts) {
                continue;
            }
            for row in rows(filter, summary) {
                let key = row.key();
                if after.is_some_and(|after| *key <= *after) {
                    continue;
                }
                if listing.rows.len() == limit {
                    listing.next = listing.rows.last().map(Row::key);
                    return Ok(listing);
                }
                listing.rows.push(row);
            }
        }
        Ok(listing)
    }

    /// Whose log a file is. `None` if it is none's any more, or none's yet.
    fn id_of(&self, log: &Path) -> Result<Option<SessionId>, StoreError> {
        let known = self.ids.lock().unwrap_or_else(PoisonError::into_inner).get(log).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let file = match self.disk.open(log, Mode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("open", log, error)),
        };
        // The longest id, with every byte escaped, and what stands around it.
        let mut bytes = vec![0; harness::MAX_SESSION_ID * 6 + 512];
        let read = file.read_at(&mut bytes, 0).map_err(|error| failed("read", log, error))?;
        let line = bytes[..read].split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
        let id = match record::is_sound(line).then(|| record::parse(line)).flatten() {
            Some(Record::Header(_, Some(header))) => header.id,
            // What is wrong with it is told to whoever opens the session.
            _ => return Ok(None),
        };
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(log.to_owned(), id.clone());
        Ok(Some(id))
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
        Ok(if state.index.exists() { Rest::of(&state.index) } else { None })
    }
}

/// Whether all rows of a session stand before the one that a key names.
fn is_behind(after: &[u8], id: &SessionId) -> bool {
    // A zero byte is written as two, so that only ids without one can be compared as they are.
    let id = id.as_str().as_bytes();
    !id.contains(&0) && !after.starts_with(id) && id < after
}

fn rows(filter: &Filter, summary: Rest) -> Vec<Row> {
    let row = Row {
        session: summary.id,
        facts: summary.facts,
        head: Seq(summary.head),
        created: summary.created,
        updated: summary.updated,
        question: None,
    };
    if !filter.questions {
        return vec![row];
    }
    let mut rows: Vec<Row> = summary
        .questions
        .into_iter()
        .map(|question| Row { question: Some(question), ..row.clone() })
        .collect();
    rows.sort_by_key(Row::key);
    rows
}
