//! A session between two invocations.

use std::string::FromUtf8Error;

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;
use crate::id::{AgentId, Seq, SessionId};
use crate::inbox::{Body, SentFrom, queue_input};
use crate::journal::{ReadError, read};
use crate::recovery::encoded;
use crate::run::{Kind, RunError};
use crate::session::{ChildAt, End, ParentSession};
use crate::state::State;
use crate::store::{
    Batch, InboxSeq, MemoryStore, Message, OpenInterrupt, Phase, ReadRequest, Sent, SessionStore,
    SessionSummary, StoreError,
};

use super::write::{Line, Text};

/// What an engine keeps of a session between two invocations: its log from the last snapshot on, its
/// inbox, and what stores list of it.
///
/// Serialized, it is one JSON object. Its size is that of the state, a few times over, and of the
/// messages that the session has received.
#[derive(Clone, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The last entry that is not in it.
    after: Seq,
    log: Vec<Line>,
    created: UtcMillis,
    updated: UtcMillis,
    summary: SessionSummary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<OpenInterrupt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inbox: Vec<Text>,
    /// The step that started the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<Box<ParentSession>>,
    /// The children whose turns are over, as long as the session does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children: Vec<(SessionId, Checkpoint)>,
}

/// A child whose turn is over.
///
/// Serialized, it is one JSON object.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildOver {
    /// The step that started it.
    pub parent: ParentSession,
    /// The session of the child.
    pub session: SessionId,
    /// What the engine has of the child. The parent's checkpoint [takes it](Checkpoint::child_over).
    pub checkpoint: Checkpoint,
}

/// A child whose turn was not over when that of its parent settled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildStop {
    /// Its agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// Whether the run is cancelled in the middle of a step, or stops at its next boundary.
    pub cancel: bool,
}

impl Checkpoint {
    /// The agent, phase and step of the session, and when it is due.
    #[must_use]
    pub fn summary(&self) -> &SessionSummary {
        &self.summary
    }

    /// The interrupts that wait.
    #[must_use]
    pub fn interrupts(&self) -> &[OpenInterrupt] {
        &self.open
    }

    /// When the session was created.
    #[must_use]
    pub fn created(&self) -> UtcMillis {
        self.created
    }

    /// When the session was last written to.
    #[must_use]
    pub fn updated(&self) -> UtcMillis {
        self.updated
    }

    /// The last entry of the session's log.
    #[must_use]
    pub fn head(&self) -> Seq {
        Seq(self.after.0 + self.log.len() as u64)
    }

    /// The checkpoint with messages in the inbox, and what became of them: the next invocation that
    /// [works](super::Invocation::work) on the session applies them.
    ///
    /// # Errors
    /// As [`SessionStore::send`].
    pub async fn receive(
        self,
        session: &SessionId,
        messages: &[Message],
    ) -> Result<(Self, Sent), StoreError> {
        let parent = self.parent.clone();
        let store = self.into_store(session);
        let sent = store.send(session, messages).await?;
        let gone = || StoreError::Gone { session: session.clone() };
        let kept = Self::of(&store, session).await?.ok_or_else(gone)?;
        Ok((kept.with_parent(parent), sent))
    }

    /// The checkpoint with an input in the inbox: the next turn begins with it, once this one has
    /// ended. As [`Agent::enqueue`](crate::Agent::enqueue), with an id that makes it apply once.
    ///
    /// # Errors
    /// [Another input has the id](RunError::is_input_conflict), or the input cannot be encoded.
    pub async fn enqueue<S: State>(
        self,
        session: &SessionId,
        id: &str,
        input: S::Update,
    ) -> Result<Self, RunError> {
        let update = encoded::<S>(&input)?;
        // An engine that repeats an invocation must get the same checkpoint.
        let from = SentFrom::default();
        let parent = self.parent.clone();
        let store = self.into_store(session);
        if queue_input(&store, session, id, &update, from).await.map_err(Kind::Store)? {
            return Err(Kind::InputConflict { session: session.clone(), id: id.to_owned() }.into());
        }
        let kept = Self::of(&store, session).await.map_err(Kind::Store)?;
        let gone = || Kind::NotFound(session.clone());
        Ok(kept.ok_or_else(gone)?.with_parent(parent))
    }

    /// The checkpoint with a child whose turn is over: the next invocation that
    /// [works](super::Invocation::work) on the session continues the step that waits for it.
    ///
    /// # Errors
    /// As [`SessionStore::send`].
    pub async fn child_over(
        self,
        session: &SessionId,
        over: ChildOver,
    ) -> Result<Self, StoreError> {
        let parent = self.parent.clone();
        let store = self.into_store(session);
        store.send(session, &[Body::child(&over.session)]).await?;
        over.checkpoint.restore(&store, &over.session);
        let gone = || StoreError::Gone { session: session.clone() };
        Ok(Self { parent, ..Self::of(&store, session).await?.ok_or_else(gone)? })
    }

    /// What the parent of the session has to know, if it has one and its turn is over.
    #[must_use]
    pub fn as_over(&self, session: &SessionId) -> Option<ChildOver> {
        let over = matches!(self.summary.phase, Phase::Ended | Phase::Failed | Phase::Exhausted);
        let parent = self.parent.as_deref().filter(|_| over)?.clone();
        // Its parent does not run its children.
        let checkpoint = Self { parent: None, children: Vec::new(), ..self.clone() };
        Some(ChildOver { parent, session: session.clone(), checkpoint })
    }

