//! Entering steps.
//!
//! [`advance`](Driver::advance) goes from step to step as long as each is done when it is first
//! polled. One that has to wait is handed out and polled to its end as an [`Attempt`].

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use tokio::time::Instant;
use tracing::Span;

use crate::context::Context;
use crate::graph::{Executable, Limit, Program, Wiring};
use crate::observe::EventKind;
use crate::session::Half;
use crate::state::{Ops, State};
use crate::step::{
    Action, Active, Asked, AtWork, BoxFuture, Boxed, Cx, FailureKind, Finished, Place, Scope, Shared,
    Spare, StepError, View,
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
    Happened(Undone),
    /// The step has to wait. Its body has been polled once.
    Waits(Entered, Begun<U>),
    /// The step is in two halves.
    Gate(Entered),
}

/// A body that has to wait.
pub(super) struct Begun<T> {
    pub(super) body: Box<dyn AtWork<T>>,
    /// Whether it was polled and knows whom to wake.
    pub(super) polled: bool,
}

impl<T: Send + 'static> Begun<T> {
    /// A body that asked, or has an effect in flight, and went on all the same: no default may
    /// stand in for an answer, and no effect be left out of the record.
    fn unsettled(result: Result<T, StepError>) -> Self {
        Self { body: Box::new(Finished(Some(result))), polled: false }
    }
}

/// What was at work when a panic came.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Body,
    Reducer,
    Route,
}

/// How a body ended that was polled once.
enum Quick<T> {
    Done(Option<usize>),
    Failed(StepError),
    Waits,
    Unsettled(Begun<T>),
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

impl Entered {
    fn plain(place: Place) -> Self {
        Self { place, span: Span::none(), timeout: None, wall: None }
    }
}

/// What a step left behind when it did not get through.
#[derive(Default)]
pub(super) struct Left {
    pub(super) failure: Option<StepError>,
    pub(super) asked: Vec<(String, Asked)>,
    pub(super) gate: Option<Asked>,
}

/// What keeps a step from being done. Boxed, so that the results of steps that are done are small.
pub(super) type Undone = Box<(Happened, Left)>;

fn undone(happened: Happened, left: Left) -> Undone {
    Box::new((happened, left))
}

fn failed(error: StepError) -> Undone {
    let retryable = !error.is_fatal();
    undone(Happened::Failed { retryable }, Left { failure: Some(error), ..Left::default() })
}

fn panicked(said: &str) -> StepError {
    StepError::of(FailureKind::Panic, false, format!("the step panicked: {said}"))
}

/// Drops what a panic left behind; another panic there changes nothing.
fn drop_quietly<T>(left: T) {
    let _ = catch_unwind(AssertUnwindSafe(move || drop(left)));
}

impl<C: Context, S: State> Driver<C, S> {
    /// Runs steps until one has to wait, or something else than the next step is due.
    #[inline(never)]
    pub(super) fn advance(
        &mut self,
        program: &Program<C, S>,
        task: &mut Task<'_>,
    ) -> Pause<S::Update> {
        let wiring = &*program.graph.wiring;
        for _ in 0..STEPS_PER_TURN {
            if let Some(happened) = self.at_boundary() {
                return Pause::Happened(undone(happened, Left::default()));
            }
            let (place, spare) = self.enter();
            let executable = &program.steps[place.step()];
            let branch = match self.quick(wiring, executable, place, spare, task) {
                Ok(branch) => branch,
                Err(pause) => return *pause,
            };
            let happened = Happened::Done { branch };
            match transition(wiring, &self.session.cursor, happened) {
                Transition::Enter { step } => self.commit_done(wiring, branch, step),
                _ => return Pause::Happened(undone(happened, Left::default())),
            }
        }
        Pause::Yield
    }

