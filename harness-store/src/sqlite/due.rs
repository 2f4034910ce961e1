//! Sessions that are due, by an index, and what wakes those that wait for one.

use std::sync::Arc;
use std::time::Duration;

use harness::id::AgentId;
use harness::store::{DueRequest, DueSessions, StoreError};
use harness::{SessionId, UtcMillis};
use rusqlite::{Connection, params};

use super::batch::id_of;
use super::claim::{claim, held_until};
use super::error::Fault;
use super::row::{COLUMNS, Session};
use super::shared::{Known, Shared};
use super::store::SMALL;

/// Sessions that may be claimed, and those that cannot.
#[derive(Default)]
struct Candidates {
    free: Vec<SessionId>,
    failed: Vec<(SessionId, StoreError)>,
}

/// Sessions that are due and free as of one state of the database.
fn candidates(conn: &Connection, known: &Known, request: &DueRequest) -> Result<Candidates, Fault> {
    let mut found = Candidates::default();
    let now = now();
    for agent in &request.agents {
        of_agent(conn, known, request, agent, now, &mut found)?;
    }
    Ok(found)
}

/// Whether a session is due and free, so that a worker can claim it.
pub(crate) fn is_due(conn: &Connection, known: &Known, id: &SessionId) -> Result<bool, Fault> {
    let session = Session::find(conn, id)?;
    Ok(session.is_some_and(|session| {
        session.due_from().is_some_and(|due| due.0.cast_signed() <= now())
            && held_until(known, &session).is_none()
    }))
}

fn now() -> i64 {
    i64::try_from(UtcMillis::now().0).unwrap_or(i64::MAX)
}

fn of_agent(
    conn: &Connection,
    known: &Known,
    request: &DueRequest,
    agent: &AgentId,
    now: i64,
    found: &mut Candidates,
) -> Result<(), Fault> {
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let mut select = conn.prepare_cached(&format!(
        "SELECT {COLUMNS}, id FROM session WHERE agent = ? AND due <= ? AND due IS NOT NULL \
         ORDER BY due"
    ))?;
    let mut rows = select.query(params![agent.as_str().as_bytes(), now])?;
    while found.free.len() < limit {
        let Some(row) = rows.next()? else { break };
        let Some(id) = id_of(&row.get::<_, Vec<u8>>(19)?) else { continue };
        if request.except.contains(&id) {
            continue;
        }
        let session = match Session::read(row, id.clone()) {
            Ok(session) if held_until(known, &session).is_some() => continue,
            read => read.and_then(|session| known.check(conn, &session)),
        };
        match session {
            Ok(()) => found.free.push(id),
            Err(Fault::Refused(error)) => found.failed.push((id, error)),
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

impl Shared {
    /// Does work after which a session may be due: if it is, waits of this process end.
    pub(crate) async fn write_and_notify<T: Send + 'static>(
        &self,
        session: &SessionId,
        flush: bool,
        bytes: u64,
        mut work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (id, known) = (session.clone(), Arc::clone(&self.known));
        let work = move |conn: &Connection| Ok((work(conn)?, is_due(conn, &known, &id)?));
        let (done, is_due) = self.write(session, flush, bytes, work).await?;
        if is_due {
            self.due.notify_waiters();
        }
        Ok(done)
    }

    /// Looks for due sessions without holding up what is written, and claims those it finds. Another
    /// process may have been faster: then it looks again.
    pub(crate) async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        let mut due = DueSessions::default();
        loop {
            let (known, wanted) = (Arc::clone(&self.known), request.clone());
            let look = move |conn: &Connection| candidates(conn, &known, &wanted);
            let Candidates { free, failed } = self.read(None, look).await?;
            due.failed = failed;
            let Some(first) = free.first().cloned() else { return Ok(due) };
            let known = Arc::clone(&self.known);
            let take = move |conn: &Connection| {
                let mut claimed = Vec::new();
                for id in &free {
                    if is_due(conn, &known, id)? {
                        claimed.push(claim(conn, &known, id, ttl)?);
                    }
                }
                Ok(claimed)
            };
            due.claimed = self.write(&first, false, SMALL, take).await?;
            if !due.claimed.is_empty() {
                return Ok(due);
            }
        }
    }
}
