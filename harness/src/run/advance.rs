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
    Action, Active, Asked, AtWork, BoxFuture, BoxRoom, Boxed, Cx, FailureKind, Finished, Place,
    Shared, Spare, StepError, View, same,
};
use crate::text::words;

use super::attempt::{Attempt, Polled};
use super::driver::Driver;
use super::settle::How;
use super::transition::{End, Happened, Transition, transition};

/// How many steps that never wait may run before others get their turn.
pub(super) const STEPS_PER_TURN: u32 = 64;

/// Why the driver does not go straight on to the next step.
pub(super) enum Pause<C: Context, S: State> {
    /// Others get their turn.
    Yield,
    /// The step is done, and its commit has to be appended.
    Done(Option<usize>),
    /// Something else than a step that is done: see to it.
    Happened(Undone),
    /// The step has to wait. Its body has been polled once.
    Waits(Entered, Begun<Work<C, S>>),
    /// The step is in two halves.
    Gate(Entered),
    /// The last step of the turn is done, and nobody has to hear of it.
    Ended(Option<usize>),
    /// The run settles.
    Settled(How),
}

/// A body that has to wait.
pub(super) struct Begun<W> {
    pub(super) work: W,
    /// Whether it was polled and knows whom to wake.
    pub(super) polled: bool,
}

/// The body of a step that has to wait.
pub(super) enum Work<C: Context, S: State> {
    /// In its room, which goes back to its place afterwards.
    Room(BoxRoom<C, S>),
    /// It asked, or has an effect in flight, and went on all the same: no default may stand in for
    /// an answer, and no effect be left out of the record.
    Finished(Finished<S::Update>),
}

impl<C: Context, S: State> AtWork<S::Update> for Work<C, S> {
    fn poll(&mut self, task: &mut Task<'_>) -> Poll<Result<S::Update, StepError>> {
        match self {
            Self::Room(room) => room.as_mut().poll(task),
            Self::Finished(finished) => finished.poll(task),
        }
    }
}

impl<C: Context, S: State> Begun<Work<C, S>> {
    fn finished(result: Result<S::Update, StepError>) -> Self {
        Self { work: Work::Finished(Finished(Some(result))), polled: false }
    }
}

/// What was at work when a panic came.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Body,
    Reducer,
    Route,
}

/// How a step comes to be polled.
enum Entry {
    /// It is entered, perhaps with what the last `Cx` gave back.
    First(Option<Spare>),
    /// It had to wait, and was woken.
    Again,
}

/// How a body ended that was polled once.
enum Quick<T> {
    Done(Option<usize>),
    Failed(StepError),
    Waits,
    Unsettled(Result<T, StepError>),
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

pub(super) fn undone(happened: Happened, left: Left) -> Undone {
    Box::new((happened, left))
}

pub(super) fn failed(error: StepError) -> Undone {
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
    ) -> Poll<Pause<C, S>> {
        let wiring = &*program.graph.wiring;
        let traced = tracing::enabled!(target: "harness", tracing::Level::DEBUG);
        let mut waiting = self.waiting.take();
        for _ in 0..STEPS_PER_TURN {
            let (place, entry) = match waiting.take() {
                Some(place) => (place, Entry::Again),
                None => {
                    if let Some(happened) = self.at_boundary() {
                        return Poll::Ready(Pause::Happened(undone(happened, Left::default())));
                    }
                    let (place, spare) = self.enter();
                    (place, Entry::First(spare))
                }
            };
            let executable = &program.steps[place.step()];
            let branch = match self.quick(wiring, executable, place, entry, traced, task) {
                Ok(branch) => branch,
                Err(Some(pause)) => return Poll::Ready(*pause),
                Err(None) => return Poll::Pending,
            };
            if self.durable.is_some() {
                return Poll::Ready(Pause::Done(branch));
            }
            let happened = Happened::Done { branch };
            match transition(wiring, &self.session.cursor, happened) {
                Transition::Enter { step } => self.commit_done(wiring, branch, step),
                Transition::Settle(End::Ended { branch }) if self.silent => {
                    return Poll::Ready(Pause::Ended(branch));
                }
                _ => return Poll::Ready(Pause::Happened(undone(happened, Left::default()))),
            }
        }
        Poll::Ready(Pause::Yield)
    }

