//! The events of a session's page.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use harness::Seq;
use harness::SessionId;
use harness::store::{InboxSeq, ReadRequest};

use crate::Shared;
use crate::problem::Problem;
use crate::session::Id;

/// How often the head of a log is read. Stores do not say when a log grows.
const EVERY: Duration = Duration::from_millis(75);
/// How often it is tried while the store does not answer, or has no such session.
const AGAIN: Duration = Duration::from_secs(1);

/// What a page shows of a session, as far as an event compares it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    head: Seq,
    inbox: InboxSeq,
    held: bool,
}

/// An event with each change of a session: its log has grown, a message has come, a run has begun or
/// left. While the store does not answer, there is none.
pub(crate) async fn events(
    State(shared): State<Arc<Shared>>,
    Query(Id { id }): Query<Id>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let session = SessionId::new(&id).map_err(|error| Problem::bad(error.to_string()))?;
    let events = stream::unfold((shared, session, None), |(shared, session, before)| async move {
        let mut seen: Option<Seen> = before;
        loop {
            let page = shared.store.read(&session, ReadRequest::summary()).await;
            let Ok(Some(page)) = page else {
                tokio::time::sleep(AGAIN).await;
                continue;
            };
            let now = Seen { head: page.head, inbox: page.inbox, held: page.holder.is_some() };
            if seen.replace(now) != Some(now) {
                let event = Event::default().event("head").data(now.head.to_string());
                return Some((Ok(event), (shared, session, seen)));
            }
            tokio::time::sleep(EVERY).await;
        }
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}