    /// One step that is done when it is first polled: body, update, route. All of it is one
    /// closure, so that the update is not moved about. Says which branch the route takes.
    #[inline]
    fn quick(
        &mut self,
        wiring: &Wiring,
        executable: &Executable<C, S>,
        place: Place,
        spare: Option<Spare>,
        task: &mut Task<'_>,
    ) -> Result<Option<usize>, Box<Pause<S::Update>>> {
        let body = match &executable.action {
            Action::Run(body) => body,
            Action::Decide => {
                let folded = self.fold(executable, None);
                return folded.map_err(|undone| Box::new(Pause::Happened(undone)));
            }
            Action::Ask(_) => return Err(Box::new(Pause::Gate(self.entered(wiring, place)))),
        };
        let shared = self.take_or_share(spare);
        let entered = self.timed_or_traced(wiring, place);
        let (state, core) = (&mut self.session.state, &self.core);
        let room = self.rooms[place.step()].get_or_insert_with(|| body.room());
        let stage = Cell::new(Stage::Body);
        let ended = {
            let _span = entered.as_ref().map(|entered| entered.span.enter());
            catch_unwind(AssertUnwindSafe(|| {
                let (view, cx) = (View::new(Arc::clone(state)), Cx::new(shared, place));
                let polled = room.start(view, cx, task);
                if core.is_unsettled()
                    && let Poll::Ready(result) = polled
                {
                    return Quick::Unsettled(Begun::unsettled(result));
                }
                match polled {
                    Poll::Ready(Ok(update)) => {
                        core.conclude();
                        stage.set(Stage::Reducer);
                        Arc::make_mut(state).apply(update, &mut Ops::off());
                        stage.set(Stage::Route);
                        Quick::Done(executable.route.as_ref().map(|route| route(state)))
                    }
                    Poll::Ready(Err(error)) => {
                        core.conclude();
                        Quick::Failed(error)
                    }
                    Poll::Pending => Quick::Waits,
                }
            }))
        };
        let entered = || entered.unwrap_or_else(|| Entered::plain(place));
        let begun = match ended {
            Ok(Quick::Done(branch)) => return Ok(branch),
            Ok(Quick::Failed(error)) => return Err(Box::new(Pause::Happened(failed(error)))),
            Ok(Quick::Unsettled(begun)) => begun,
            // The body keeps the room it works in; a later visit gets another.
            Ok(Quick::Waits) => match self.rooms[place.step()].take() {
                Some(room) => Begun { body: room, polled: true },
                None => Begun::unsettled(Err(StepError::fatal("the step has no room to work in"))),
            },
            Err(panic) if stage.get() == Stage::Body => {
                drop_quietly(self.rooms[place.step()].take());
                Begun::unsettled(Err(panicked(&words(&*panic))))
            }
            Err(panic) => {
                return Err(Box::new(Pause::Happened(self.lose(stage.get(), &*panic))));
            }
        };
        Err(Box::new(Pause::Waits(entered(), begun)))
    }

    fn view(&self) -> View<S> {
        View::new(Arc::clone(&self.session.state))
    }

    fn cx(&self, place: Place) -> Cx<C> {
        Cx::new(Arc::clone(&self.shared), place)
    }

    /// What a `Cx` holds: what the last one gave back, or else one more reference.
    #[inline]
    fn take_or_share(&self, spare: Option<Spare>) -> Arc<Shared<C>> {
        match spare.map(Arc::downcast::<Shared<C>>) {
            Some(Ok(spare)) if Arc::ptr_eq(&spare, &self.shared) => spare,
            _ => Arc::clone(&self.shared),
        }
    }

    fn enter(&mut self) -> (Place, Option<Spare>) {
        self.session.cursor.attempt += 1;
        let place = self.session.cursor.place();
        self.core.begin(place);
        let spare = Active::move_to(place);
        self.core.publish(Some(place), || EventKind::StepStarted);
        (place, spare)
    }

    /// What a step is entered with that has a deadline, or that somebody traces.
    fn timed_or_traced(&self, wiring: &Wiring, place: Place) -> Option<Entered> {
        let timed = wiring.nodes[place.step()].policy.timeout.is_some();
        let traced = tracing::enabled!(target: "harness", tracing::Level::DEBUG);
        (timed || traced || self.started.is_some()).then(|| self.entered(wiring, place))
    }

    fn entered(&self, wiring: &Wiring, place: Place) -> Entered {
        let node = &wiring.nodes[place.step()];
        let span = tracing::debug_span!(
            target: "harness",
            "harness.step",
            step = &*node.name,
            position = place.position.0,
            attempt = place.attempt(),
        );
        let timeout = node.policy.timeout.map(|limit| Instant::now() + limit);
        Entered { place, span, timeout, wall: self.wall_deadline() }
    }

