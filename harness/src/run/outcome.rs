//! How a run settled, and what resumes from there.

pub(crate) mod child;
pub(super) mod queued;
pub(super) mod request;
pub(super) mod rest;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::clock::UtcMillis;
use crate::graph::Limit;
use crate::id::{RunId, SessionId};
use crate::llm::Spend;
use crate::question::Question;
use crate::session::{ChildDone, End};
use crate::signal::Signal;
use crate::state::State;
use crate::step::{Answers, Failure, Interrupt, NotThisQuestion, Pending, View};

use super::stop::StopSignal;
pub use child::Child;
pub use queued::{QueueStatus, Queued};
use request::RunRequest;
use rest::{Rest, Resting, Resumer, Slot};

/// How a run settled. In every case but `Ended` and `Queued` the session can be resumed.
#[derive(Debug)]
pub enum Outcome<S: State> {
    /// The loop ended.
    Ended(Ended<S>),
    /// Interrupts wait for answers.
    Interrupted(Interrupted<S>),
    /// The session waits for a timer, or for a [child](crate::Cx::call). Nothing runs until then;
    /// resume it when it is [due](Waiting::until), or its children have settled.
    Waiting(Waiting<S>),
    /// The run was asked to stop, or cancelled.
    Stopped(Stopped<S>),
    /// A budget was reached.
    Exhausted(Exhausted<S>),
    /// A step failed, and no error route handled the failure.
    Failed(Failed<S>),
    /// Another run holds the session, and the input waits for its turn: see
    /// [`OnBusy::Queue`](crate::OnBusy::Queue). Only a run that asks for it settles so.
    Queued(Queued<S>),
}

/// A turn that ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended<S> {
    /// The state at the end.
    pub state: S,
    /// The session.
    pub session: SessionId,
    /// The run that ended it.
    pub run: RunId,
    /// The spend of the turn.
    pub spent: Spend,
    /// How many steps the turn took.
    pub steps: u64,
    /// The failure of the `.finally(..)` steps, if they failed.
    pub finally_failure: Option<Arc<Failure>>,
    signal: Option<(Cow<'static, str>, Cow<'static, str>)>,
}

impl<S> Ended<S> {
    /// The signal that ended the loop, if a route that returns `Sig` ended it.
    pub fn by<Sig: Signal>(&self) -> Option<Sig> {
        let (signals, name) = self.signal.as_ref()?;
        if signals != Sig::NAME {
            return None;
        }
        Sig::ALL.iter().copied().find(|signal| signal.name() == name)
    }

    /// The name of the signal that ended the loop, if a route ended it.
    pub fn signal(&self) -> Option<&str> {
        self.signal.as_ref().map(|(_, signal)| &**signal)
    }

    /// How it ended, as a log has it.
    pub(super) fn end(&self) -> End {
        End::Ended { by: self.signal.clone() }
    }

    /// The turn of a child, as the log of its parent has it.
    pub(super) fn of_child(state: S, session: SessionId, done: ChildDone) -> Self {
        let ChildDone { run, end, steps, spent, finally_failure, .. } = done;
        let signal = if let End::Ended { by } = end { by } else { None };
        Self { state, session, run, spent, steps, finally_failure, signal }
    }
}

