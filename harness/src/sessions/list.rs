//! Lists: of sessions, and of questions that wait.

use crate::id::SessionId;
use crate::journal::{read, read_letters};
use crate::step::Interrupt;
use crate::store::Filter;

use super::error::{open_error, store_error};
use super::status::{PendingInterrupt, PendingPage, SessionPage, SessionRow, unanswered};
use super::{Sessions, SessionsError};

/// How many rows are asked for at once where all are wanted.
const ROWS: u32 = 256;

impl Sessions {
    /// Lists sessions that `filter` admits, in the order of their ids: at most `limit` (at least 1
    /// is meant), from behind the page that [`SessionPage::next`] ends. Reads no log.
    ///
    /// Sessions that come and go while pages are read are seen or not; all others are seen once.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<SessionPage, SessionsError> {
        let filter = Filter { interrupts: false, ..filter.clone() };
        let listing = self.store.list(&filter, after, limit).await.map_err(store_error)?;
        let rows = listing.rows.into_iter().map(SessionRow::from).collect();
        Ok(SessionPage { rows, next: listing.next })
    }

    /// Lists all sessions that `filter` admits, page by page, and holds them all in memory. Where
    /// there may be very many, read [pages](Sessions::list).
    ///
    /// # Errors
    /// The store failed.
    pub async fn all(&self, filter: &Filter) -> Result<Vec<SessionRow>, SessionsError> {
        let mut rows = Vec::new();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let mut page = self.list(filter, after.as_deref(), ROWS).await?;
            rows.append(&mut page.rows);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(rows),
            }
        }
    }

    /// Lists the questions that wait, of all sessions that `filter` admits: at most `limit` (at
    /// least 1 is meant), from behind the page that [`PendingPage::next`] ends.
    ///
    /// The store's index does not know what is asked: that is read from the log of each session on
    /// the page, from its last snapshot on. A session whose log cannot be read does not hide the
    /// others: it is among [`unreadable`](PendingPage::unreadable).
    ///
    /// # Errors
    /// The store failed.
    pub async fn pending_interrupts(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<PendingPage, SessionsError> {
        let filter = Filter { interrupts: true, ..filter.clone() };
        let listing = self.store.list(&filter, after, limit).await.map_err(store_error)?;
        let mut page = PendingPage { next: listing.next, ..PendingPage::default() };
        // The questions of one session stand together.
        let mut at_hand: Option<(SessionId, Vec<Interrupt>)> = None;
        for row in listing.rows {
            let Some(listed) = row.interrupt else { continue };
            if at_hand.as_ref().is_none_or(|(session, _)| *session != row.session) {
                let open = match self.open(&row.session).await {
                    Ok(open) => open,
                    Err(error) if error.is_of_one_session() => {
                        page.unreadable.push((row.session.clone(), error));
                        Vec::new()
                    }
                    Err(error) => return Err(error),
                };
                at_hand = Some((row.session.clone(), open));
            }
            let open = at_hand.iter().flat_map(|(_, open)| open);
            let Some(interrupt) = open.into_iter().find(|asked| asked.id == listed.id) else {
                continue;
            };
            page.rows.push(PendingInterrupt {
                session: row.session,
                agent: row.summary.agent,
                interrupt: interrupt.clone(),
                since: listed.since,
                expires: listed.expires,
            });
        }
        Ok(page)
    }

    /// The questions of a session that nobody has answered; none if it has gone.
    async fn open(&self, session: &SessionId) -> Result<Vec<Interrupt>, SessionsError> {
        let found = read(&*self.store, session).await;
        let Some(found) = found.map_err(|error| open_error(session, error))? else {
            return Ok(Vec::new());
        };
        let taken = found.saved.mail.max(found.counted);
        let (unread, _) = read_letters(&*self.store, session, taken).await.map_err(store_error)?;
        Ok(unanswered(&found.saved, &unread).cloned().collect())
    }
}
