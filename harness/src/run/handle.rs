use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use tokio::sync::broadcast::{Receiver, WeakSender};
use tokio::task::JoinHandle;

use crate::id::RunId;
use crate::observe::{Event, Events, Outlet, stream};
use crate::state::State;
use crate::step::BoxFuture;
use crate::text::words;

use super::RunError;
use super::error::Kind;
use super::outcome::Outcome;
use super::outcome::request::RunRequest;
use super::stop::StopSignal;

/// A run in a task of its own. Await it, or a `&mut` to it, for its outcome.
///
/// Dropping it cancels the run: the running step is dropped, and effects in flight are finished and
/// recorded.
#[must_use = "dropping a run cancels it"]
pub struct Run<S: State> {
    task: JoinHandle<Result<Outcome<S>, RunError>>,
    control: RunControl,
    events: Option<Receiver<Arc<Event>>>,
    /// Adds readers to the stream without keeping it open.
    resubscribe: WeakSender<Arc<Event>>,
    done: bool,
}

/// Stops a run from another task. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunControl {
    run: RunId,
    stop: StopSignal,
}

impl RunControl {
    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    /// Asks the run to stop at the next boundary: the running step finishes and commits.
    /// [`cx.cancelled()`](crate::Cx::cancelled) notifies the step. A second call has no effect.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Cancels the run: the running step is dropped at its next `.await` and its update discarded.
    /// Effects in flight are finished and recorded first.
    pub fn cancel(&self) {
        self.stop.cancel();
    }

    /// Whether the run was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }
}

impl<S: State> RunRequest<S> {
    /// Spawns the run as a task on the current runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as [`tokio::spawn`] does.
    pub fn start(self) -> Run<S> {
        let (sender, events) = stream();
        let resubscribe = sender.downgrade();
        let outlet = Outlet { sender, tokens: self.options.tokens };
        let (control, run) = self.controlled(Some(outlet));
        let task = tokio::spawn(run);
        Run { task, control, events: Some(events), resubscribe, done: false }
    }

    /// The run as a future, and what stops it.
    pub(crate) fn controlled(
        self,
        stream: Option<Outlet>,
    ) -> (RunControl, BoxFuture<Result<Outcome<S>, RunError>>) {
        let (launched, refused) = self.options.launch(stream);
        let control = RunControl { run: launched.run.clone(), stop: launched.stop.clone() };
        // Nothing runs before the first poll. The future is built here, so that a running one does
        // not contain the request.
        let run = match refused {
            Some(error) => Box::pin(std::future::ready(Err(error))),
            None => (self.launch)(launched),
        };
        (control, run)
    }
}

impl<S: State> Run<S> {
    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.control.run
    }

    /// A handle that stops the run from another task.
    pub fn control(&self) -> RunControl {
        self.control.clone()
    }

    /// Asks the run to stop at the next boundary. See [`RunControl::stop`].
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Cancels the run. See [`RunControl::cancel`].
    pub fn cancel(&self) {
        self.control.cancel();
    }

    /// The run's events: from the beginning for the first caller, from now on for later ones. The
    /// stream is bounded, and reports to a slow reader how many events it missed.
    pub fn events(&mut self) -> Events {
        let first = self.events.take();
        let reader = first.or_else(|| Some(self.resubscribe.upgrade()?.subscribe()));
        // A settled run has no more events.
        Events::new(reader.unwrap_or_else(|| stream().1))
    }
}

impl<S: State> Future for Run<S> {
    type Output = Result<Outcome<S>, RunError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let joined = std::task::ready!(Pin::new(&mut self.task).poll(cx));
        self.done = true;
        Poll::Ready(match joined {
            Ok(outcome) => outcome,
            Err(error) if error.is_panic() => {
                Err(Kind::Panicked(words(&*error.into_panic())).into())
            }
            Err(_) => Err(Kind::RuntimeGone.into()),
        })
    }
}

impl<S: State> Drop for Run<S> {
    fn drop(&mut self) {
        if !self.done {
            self.control.stop.abandon();
            self.control.cancel();
            // It may have settled already, before its outcome was awaited.
            let settled = tokio::task::unconstrained(&mut self.task).now_or_never();
            if let Some(Ok(Ok(outcome))) = settled {
                outcome.give_back();
            }
        }
    }
}

impl<S: State> fmt::Debug for Run<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("run", &self.control.run).finish_non_exhaustive()
    }
}