macro_rules! resting {
    ($($(#[$doc:meta])* $name:ident ($state:ty) {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[non_exhaustive]
        pub struct $name<S: State> {
            /// The state as of the last commit.
            pub state: $state,
            /// The session.
            pub session: SessionId,
            /// The run that settled.
            pub run: RunId,
            /// The spend of this turn so far.
            pub spent: Spend,
            $($(#[$field_doc])* pub $field: $ty,)*
            rest: Rest<S>,
        }

        impl<S: State> From<$name<S>> for Resume<S> {
            fn from(outcome: $name<S>) -> Self {
                Self::from(&outcome)
            }
        }

        impl<S: State> From<&$name<S>> for Resume<S> {
            fn from(outcome: &$name<S>) -> Self {
                Resume(Source::Rest(outcome.rest.clone()))
            }
        }
    )*};
}

resting! {
    /// A session with open interrupts.
    Interrupted(View<S>) {
        /// The open interrupts.
        questions: Vec<Interrupt>,
        /// When a timer is due that the session waits for as well, or the first question expires:
        /// resume it then if no answer has come.
        until: Option<UtcMillis>,
        /// Whether another process can resume it. Without a store the session lives in this outcome.
        durable: bool,
    }
    /// A session that waits for a timer, or for sessions that it has started. A run that resumes it
    /// before settles as waiting again.
    Waiting(View<S>) {
        /// When the first timer is due, of a child as well.
        until: Option<UtcMillis>,
        /// The children that it waits for. Their questions stand in their own sessions.
        children: Vec<Child>,
    }
    /// A run that was stopped or cancelled. Its session resumes at the step where it stopped.
    Stopped(View<S>) {
        /// Whether it was cancelled: the running step was dropped and its update discarded.
        cancelled: bool,
    }
    /// A turn that reached its budget. A run with a larger [budget](RunRequest::budget) resumes its
    /// session.
    Exhausted(View<S>) {
        /// The part of the budget that was reached.
        limit: Limit,
        /// The failure of the `.finally(..)` steps, if they failed.
        finally_failure: Option<Arc<Failure>>,
    }
    /// A turn that failed. Its session resumes with another attempt at the same step, unless a
    /// reducer or a route panicked: then there is no state.
    Failed(Option<View<S>>) {
        /// The failure.
        failure: Arc<Failure>,
        /// The failure of the `.finally(..)` steps, if they failed.
        finally_failure: Option<Arc<Failure>>,
    }
}

/// What an agent resumes: an outcome (`&outcome`, or `&waiting`, `&failed`, `&stopped`, `&exhausted`),
/// or the id of a session if the agent has a store.
#[derive(Debug)]
pub struct Resume<S: State>(pub(crate) Source<S>);

#[derive(Debug)]
pub(crate) enum Source<S: State> {
    Rest(Rest<S>),
    Id(String),
    Ended(SessionId),
}

/// What [`Agent::resume`](crate::Agent::resume) takes: what converts to a [`Resume`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a session that can be resumed",
    label = "expected an outcome, or the id of a session",
    note = "pass the outcome (`&outcome`, or the `&waiting`, `&stopped`, `&exhausted` or `&failed` inside it), or the session's id; an ended session takes its next input by `agent.run(input, slots).session(id)`"
)]
pub trait Resumable<S: State>: Into<Resume<S>> {}

#[diagnostic::do_not_recommend]
impl<S: State, T: Into<Resume<S>>> Resumable<S> for T {}

impl<S: State> From<Outcome<S>> for Resume<S> {
    fn from(outcome: Outcome<S>) -> Self {
        Self::from(&outcome)
    }
}

impl<S: State> From<&Outcome<S>> for Resume<S> {
    fn from(outcome: &Outcome<S>) -> Self {
        match outcome {
            Outcome::Ended(ended) => Self(Source::Ended(ended.session.clone())),
            Outcome::Interrupted(outcome) => outcome.into(),
            Outcome::Waiting(outcome) => outcome.into(),
            Outcome::Stopped(outcome) => outcome.into(),
            Outcome::Exhausted(outcome) => outcome.into(),
            Outcome::Failed(outcome) => outcome.into(),
            Outcome::Queued(outcome) => outcome.into(),
        }
    }
}

impl<S: State> From<&str> for Resume<S> {
    fn from(id: &str) -> Self {
        Self(Source::Id(id.to_owned()))
    }
}

impl<S: State> From<String> for Resume<S> {
    fn from(id: String) -> Self {
        Self(Source::Id(id))
    }
}

impl<S: State> From<&String> for Resume<S> {
    fn from(id: &String) -> Self {
        Self(Source::Id(id.clone()))
    }
}

impl<S: State> From<SessionId> for Resume<S> {
    fn from(id: SessionId) -> Self {
        Self::from(&id)
    }
}

impl<S: State> From<&SessionId> for Resume<S> {
    fn from(id: &SessionId) -> Self {
        Self(Source::Id(id.as_str().to_owned()))
    }
}

impl<S: State> Interrupted<S> {
    /// The only open question, with its type.
    ///
    /// # Errors
    /// [`NotThisQuestion`] if another question is open, or several are.
    pub fn pending<Q: Question>(&self) -> Result<Pending<Q>, NotThisQuestion> {
        match &self.questions[..] {
            [only] => only.as_question(),
            several => Err(NotThisQuestion {
                expected: Q::NAME.to_owned(),
                found: several.iter().map(|question| question.name.clone()).collect(),
                why: None,
            }),
        }
    }

    /// Resumes the session with the answers, in this process. `slots` are the agent's runtime slots.
    /// Their type is checked when the run starts, because an outcome does not name the context. The
    /// compiler checks [`agent.resume(&waiting, answers, slots)`](crate::Agent::resume).
    ///
    /// If the answers are refused, the session is unchanged. If some interrupts stay open, the
    /// answers are kept and the run settles as interrupted again.
    pub fn resume<R: Send + 'static>(&self, answers: Answers, slots: R) -> RunRequest<S> {
        self.rest.resume(answers, slots)
    }
}

