//! Entering steps.
//!
//! [`advance`](Driver::advance) goes from step to step as long as each is done when it is first
//! polled. One that has to wait is handed out and polled to its end as an [`Attempt`].

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use tokio::time::Instant;
use tracing::Span;

use crate::context::Context;
use crate::graph::{Limit, Program, Wiring};
use crate::observe::EventKind;
use crate::session::{Change, Half};
use crate::state::{Ops, State};
use crate::step::{
    Action, Asked, BoxFuture, Cx, FailureKind, Place, Scope, StepError, View,
};

use super::attempt::{Attempt, Polled, words};
use super::driver::Driver;
use super::transition::{Happened, Transition, transition};

/// How many steps that never wait may run before others get their turn.
const STEPS_PER_TURN: u32 = 64;

pub(super) type Body<T> = BoxFuture<Result<T, StepError>>;

/// Why the driver does not go straight on to the next step.
pub(super) enum Pause<U> {
    /// Others get their turn.
    Yield,
    /// Something else than a step that is done: see to it.
    Happened(Happened, Left),
    /// The step has to wait. Its body has been polled once.
    Waits(Entered, Begun<U>),
    /// The step is in two halves.
    Gate(Entered),
}

/// A body that has to wait.
pub(super) struct Begun<T> {
    pub(super) body: Body<T>,
    /// Whether it was polled and knows whom to wake.
    pub(super) polled: bool,
}

enum FirstPoll<T> {
    Done(T),
    Waits(Begun<T>),
}

/// A step that was entered: where, in which span, and until when it may run. The clock is read
/// only where a timeout or a wall budget is set.
pub(super) struct Entered {
    pub(super) place: Place,
    pub(super) span: Span,
    pub(super) timeout: Option<Instant>,
    pub(super) wall: Option<Instant>,
}

/// What a step left behind when it did not get through.
#[derive(Default)]
pub(super) struct Left {
    pub(super) failure: Option<StepError>,
    pub(super) asked: Vec<(String, Asked)>,
    pub(super) gate: Option<Asked>,
}

/// What keeps a step from being done.
type Undone = (Happened, Left);

fn failed(error: StepError) -> Undone {
    let retryable = error.retryable;
    (Happened::Failed { retryable }, Left { failure: Some(error), ..Left::default() })
}

fn panicked(said: &str) -> StepError {
    StepError::of(FailureKind::Panic, false, format!("the step panicked: {said}"))
}

impl<C: Context, S: State> Driver<C, S> {
    /// Runs steps until one has to wait, or something else than the next step is due.
    pub(super) fn advance(
        &mut self,
        program: &Program<C, S>,
        task: &mut Task<'_>,
    ) -> Pause<S::Update> {
        let wiring = &*program.graph.wiring;
        for _ in 0..STEPS_PER_TURN {
            if let Some(happened) = self.at_boundary() {
                return Pause::Happened(happened, Left::default());
            }
            let entered = self.enter(wiring);
            let step = entered.place.step as usize;
            let update = match &program.steps[step].action {
                Action::Ask(_) => return Pause::Gate(entered),
                Action::Decide => None,
                Action::Run(body) => {
                    let (view, cx) = (self.view(), self.cx(entered.place));
                    match self.first_poll(&entered, || body(view, cx), task) {
                        Ok(FirstPoll::Done(update)) => Some(update),
                        Ok(FirstPoll::Waits(begun)) => return Pause::Waits(entered, begun),
                        Err((happened, left)) => return Pause::Happened(happened, left),
                    }
                }
            };
            let branch = match self.fold(program, step, update) {
                Ok(branch) => branch,
                Err((happened, left)) => return Pause::Happened(happened, left),
            };
            let happened = Happened::Done { branch };
            match transition(wiring, &self.session.cursor, happened) {
                Transition::Enter { step } => {
                    self.commit(wiring, Change::Done { branch, next: Some(step) });
                }
                _ => return Pause::Happened(happened, Left::default()),
            }
        }
        Pause::Yield
    }

    fn view(&self) -> View<S> {
        View::new(Arc::clone(&self.session.state))
    }

    fn cx(&self, place: Place) -> Cx<C> {
        Cx::new(Arc::clone(&self.shared), place)
    }

    fn enter(&mut self, wiring: &Wiring) -> Entered {
        self.session.cursor.attempt += 1;
        let place = self.session.cursor.place();
        self.core.begin(place);
        if let Some(scope) = &mut self.scope {
            scope.place = place;
        }
        self.core.publish(Some(place), || EventKind::StepStarted);
        let node = &wiring.nodes[place.step as usize];
        let span = tracing::debug_span!(
            target: "harness",
            "harness.step",
            step = &*node.name,
            position = place.position.0,
            attempt = place.attempt,
        );
        let timeout = node.policy.timeout.map(|limit| Instant::now() + limit);
        Entered { place, span, timeout, wall: self.wall_deadline() }
    }

