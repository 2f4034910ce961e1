//! An input that waits for its turn.

use std::fmt;
use std::sync::Arc;

use crate::id::SessionId;
use crate::llm::Spend;
use crate::run::error::RunError;
use crate::state::State;

use super::rest::Resumer;
use super::{Outcome, Resume, Source};

/// An input that waits for its turn: see [`Agent::enqueue`](crate::Agent::enqueue) and
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
#[non_exhaustive]
pub struct Queued<S: State> {
    /// The session.
    pub session: SessionId,
    /// The id of the input: that of the request, or a fresh one. To wait for the turn in another
    /// process, [enqueue](crate::Agent::enqueue) the same input with this id there.
    pub input_id: String,
    /// What the input waits for.
    pub status: QueueStatus,
    /// Always zero: it has not run. [`Outcome::spent`](crate::Outcome::spent) borrows it.
    spent: Spend,
    agent: Arc<dyn Resumer<S>>,
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
    /// A worker: the session has nothing else to do.
    Due,
    /// Nothing: the input was applied before, and another run holds the session. It works on the
    /// turn of this input, or on a later one.
    Applied,
}

impl<S: State> Queued<S> {
    pub(crate) fn new(
        session: SessionId,
        input_id: String,
        status: QueueStatus,
        agent: Arc<dyn Resumer<S>>,
    ) -> Self {
        Self { session, input_id, status, spent: Spend::default(), agent }
    }

    pub(super) fn spent(&self) -> &Spend {
        &self.spent
    }

    /// Waits until the turn of this input is over or needs a person, whichever process runs it: the
    /// outcome is that of this turn, also if later turns have begun since. It ends
    /// [`Interrupted`](Outcome::Interrupted) while the turn waits for an answer; called again after
    /// the answer, it waits for what follows.
    ///
    /// It looks at the session at most twice a second, and at most every 5 milliseconds at first. It
    /// waits indefinitely for a turn that no worker begins.
    ///
    /// # Errors
    /// The input [was skipped](RunError::is_input_skipped), because the program that runs the session
    /// cannot fold it into the state; the session was removed, its log from before the turn was pruned, its state does not decode as
    /// this program's, or the store failed.
    pub async fn outcome(&self) -> Result<Outcome<S>, RunError> {
        self.agent.outcome_of(self.session.clone(), self.input_id.clone()).await
    }
}

impl<S: State> Clone for Queued<S> {
    fn clone(&self) -> Self {
        let Self { session, input_id, status, spent, agent } = self;
        let (session, input_id, agent) = (session.clone(), input_id.clone(), Arc::clone(agent));
        Self { session, input_id, status: *status, spent: *spent, agent }
    }
}

impl<S: State> fmt::Debug for Queued<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued")
            .field("session", &self.session)
            .field("input_id", &self.input_id)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl<S: State> fmt::Display for Queued<S> {
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
            QueueStatus::Due => write!(
                f,
                "input `{input_id}` is queued for session `{session:#}` (a worker of its agent begins \
                 the turn)"
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
impl<S: State> From<&Queued<S>> for Resume<S> {
    fn from(queued: &Queued<S>) -> Self {
        Self(Source::Id(queued.session.as_str().to_owned()))
    }
}