impl<S: State> Outcome<S> {
    /// The ended turn, or an error for every other outcome.
    ///
    /// # Errors
    /// [`NotEnded`], which holds the outcome and prints how the run settled.
    pub fn ended(self) -> Result<Ended<S>, NotEnded<S>> {
        match self {
            Self::Ended(ended) => Ok(ended),
            other => Err(NotEnded { outcome: Box::new(other) }),
        }
    }

    /// The state as of the last commit; `None` if a panic of a reducer or a route lost it, and of an
    /// input that is queued.
    pub fn state(&self) -> Option<&S> {
        match self {
            Self::Ended(it) => Some(&it.state),
            Self::Interrupted(it) => Some(&it.state),
            Self::Waiting(it) => Some(&it.state),
            Self::Stopped(it) => Some(&it.state),
            Self::Exhausted(it) => Some(&it.state),
            Self::Failed(it) => it.state.as_deref(),
            Self::Queued(_) => None,
        }
    }

    /// The state as of the last commit, owned. An ended turn returns its state, every other outcome
    /// a clone.
    pub fn into_state(self) -> Option<S> {
        if let Self::Ended(ended) = self {
            return Some(ended.state);
        }
        self.state().cloned()
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Ended(it) => &it.session,
            Self::Interrupted(it) => &it.session,
            Self::Waiting(it) => &it.session,
            Self::Stopped(it) => &it.session,
            Self::Exhausted(it) => &it.session,
            Self::Failed(it) => &it.session,
            Self::Queued(it) => &it.session,
        }
    }

    /// The spend of this turn.
    pub fn spent(&self) -> &Spend {
        match self {
            Self::Ended(it) => &it.spent,
            Self::Interrupted(it) => &it.spent,
            Self::Waiting(it) => &it.spent,
            Self::Stopped(it) => &it.spent,
            Self::Exhausted(it) => &it.spent,
            Self::Failed(it) => &it.spent,
            Self::Queued(it) => it.spent(),
        }
    }

    /// Returns the session to the outcome it was resumed from: no caller received this one.
    pub(crate) fn give_back(&self) {
        match self {
            Self::Ended(_) | Self::Queued(_) => {}
            Self::Interrupted(it) => it.rest.give_back(),
            Self::Waiting(it) => it.rest.give_back(),
            Self::Stopped(it) => it.rest.give_back(),
            Self::Exhausted(it) => it.rest.give_back(),
            Self::Failed(it) => it.rest.give_back(),
        }
    }

    pub(crate) fn new(settled: Settlement<S>, agent: impl FnOnce() -> Arc<dyn Resumer<S>>) -> Self {
        let Settlement { session, run, end, finally_failure, state, spent, steps, .. } = settled;
        let Settlement { interrupts: questions, due, children, .. } = settled;
        let Settlement { resting, durable, home, .. } = settled;
        let by = match end {
            End::Ended { by } => {
                let state = state
                    .map(|state| Arc::try_unwrap(state).unwrap_or_else(|held| (*held).clone()));
                let state = state.unwrap_or_default();
                let signal = by;
                let ended = Ended { state, session, run, spent, steps, finally_failure, signal };
                return Self::Ended(ended);
            }
            other => other,
        };
        let rest = match durable {
            true => Rest::stored(session.clone(), agent()),
            false => Rest::here(session.clone(), resting, agent(), home),
        };
        if let End::Failed { failure } = by {
            let state = state.map(View::new);
            let failed = Failed { state, session, run, spent, failure, finally_failure, rest };
            return Self::Failed(failed);
        }
        // Only a failure loses the state.
        let state = View::new(state.unwrap_or_default());
        match by {
            End::Exhausted { limit } => Self::Exhausted(Exhausted {
                state,
                session,
                run,
                spent,
                limit,
                finally_failure,
                rest,
            }),
            End::Interrupted => Self::Interrupted(Interrupted {
                state,
                session,
                run,
                spent,
                questions,
                until: due,
                durable,
                rest,
            }),
            End::Waiting { .. } => {
                let until = due;
                Self::Waiting(Waiting { state, session, run, spent, until, children, rest })
            }
            other => {
                let cancelled = matches!(other, End::Cancelled);
                Self::Stopped(Stopped { state, session, run, spent, cancelled, rest })
            }
        }
    }
}

