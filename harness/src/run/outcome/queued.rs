//! An input that waits for its turn.

use std::fmt;

use crate::id::SessionId;
use crate::llm::Spend;
use crate::state::State;

use super::{Resume, Source};

/// An input that another run of the session has to wait for, or that waits for another run: see
/// [`OnBusy::Queue`](crate::OnBusy::Queue).
///
/// ```
/// # use std::sync::Arc;
/// # use harness::prelude::*;
/// # use harness::store::MemoryStore;
/// # use tokio::sync::Notify;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// # struct Chat { #[state(reduce = append)] lines: Vec<String> }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Reply }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let (at_work, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
/// # let stand = (Arc::clone(&at_work), Arc::clone(&go));
/// # let harness = Harness::<(), Chat>::builder("chat").start(Step::Reply).steps(move |define, step| match step {
/// #     Step::Reply => {
/// #         let (at_work, go) = stand.clone();
/// #         define.run(move |chat: View<Chat>, _| {
/// #             let (at_work, go) = (Arc::clone(&at_work), Arc::clone(&go));
/// #             async move {
/// #                 if chat.lines.len() == 1 { at_work.notify_one(); go.notified().await; }
/// #                 Ok(Chat::update().lines(["reply".to_owned()]))
/// #             }
/// #         }).end()
/// #     }
/// # }).build()?;
/// use harness::OnBusy;
/// use harness::run::QueueStatus;
///
/// let agent = harness.agent("chat", ()).store(MemoryStore::new());
/// let say = |line: &str| agent.run(Chat::update().lines([line.into()]), ()).session("chat-1");
/// let first = say("hello").start();
/// # at_work.notified().await;
///
/// let second = say("and bye").input_id("message-2").on_busy(OnBusy::Queue).await?;
/// let Outcome::Queued(queued) = second else { panic!("the first run is at work") };
/// assert_eq!((&*queued.input_id, queued.status), ("message-2", QueueStatus::Held));
///
/// # go.notify_one();
/// let ended = first.await?.ended()?; // it takes the queued input, too
/// assert_eq!(ended.state.lines, ["hello", "reply", "and bye", "reply"]);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Queued {
    /// The session.
    pub session: SessionId,
    /// The id of the input: that of the request, or a fresh one. A request with the same input, the
    /// same id and [`OnBusy::Wait`](crate::OnBusy::Wait) waits for the outcome.
    pub input_id: String,
    /// What the input waits for.
    pub status: QueueStatus,
    /// Always zero: it has not run. [`Outcome::spent`](crate::Outcome::spent) borrows it.
    spent: Spend,
}

/// What a queued input waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueStatus {
    /// Another run holds the session. When it ends the current turn, it starts the next one with the
    /// input. If it settles before, the run that resumes the session and ends the turn does.
    Held,
    /// No run holds the session, and its turn has not ended. Resume it: the run that ends the turn
    /// starts the next one with the input.
    Unsettled,
    /// Nothing: the input was applied before, and another run holds the session. It works on the
    /// turn of this input, or on a later one.
    Applied,
}

impl Queued {
    pub(crate) fn new(session: SessionId, input_id: String, status: QueueStatus) -> Self {
        Self { session, input_id, status, spent: Spend::default() }
    }

    pub(super) fn spent(&self) -> &Spend {
        &self.spent
    }
}

impl fmt::Display for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, input_id, .. } = self;
        match self.status {
            QueueStatus::Held => write!(
                f,
                "input `{input_id}` is queued for session `{session:#}` (the run that holds it starts \
                 the next turn with it; to wait for that: `.on_busy(OnBusy::Wait)` with the same \
                 `.input_id(..)`)"
            ),
            QueueStatus::Unsettled => write!(
                f,
                "input `{input_id}` is queued for session `{session:#}`, whose turn has not ended \
                 (resume the session: the run that ends the turn starts the next one with the input)"
            ),
            QueueStatus::Applied => write!(
                f,
                "input `{input_id}` of session `{session:#}` was applied before, and another run \
                 holds the session (to wait for that run: `.on_busy(OnBusy::Wait)`)"
            ),
        }
    }
}

/// Resuming a queued input resumes its session.
impl<S: State> From<&Queued> for Resume<S> {
    fn from(queued: &Queued) -> Self {
        Self(Source::Id(queued.session.as_str().to_owned()))
    }
}
