//! The list of sessions and of open interrupts.

use crate::id::{InterruptId, SessionId};
use crate::store::{Filter, Listing, Row, rules};

use super::Shared;
use super::session::Session;

impl Shared {
    /// Sorts the keys of all rows after `after`, then makes only those rows that are asked for.
    pub(super) fn list(&self, filter: &Filter, after: Option<&[u8]>, limit: u32) -> Listing {
        let mut found: Vec<(Vec<u8>, SessionId, Option<InterruptId>)> = Vec::new();
        for session in &self.sessions {
            let (id, session) = session.pair();
            if !session.summary.as_ref().is_some_and(|summary| filter.admits(summary)) {
                continue;
            }
            let mut add = |interrupt: Option<&InterruptId>| {
                let key = rules::list_key(id, interrupt);
                if after.is_none_or(|after| key.as_slice() > after) {
                    found.push((key, id.clone(), interrupt.cloned()));
                }
            };
            if filter.interrupts {
                session.interrupts.keys().for_each(|interrupt| add(Some(interrupt)));
            } else {
                add(None);
            }
        }
        found.sort_unstable();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(key, ..)| key.clone());
        let rows = found.into_iter().filter_map(|(_, id, interrupt)| {
            let session = self.sessions.get(&id)?;
            row(id, &session, interrupt.as_ref()).filter(|row| filter.admits(&row.summary))
        });
        let mut listing = Listing::new(rows.collect(), false);
        listing.next = next;
        listing
    }
}

/// The row, unless it has gone since.
fn row(id: SessionId, session: &Session, interrupt: Option<&InterruptId>) -> Option<Row> {
    let interrupt = match interrupt {
        Some(interrupt) => Some(session.interrupts.get(interrupt)?.clone()),
        None => None,
    };
    let summary = session.summary.as_deref()?.clone();
    let mut row = Row::new(id, summary, session.log.head());
    (row.created, row.updated, row.interrupt) = (session.created, session.updated, interrupt);
    Some(row)
}
