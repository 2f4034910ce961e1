//! Lists of sessions, and of open interrupts.

use crate::id::SessionId;
use crate::inbox::read_inbox_after;
use crate::journal::read;
use crate::step::Interrupt;
use crate::store::Filter;

use super::error::{read_error, store_error};
use super::status::{InterruptPage, SessionInterrupt, SessionPage, SessionRow, unanswered};
use super::{Sessions, SessionsError};

/// The rows of one page, where all pages are read.
const ROWS: u32 = 256;

/// The same for interrupts: the session of each page's first is read again.
const INTERRUPTS: u32 = 4_096;

impl Sessions {
    /// Lists the sessions that `filter` admits, in the order of their ids: at most `limit` (at least
    /// 1). `after` is the [`SessionPage::next`] of the previous page. Reads no log.
    ///
    /// A session that is created or deleted while pages are read may be missing. Every other session
    /// is listed once.
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

    /// Lists all sessions that `filter` admits and keeps them in memory. For very many sessions, read
    /// [pages](Sessions::list).
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

    /// Every open interrupt of all sessions. A service with many of them lists
    /// [page by page](Self::list_interrupts).
    ///
    /// # Errors
    /// The store failed.
    pub async fn pending_interrupts(&self) -> Result<InterruptPage, SessionsError> {
        let mut all = InterruptPage::default();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page =
                self.list_interrupts(&Filter::default(), after.as_deref(), INTERRUPTS).await?;
            all.rows.extend(page.rows);
            all.unreadable.extend(page.unreadable);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Lists the open interrupts of all sessions that `filter` admits: at most `limit` (at least 1).
    /// `after` is the [`InterruptPage::next`] of the previous page.
    ///
    /// The store's index does not contain the questions. They are read from the log of each session
    /// on the page, from its last snapshot on. A session whose log cannot be read is in
    /// [`unreadable`](InterruptPage::unreadable), and the others are still listed.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list_interrupts(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<InterruptPage, SessionsError> {
        let filter = Filter { interrupts: true, ..filter.clone() };
        let listing = self.store.list(&filter, after, limit).await.map_err(store_error)?;
        let mut page = InterruptPage { next: listing.next, ..InterruptPage::default() };
        // The interrupts of one session are adjacent.
        let mut current: Option<(SessionId, Vec<Interrupt>)> = None;
        for row in listing.rows {
            let Some(listed) = row.interrupt else { continue };
            if current.as_ref().is_none_or(|(session, _)| *session != row.session) {
                let open = match self.open(&row.session).await {
                    Ok(open) => open,
                    Err(error) if error.is_of_one_session() => {
                        page.unreadable.push((row.session.clone(), error));
                        Vec::new()
                    }
                    Err(error) => return Err(error),
                };
                current = Some((row.session.clone(), open));
            }
            let open = current.iter().flat_map(|(_, open)| open);
            let Some(interrupt) = open.into_iter().find(|asked| asked.id == listed.id) else {
                continue;
            };
            page.rows.push(SessionInterrupt {
                session: row.session,
                agent: row.summary.agent,
                interrupt: interrupt.clone(),
                since: listed.since,
                expires: listed.expires,
            });
        }
        Ok(page)
    }

    /// The unanswered interrupts of a session; none if the session was deleted.
    async fn open(&self, session: &SessionId) -> Result<Vec<Interrupt>, SessionsError> {
        let found = read(&*self.store, session).await;
        let Some(found) = found.map_err(|error| read_error(session, error))? else {
            return Ok(Vec::new());
        };
        let (unread, _) =
            read_inbox_after(&*self.store, session, found.inbox()).await.map_err(store_error)?;
        Ok(unanswered(&found.recorded.session, &unread).cloned().collect())
    }
}