    /// One poll of a step, which most often is all of it: body, update, route. All of it is one
    /// closure, so that the update is not moved about. Says which branch the route takes; `None`
    /// if the step waits where it is.
    #[inline]
    fn quick(
        &mut self,
        wiring: &Wiring,
        executable: &Executable<C, S>,
        place: Place,
        entry: Entry,
        traced: bool,
        task: &mut Task<'_>,
    ) -> Result<Option<usize>, Option<Box<Pause<C, S>>>> {
        let pause = |pause| Err(Some(Box::new(pause)));
        let body = match &executable.action {
            Action::Run(body) => body,
            Action::Decide => match self.fold(executable, None) {
                Ok(branch) => return Ok(branch),
                Err(undone) => return pause(Pause::Happened(undone)),
            },
            Action::Ask(_) => return pause(Pause::Gate(self.entered(wiring, place))),
        };
        let shared = match entry {
            Entry::First(spare) => Some(self.take_or_share(spare)),
            // It was cancelled, or a task of the step used the desk: that takes more than a poll.
            Entry::Again if self.core.is_unsettled() => {
                return pause(Pause::Waits(Entered::plain(place), self.leave_room(place, false)));
            }
            Entry::Again => None,
        };
        let timed = self.started.is_some() || wiring.nodes[place.step()].policy.timeout.is_some();
        let entered = (timed || traced).then(|| self.entered(wiring, place));
        let (state, core, twin) = (&mut self.session.state, &self.core, &mut self.twin);
        let mut off = Ops::off();
        let ops = self.durable.as_mut().map_or(&mut off, |durable| &mut durable.ops);
        let room = self.rooms[place.step()].get_or_insert_with(|| body.room());
        let stage = Cell::new(Stage::Body);
        let ended = {
            let _span = entered.as_ref().map(|entered| entered.span.enter());
            catch_unwind(AssertUnwindSafe(|| {
                let polled = match shared {
                    Some(shared) => {
                        let view = View::new(twin.lend(state));
                        let cx = Cx::new(shared, place);
                        room.as_mut().start(view, cx, task)
                    }
                    None => room.as_mut().poll(task),
                };
                if core.is_unsettled()
                    && let Poll::Ready(result) = polled
                {
                    return Quick::Unsettled(result);
                }
                match polled {
                    Poll::Ready(Ok(update)) => {
                        core.conclude();
                        stage.set(Stage::Reducer);
                        let view = Active::take_view().and_then(|view| same(view, state));
                        twin.take_back(view);
                        twin.change(state, |state| state.apply(update, ops));
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
        let begun = match ended {
            Ok(Quick::Done(branch)) => return Ok(branch),
            Ok(Quick::Failed(error)) => return pause(Pause::Happened(failed(error))),
            Ok(Quick::Unsettled(result)) => Begun::finished(result),
            Ok(Quick::Waits) => {
                self.core.brakes.register(task.waker());
                if entered.is_none() && !self.core.is_unsettled() {
                    self.waiting = Some(place);
                    return Err(None);
                }
                self.leave_room(place, true)
            }
            Err(panic) if stage.get() == Stage::Body => {
                drop_quietly(self.rooms[place.step()].take());
                Begun::finished(Err(panicked(&words(&*panic))))
            }
            Err(panic) => {
                return pause(Pause::Happened(self.lose(stage.get(), &*panic)));
            }
        };
        pause(Pause::Waits(entered.unwrap_or_else(|| Entered::plain(place)), begun))
    }

    /// Takes the body at work out of its place, to be polled to its end.
    fn leave_room(&mut self, place: Place, polled: bool) -> Begun<Work<C, S>> {
        match self.rooms[place.step()].take() {
            Some(room) => Begun { work: Work::Room(room), polled },
            None => Begun::finished(Err(StepError::fatal("the step has no room to work in"))),
        }
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
        let spare = spare.and_then(|spare| same(spare, &self.shared));
        spare.unwrap_or_else(|| Arc::clone(&self.shared))
    }

    fn enter(&mut self) -> (Place, Option<Spare>) {
        self.session.cursor.attempt += 1;
        let place = self.session.cursor.place();
        self.core.begin(place);
        let spare = Active::move_to(place);
        if !self.silent {
            self.core.publish(Some(place), || EventKind::StepStarted);
        }
        (place, spare)
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

    /// Polls a body to its end, and sees to what it leaves behind. Gives back what a body that is
    /// through worked in.
    pub(super) async fn wait<T, W: AtWork<T>>(
        &mut self,
        entered: Entered,
        begun: Begun<W>,
    ) -> (Result<T, Undone>, Option<W>) {
        let place = entered.place;
        let scope = self.scope.take();
        let mut attempt = Attempt::new(begun, entered, scope, Arc::clone(&self.core));
        let ended = poll_fn(|task| attempt.poll(task)).await;
        self.core.effects_done().await;
        let (work, scope) = attempt.end(matches!(ended, Polled::Ready(_)));
        self.scope = scope;
        let view = self.scope.as_mut().and_then(Active::take_kept_view);
        self.twin.take_back(view.and_then(|view| same(view, &self.session.state)));
        let asked = self.core.close(place).await;
        let result = match ended {
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
        };
        (result, work)
    }

    /// Goes on with a step that had to wait, to its end.
    pub(super) async fn finish(
        &mut self,
        program: &Program<C, S>,
        entered: Entered,
        begun: Begun<Work<C, S>>,
    ) -> Undone {
        let step = entered.place.step();
        let (result, work) = self.wait(entered, begun).await;
        if let Some(Work::Room(room)) = work {
            self.rooms[step] = Some(room);
        }
        match result {
            Ok(update) => self.done(program, step, update),
            Err(undone) => undone,
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
            Half::Expired => return self.expired(step),
        };
        let Some((question, answer)) = answered else {
            let asked = self.run_body(entered, || (gate.ask)(view, cx)).await;
            return match asked {
                Ok(mut asked) => {
                    asked.expires =
                        self.program.graph.wiring.nodes[step].expires.map(|it| it.after);
                    undone(Happened::Asked, Left { gate: Some(asked), ..Left::default() })
                }
                Err(undone) => undone,
            };
        };
        match self.run_body(entered, || (gate.answer)(view, cx, question, answer)).await {
            Ok(update) => self.done(program, step, update),
            Err(undone) => undone,
        }
    }

    /// The gate's question was not answered in time.
    fn expired(&self, step: usize) -> Undone {
        self.core.conclude();
        match self.program.graph.wiring.nodes[step].expires.and_then(|expiry| expiry.to) {
            Some(edge) => undone(Happened::Expired { to: edge.to }, Left::default()),
            None => failed(StepError::of(
                FailureKind::Expired,
                false,
                "the question was not answered in time".to_owned(),
            )),
        }
    }

    async fn run_body<T>(
        &mut self,
        entered: Entered,
        make: impl FnOnce() -> BoxFuture<Result<T, StepError>>,
    ) -> Result<T, Undone> {
        let made = Active::enter(&mut self.scope, || {
            let _span = entered.span.enter();
            catch_unwind(AssertUnwindSafe(make))
        });
        let boxed = match made {
            Ok(body) => Boxed(Some(body)),
            Err(panic) => {
                let error = panicked(&words(&*panic));
                Boxed(Some(Box::pin(async move { Err(error) })))
            }
        };
        self.wait(entered, Begun { work: boxed, polled: false }).await.0
    }

    /// Folds the update of a step that had to wait.
    fn done(&mut self, program: &Program<C, S>, step: usize, update: S::Update) -> Undone {
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
        let (state, twin) = (&mut self.session.state, &mut self.twin);
        let mut off = Ops::off();
        let ops = self.durable.as_mut().map_or(&mut off, |durable| &mut durable.ops);
        let stage = Cell::new(Stage::Reducer);
        let folded = catch_unwind(AssertUnwindSafe(|| {
            if let Some(update) = update {
                twin.change(state, |state| state.apply(update, ops));
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