/// A run that has settled, before it becomes an outcome.
pub(crate) struct Settlement<S> {
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) end: End,
    pub(crate) finally_failure: Option<Arc<Failure>>,
    /// `None` if it did not survive a panic of a reducer or a route.
    pub(crate) state: Option<Arc<S>>,
    pub(crate) spent: Spend,
    /// How many steps the turn has taken.
    pub(crate) steps: u64,
    /// The interrupts that wait.
    pub(crate) interrupts: Vec<Interrupt>,
    /// When the session is to be resumed though no answer comes.
    pub(crate) due: Option<UtcMillis>,
    /// The children that the session waits for.
    pub(crate) children: Vec<Child>,
    /// The session, where it is not in a store.
    pub(crate) resting: Option<Resting<S>>,
    /// Whether the session is in a store.
    pub(crate) durable: bool,
    /// Where the session came from.
    pub(crate) home: Option<Slot<S>>,
}

impl<S: State> Settlement<S> {
    /// The outcome. If it has no receiver, the session returns to where it came from.
    pub(crate) fn into_outcome(
        self,
        stop: &StopSignal,
        agent: impl FnOnce() -> Arc<dyn Resumer<S>>,
    ) -> Outcome<S> {
        let outcome = Outcome::new(self, agent);
        if stop.is_abandoned() {
            outcome.give_back();
        }
        outcome
    }
}

/// A run that settled without ending its turn.
pub struct NotEnded<S: State> {
    outcome: Box<Outcome<S>>,
}

impl<S: State> NotEnded<S> {
    /// How it settled. Its session can be resumed.
    pub fn into_outcome(self) -> Outcome<S> {
        *self.outcome
    }
}

impl<S: State> fmt::Display for NotEnded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.outcome.session();
        match &*self.outcome {
            Outcome::Ended(_) => write!(f, "session `{session}` ended"),
            Outcome::Interrupted(it) => {
                let names: Vec<&str> = it.questions.iter().map(|q| q.name.as_str()).collect();
                write!(f, "session `{session}` waits for an answer to `{}`", names.join("`, `"))
            }
            Outcome::Waiting(it) => match it.until {
                Some(until) => write!(f, "session `{session}` waits until {until}"),
                None => write!(f, "session `{session}` waits"),
            },
            Outcome::Stopped(it) if it.cancelled => write!(f, "session `{session}` was cancelled"),
            Outcome::Stopped(_) => write!(f, "session `{session}` was stopped"),
            Outcome::Exhausted(it) => {
                write!(f, "session `{session}` used up its budget of {}", it.limit)
            }
            Outcome::Failed(it) => write!(f, "session `{session}` failed: {:#}", it.failure),
            Outcome::Queued(it) => it.fmt(f),
        }
    }
}

impl<S: State> fmt::Debug for NotEnded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NotEnded({self})")
    }
}

impl<S: State> std::error::Error for NotEnded<S> {}