    /// Makes a body and polls it once, inside its scope and its span.
    fn first_poll<T: Send + 'static>(
        &mut self,
        entered: &Entered,
        make: impl FnOnce() -> Body<T>,
        task: &mut Task<'_>,
    ) -> Result<FirstPoll<T>, Undone> {
        let polled = Scope::enter(&mut self.scope, || {
            let _entered = entered.span.enter();
            catch_unwind(AssertUnwindSafe(|| {
                let mut body = make();
                match body.as_mut().poll(task) {
                    Poll::Ready(result) => Ok(result),
                    Poll::Pending => Err(body),
                }
            }))
        });
        let result = match polled {
            Ok(Err(body)) => return Ok(FirstPoll::Waits(Begun { body, polled: true })),
            Ok(Ok(result)) => result,
            Err(panic) => Err(panicked(&words(&*panic))),
        };
        if self.core.is_unsettled(entered.place) {
            // It asked, or has an effect in flight: no default may stand in for an answer, and no
            // effect be left out of the record.
            let body = Box::pin(std::future::ready(result));
            return Ok(FirstPoll::Waits(Begun { body, polled: false }));
        }
        self.core.conclude(entered.place);
        result.map(FirstPoll::Done).map_err(failed)
    }

    /// Polls a body to its end, and sees to what it leaves behind.
    pub(super) async fn wait<T>(&mut self, entered: Entered, begun: Begun<T>) -> Result<T, Undone> {
        let place = entered.place;
        let mut attempt = Attempt::new(begun, entered, self.scope.clone(), Arc::clone(&self.core));
        let ended = (&mut attempt).await;
        self.core.effects_done().await;
        attempt.end();
        let asked = self.core.conclude(place);
        match ended {
            Polled::Ready(result) => result.map_err(failed),
            Polled::Panicked(said) => Err(failed(panicked(&said))),
            Polled::Asked => Err((Happened::Asked, Left { asked, ..Left::default() })),
            Polled::Cancelled => Err((Happened::Cancel, Left::default())),
            Polled::OutOfTime => Err((Happened::Over(Limit::Wall), Left::default())),
            Polled::TimedOut => {
                let policy = self.program.graph.wiring.nodes[place.step as usize].policy;
                let message = format!(
                    "the step took longer than its timeout of {:?}",
                    policy.timeout.unwrap_or_default()
                );
                Err(failed(StepError::of(FailureKind::Timeout, true, message)))
            }
        }
    }

    /// Runs the half of a gate that is due.
    pub(super) async fn gate(&mut self, program: &Program<C, S>, entered: Entered) -> Undone {
        let step = entered.place.step as usize;
        let Action::Ask(gate) = &program.steps[step].action else {
            return (Happened::Asked, Left::default());
        };
        let (view, cx) = (self.view(), self.cx(entered.place));
        let answered = match self.session.cursor.half {
            Half::First => None,
            Half::Answer => self.session.gate_answer(),
        };
        let Some((question, answer)) = answered else {
            let asked = self.run_body(entered, || (gate.ask)(view, cx)).await;
            return match asked {
                Ok(asked) => (Happened::Asked, Left { gate: Some(asked), ..Left::default() }),
                Err(undone) => undone,
            };
        };
        match self.run_body(entered, || (gate.answer)(view, cx, question, answer)).await {
            Ok(update) => self.done(program, step, update),
            Err(undone) => undone,
        }
    }

    async fn run_body<T: Send + 'static>(
        &mut self,
        entered: Entered,
        make: impl FnOnce() -> Body<T>,
    ) -> Result<T, Undone> {
        let mut make = Some(make);
        let first = poll_fn(|task| {
            Poll::Ready(make.take().map(|make| self.first_poll(&entered, make, task)))
        });
        match first.await {
            Some(Ok(FirstPoll::Done(done))) => Ok(done),
            Some(Ok(FirstPoll::Waits(begun))) => self.wait(entered, begun).await,
            Some(Err(undone)) => Err(undone),
            None => Err((Happened::Asked, Left::default())),
        }
    }

    /// Folds the update of a step that had to wait.
    pub(super) fn done(&mut self, program: &Program<C, S>, step: usize, update: S::Update) -> Undone {
        match self.fold(program, step, Some(update)) {
            Ok(branch) => (Happened::Done { branch }, Left::default()),
            Err(undone) => undone,
        }
    }

    /// Folds an update into the state, in place when nobody holds a view of it, and asks the route
    /// which branch to take.
    fn fold(
        &mut self,
        program: &Program<C, S>,
        step: usize,
        update: Option<S::Update>,
    ) -> Result<Option<usize>, Undone> {
        let state = &mut self.session.state;
        let route = program.steps[step].route.as_ref();
        let mut routing = false;
        let folded = catch_unwind(AssertUnwindSafe(|| {
            if let Some(update) = update {
                Arc::make_mut(state).apply(update, &mut Ops::off());
            }
            routing = true;
            route.map(|route| route(state))
        }));
        folded.map_err(|panic| {
            self.lost = true;
            let (kind, who) = if routing {
                (FailureKind::RoutePanic, "the route")
            } else {
                (FailureKind::ReducerPanic, "a reducer")
            };
            let message = format!("{who} panicked: {}", words(&*panic));
            let failure = Some(StepError::of(kind, false, message));
            (Happened::Lost, Left { failure, ..Left::default() })
        })
    }
}