    /// The children that the session has started and whose turns are not over. They stop as the session
    /// did: at once if its turn failed, reached a budget or was cancelled.
    ///
    /// # Errors
    /// The checkpoint does not hold a log.
    pub async fn open_children(&self, session: &SessionId) -> Result<Vec<ChildStop>, StoreError> {
        let store = self.clone().into_store(session);
        let Some(found) = read(&store, session).await.map_err(no_log)? else {
            return Ok(Vec::new());
        };
        let session = &found.recorded.session;
        let end = session.settled.as_ref().map(|settled| &settled.end);
        let cancel =
            matches!(end, Some(End::Cancelled | End::Failed { .. } | End::Exhausted { .. }));
        let stop = |at: &ChildAt| ChildStop {
            agent: at.agent.clone(),
            session: at.session.clone(),
            cancel,
        };
        Ok(session.open_children().map(stop).collect())
    }

    /// The children that a turn which has settled leaves at work.
    pub(super) async fn left_children(
        &self,
        session: &SessionId,
    ) -> Result<Vec<ChildStop>, StoreError> {
        match self.summary.phase {
            Phase::Stopped | Phase::Failed | Phase::Exhausted => self.open_children(session).await,
            _ => Ok(Vec::new()),
        }
    }

    pub(super) fn with_parent(mut self, parent: Option<Box<ParentSession>>) -> Self {
        self.parent = parent;
        self
    }

    pub(super) fn parent(&self) -> Option<Box<ParentSession>> {
        self.parent.clone()
    }

    /// The session in a store of its own, where it can be [inspected](crate::Sessions). Entries
    /// before the last snapshot are not there.
    #[must_use]
    pub fn into_store(self, session: &SessionId) -> MemoryStore {
        let store = MemoryStore::new();
        self.restore(&store, session);
        store
    }

    /// A session as a store has it; `None` if it has none.
    pub(super) async fn of(
        store: &MemoryStore,
        session: &SessionId,
    ) -> Result<Option<Self>, StoreError> {
        let request = ReadRequest::from_snapshot().with_messages_after(InboxSeq(0));
        let Some(page) = store.read(session, request.limit(u64::MAX)).await? else {
            return Ok(None);
        };
        let after = page.entries.first().map_or(page.head, |first| Seq(first.seq.0 - 1));
        let text = |error: FromUtf8Error| StoreError::unavailable("a checkpoint holds text", error);
        // The page begins at the last snapshot, or else at the first entry, where a reader can start
        // anyway.
        let line = |(at, entry): (usize, Vec<u8>)| {
            Ok(Line { entry: String::from_utf8(entry)?, snapshot: at == 0 })
        };
        let entries = page.entries.into_iter().map(|entry| entry.bytes).enumerate();
        let inbox = page.messages.iter().map(|stored| Text::of(&stored.message));
        Ok(Some(Self {
            after,
            log: entries.map(line).collect::<Result<_, _>>().map_err(text)?,
            created: page.created,
            updated: page.updated,
            summary: page.summary,
            open: page.interrupts,
            inbox: inbox.collect::<Result<_, _>>().map_err(text)?,
            parent: None,
            children: Box::pin(children(store, session)).await?,
        }))
    }

    /// Puts the session into a store that has none of that id.
    pub(super) fn restore(self, store: &MemoryStore, session: &SessionId) {
        store.begin_after(session, self.after);
        let entries: Vec<_> = self.log.iter().map(Line::as_entry).collect();
        let (after, summary) = (self.after, Some(&self.summary));
        let log = Batch { after, at: self.created, entries: &entries, summary, ..Batch::default() };
        store.repeat_append(session, &log);
        let rest = Batch { at: self.updated, open: &self.open, ..Batch::default() };
        store.repeat_append(session, &rest);
        store.repeat_send(session, self.inbox.into_iter().map(Text::into_message).collect());
        for (child, over) in self.children {
            over.restore(store, &child);
        }
    }
}

/// The children whose turns are over and that the session has not taken.
async fn children(
    store: &MemoryStore,
    session: &SessionId,
) -> Result<Vec<(SessionId, Checkpoint)>, StoreError> {
    if store.holds_only(session) {
        return Ok(Vec::new());
    }
    let found = read(store, session).await.map_err(no_log)?;
    let mut over = Vec::new();
    for child in found.iter().flat_map(|found| found.recorded.session.open_children()) {
        if let Some(checkpoint) = Checkpoint::of(store, &child.session).await? {
            over.push((child.session.clone(), checkpoint));
        }
    }
    Ok(over)
}

fn no_log(error: ReadError) -> StoreError {
    match error {
        ReadError::Store(error) => error,
        ReadError::Replay(error) => StoreError::unavailable("a checkpoint holds a log", error),
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint")
            .field("after", &self.after)
            .field("entries", &self.log.len())
            .field("summary", &self.summary)
            .field("interrupts", &self.open.len())
            .finish_non_exhaustive()
    }
}
