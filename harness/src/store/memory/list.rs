//! The list of sessions and of open questions.

use crate::id::{InterruptId, SessionId};
use crate::store::{Filter, Listing, Row};

use super::Shared;
use super::session::Session;

impl Shared {
    /// Sorts the keys of all rows behind `after`, then makes only those rows that are asked for.
    pub(super) fn list(&self, filter: &Filter, after: Option<&[u8]>, limit: u32) -> Listing {
        let mut found: Vec<(Vec<u8>, SessionId, Option<InterruptId>)> = Vec::new();
        for session in &self.sessions {
            let (id, session) = session.pair();
            if !session.facts.as_ref().is_some_and(|facts| filter.admits(facts)) {
                continue;
            }
            let mut add = |question: Option<&InterruptId>| {
                let key = Row::key_of(id, question);
                if after.is_none_or(|after| key.as_slice() > after) {
                    found.push((key, id.clone(), question.cloned()));
                }
            };
            if filter.questions {
                session.questions.keys().for_each(|question| add(Some(question)));
            } else {
                add(None);
            }
        }
        found.sort_unstable();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(key, ..)| key.clone());
        let rows = found.into_iter().filter_map(|(_, id, question)| {
            let session = self.sessions.get(&id)?;
            row(id, &session, question.as_ref()).filter(|row| filter.admits(&row.facts))
        });
        Listing { rows: rows.collect(), next }
    }
}

/// The row, unless it has gone since.
fn row(id: SessionId, session: &Session, question: Option<&InterruptId>) -> Option<Row> {
    let question = match question {
        Some(question) => Some(session.questions.get(question)?.clone()),
        None => None,
    };
    Some(Row {
        session: id,
        facts: session.facts.clone()?,
        head: session.log.head(),
        created: session.created,
        updated: session.updated,
        question,
    })
}