    /// Makes a body and polls it once, inside its span. The scope has been entered.
    fn first_poll<T: Send + 'static>(
        &mut self,
        span: &Span,
        make: impl FnOnce() -> Body<T>,
        task: &mut Task<'_>,
    ) -> Result<FirstPoll<T>, Undone> {
        let _entered = span.enter();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let mut body = make();
            match body.as_mut().poll(task) {
                Poll::Ready(result) => Ok(result),
                Poll::Pending => Err(body),
            }
        }));
        let result = match polled {
            Ok(Err(body)) => {
                let body = Box::new(Boxed(Some(body)));
                return Ok(FirstPoll::Waits(Begun { body, polled: true }));
            }
            Ok(Ok(result)) => result,
            Err(panic) => Err(panicked(&words(&*panic))),
        };
        if self.core.is_unsettled() {
            return Ok(FirstPoll::Waits(Begun::unsettled(result)));
        }
        self.core.conclude();
        result.map(FirstPoll::Done).map_err(failed)
    }

    /// Polls a body to its end, and sees to what it leaves behind.
    pub(super) async fn wait<T>(&mut self, entered: Entered, begun: Begun<T>) -> Result<T, Undone> {
        let place = entered.place;
        let scope = Scope { effects: Arc::clone(&self.shared.effects), place };
        let scope = Some(Active::new(scope));
        let mut attempt = Attempt::new(begun, entered, scope, Arc::clone(&self.core));
        let ended = (&mut attempt).await;
        self.core.effects_done().await;
        attempt.end();
        let asked = self.core.close(place).await;
        match ended {
            Polled::Ready(result) => result.map_err(failed),
            Polled::Panicked(said) => Err(failed(panicked(&said))),
            Polled::Asked => Err(undone(Happened::Asked, Left { asked, ..Left::default() })),
            Polled::Cancelled => Err(undone(Happened::Cancel, Left::default())),
            Polled::OutOfTime => Err(undone(Happened::Over(Limit::Wall), Left::default())),
            Polled::TimedOut => {
                let policy = self.program.graph.wiring.nodes[place.step()].policy;
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
        let step = entered.place.step();
        let Action::Ask(gate) = &program.steps[step].action else {
            return undone(Happened::Asked, Left::default());
        };
        let (view, cx) = (self.view(), self.cx(entered.place));
        let answered = match self.session.cursor.half {
            Half::First => None,
            Half::Answer => self.session.gate_answer(),
        };
        let Some((question, answer)) = answered else {
            let asked = self.run_body(entered, || (gate.ask)(view, cx)).await;
            return match asked {
                Ok(asked) => undone(Happened::Asked, Left { gate: Some(asked), ..Left::default() }),
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
        let mut scope = self.scope.take();
        let first = poll_fn(|task| {
            Poll::Ready(Active::enter(&mut scope, || {
                let make = make.take()?;
                Some(self.first_poll(&entered.span, make, task))
            }))
        })
        .await;
        self.scope = scope;
        match first {
            Some(Ok(FirstPoll::Done(done))) => Ok(done),
            Some(Ok(FirstPoll::Waits(begun))) => self.wait(entered, begun).await,
            Some(Err(undone)) => Err(undone),
            None => Err(undone(Happened::Asked, Left::default())),
        }
    }

    /// Folds the update of a step that had to wait.
    pub(super) fn done(&mut self, program: &Program<C, S>, step: usize, update: S::Update) -> Undone {
        match self.fold(&program.steps[step], Some(update)) {
            Ok(branch) => undone(Happened::Done { branch }, Left::default()),
            Err(undone) => undone,
        }
    }

    /// Folds an update into the state, in place when nobody holds a view of it, and asks the route
    /// which branch to take.
    fn fold(
        &mut self,
        executable: &Executable<C, S>,
        update: Option<S::Update>,
    ) -> Result<Option<usize>, Undone> {
        let state = &mut self.session.state;
        let stage = Cell::new(Stage::Reducer);
        let folded = catch_unwind(AssertUnwindSafe(|| {
            if let Some(update) = update {
                Arc::make_mut(state).apply(update, &mut Ops::off());
            }
            stage.set(Stage::Route);
            executable.route.as_ref().map(|route| route(state))
        }));
        folded.map_err(|panic| self.lose(stage.get(), &*panic))
    }

    /// Gives the state up: a reducer or a route panicked over it.
    fn lose(&mut self, stage: Stage, panic: &(dyn std::any::Any + Send)) -> Undone {
        self.lost = true;
        let (kind, who) = match stage {
            Stage::Route => (FailureKind::RoutePanic, "the route"),
            Stage::Body | Stage::Reducer => (FailureKind::ReducerPanic, "a reducer"),
        };
        let failure = Some(StepError::of(kind, false, format!("{who} panicked: {}", words(panic))));
        undone(Happened::Lost, Left { failure, ..Left::default() })
    }
}
