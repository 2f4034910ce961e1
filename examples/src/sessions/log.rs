//! Reading the log of a session.

use harness::inspect::SessionsError;
use harness::session::{Change, Entry};
use harness::{Interrupt, Seq, Sessions};

/// How many entries are read at once.
const PAGE: usize = 256;

/// The log of a session, oldest entries first, as far as it is kept.
///
/// # Errors
/// As of [`Sessions::history`].
pub async fn log(sessions: &Sessions, id: &str) -> Result<Vec<(Seq, Entry)>, SessionsError> {
    let mut entries = Vec::new();
    let mut from = match sessions.history(id, Seq(0), PAGE).await {
        // What was pruned is known to be gone.
        Err(error) if error.is_pruned() => error.pruned(),
        first => {
            let page = first?;
            entries.extend(page.entries);
            page.next
        }
    };
    while let Some(seq) = from {
        let page = sessions.history(id, seq, PAGE).await?;
        entries.extend(page.entries);
        from = page.next;
    }
    Ok(entries)
}

/// The last question that was asked, answered or not.
#[must_use]
pub fn last_question(log: &[(Seq, Entry)]) -> Option<&Interrupt> {
    log.iter().rev().find_map(|(_, entry)| match &entry.kind {
        Change::Asked(asked) => asked.questions.last(),
        _ => None,
    })
}
