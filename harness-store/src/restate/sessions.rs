//! The engine's sessions as those of a store: what it shows of them, and messages to them.

use std::time::Duration;

use async_trait::async_trait;
use harness::engine::asks_to_stop;
use harness::id::Fence;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, Holder, InboxSeq, Lease, Listing,
    Message, Page, ReadRequest, Released, Remove, Row, Sent, SessionStore, StoreError, rules,
};
use harness::{SessionId, UtcMillis};
use serde::Deserialize;

use super::client::{RestateError, quoted};
use super::record::{FORMAT, Kept, ROW, Receive, Received, Record, SESSION, summary};
use super::sdk::Task;
use super::store::RestateStore;

/// The rows of one query.
const ROWS: usize = 1000;

#[derive(Deserialize)]
struct Stored {
    service_key: String,
    value_utf8: String,
}

impl RestateStore {
    /// A value that the objects of the agent have under a name; `and` narrows it down.
    async fn values(&self, name: &str, and: &str) -> Result<Vec<Stored>, StoreError> {
        let sql = format!(
            "select service_key, value_utf8 from state where service_name = {} and key = {} and {and}",
            quoted(self.agent.as_str()),
            quoted(name)
        );
        self.http.query(&sql).await.map_err(failed)
    }

    /// Whether an invocation is at work on a session.
    async fn is_at_work(&self, session: &SessionId) -> Result<bool, StoreError> {
        #[derive(Deserialize)]
        struct Found {}
        let sql = format!(
            "select id from sys_invocation where target_service_name = {} and target_service_key = {} \
             and target_handler_name <> 'signal' and status in ('running', 'backing-off', \
             'suspended', 'paused', 'ready') limit 1",
            quoted(self.agent.as_str()),
            quoted(session.as_str())
        );
        let found: Vec<Found> = self.http.query(&sql).await.map_err(failed)?;
        Ok(!found.is_empty())
    }
}

fn failed(error: RestateError) -> StoreError {
    match error {
        RestateError::Refused { code: 413, message } => StoreError::Full(message),
        RestateError::Unreachable { ambiguous, source } => StoreError::Unavailable {
            what: "Restate did not answer".into(),
            ambiguous,
            source: Some(source),
        },
        // A query changes nothing.
        RestateError::Unready { .. } => StoreError::Unavailable {
            what: "Restate cannot show its sessions".into(),
            ambiguous: false,
            source: Some(error.into()),
        },
        error => StoreError::unavailable("Restate refused a request", error),
    }
}

fn unsuitable() -> StoreError {
    StoreError::Unsuitable(
        "the sessions of an engine are run by its service, and by no other process (start them with \
         `RestateStore::start`, and serve their agent with `RestateService`)"
            .into(),
    )
}

fn undecodable(error: serde_json::Error) -> StoreError {
    StoreError::unavailable("what Restate has of a session does not decode", error)
}

#[async_trait]
impl SessionStore for RestateStore {
    async fn claim(&self, _: &SessionId, _: Duration) -> Result<Claimed, StoreError> {
        Err(unsuitable())
    }

    async fn claim_due(&self, _: &DueRequest, _: Duration) -> Result<DueSessions, StoreError> {
        Err(unsuitable())
    }

    async fn renew(&self, _: &Lease, _: Duration) -> Result<InboxSeq, StoreError> {
        Err(unsuitable())
    }

    async fn release(&self, _: &Lease, _: InboxSeq) -> Result<Released, StoreError> {
        Err(unsuitable())
    }

    async fn append(&self, _: &Lease, _: Batch<'_>) -> Result<Appended, StoreError> {
        Err(unsuitable())
    }

    async fn remove(&self, _: &Lease, _: Remove) -> Result<(), StoreError> {
        Err(unsuitable())
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        if messages.iter().any(asks_to_stop) {
            self.stop(to.as_str()).await.map_err(failed)?;
            return Ok(Sent::Accepted(InboxSeq(0)));
        }
        let receive = Receive { messages: messages.to_vec() };
        match self.call::<Received>(Task::Receive, to.as_str(), &receive).await {
            Ok(received) => Ok(received.into_sent()),
            Err(error) if error.is_not_found() => Err(StoreError::Gone { session: to.clone() }),
            Err(error) => Err(failed(error)),
        }
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        let at = format!("service_key = {}", quoted(session.as_str()));
        let Some(stored) = self.values(SESSION, &at).await?.into_iter().next() else {
            return Ok(None);
        };
        let record: Record = serde_json::from_str(&stored.value_utf8).map_err(undecodable)?;
        if record.format > FORMAT {
            return Err(StoreError::NewerFormat { found: record.format, known: FORMAT });
        }
        let shown = summary(&record.session, record.unfinished);
        let Some(mut page) = record.session.into_store(session).read(session, request).await?
        else {
            return Ok(None);
        };
        page.summary.phase = shown.phase;
        if record.unfinished || self.is_at_work(session).await? {
            // The server lets one invocation after the other work on a session.
            page.holder = Some(Holder::new(Fence(1), UtcMillis::now()));
        }
        Ok(Some(page))
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        let limit = limit.max(1) as usize;
        let mut rows: Vec<Row> = Vec::new();
        let start = after.map(rules::session_part).map(String::from_utf8_lossy).unwrap_or_default();
        let mut and = format!("service_key >= {}", quoted(&start));
        loop {
            let page = format!("{and} order by service_key limit {ROWS}");
            let found = self.values(ROW, &page).await?;
            let more = found.len() == ROWS;
            for Stored { service_key, value_utf8 } in found {
                let kept: Kept = serde_json::from_str(&value_utf8).map_err(undecodable)?;
                if let Ok(session) = SessionId::new(&service_key)
                    && filter.admits(&kept.summary)
                {
                    rows.extend(listed(&session, kept, filter.interrupts));
                }
                and = format!("service_key > {}", quoted(&service_key));
            }
            rows.sort_by_key(Row::key);
            rows.retain(|row| after.is_none_or(|after| &*row.key() > after));
            if !more || rows.len() > limit {
                break;
            }
        }
        let more = rows.len() > limit;
        rows.truncate(limit);
        Ok(Listing::new(rows, more))
    }
}

/// The rows of a session: itself, or its interrupts.
fn listed(session: &SessionId, kept: Kept, interrupts: bool) -> Vec<Row> {
    let mut row = Row::new(session.clone(), kept.summary, kept.head);
    (row.created, row.updated) = (kept.created, kept.updated);
    match interrupts {
        false => vec![row],
        true => {
            let of = |open| {
                let mut row = row.clone();
                row.interrupt = Some(open);
                row
            };
            kept.interrupts.into_iter().map(of).collect()
        }
    }
}
