//! The driver: makes attempts and does what [`transition`] decides.
//!
//! A step's *attempt* is polled; its *update* is folded into the state in place; its *route* reads
//! the result; one *commit* records all of it; its events follow. What fails before the commit
//! changes nothing, but for a reducer or a route that panics: the state it worked on is discarded.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::lazy;
use tokio::time::Instant;

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::graph::{Budget, Executable, Limit, Program, Wiring};
use crate::journal::Journal;
use crate::observe::EventKind;
use crate::observe::trace::Relation;
use crate::question::BreakpointAt;
use crate::session::{Resolution, Timer, check_ops};
use crate::state::{Op, Ops, State};
use crate::step::{
    Action, Answer, AskHalf, Asked, Cx, CxParts, Effects, FailureKind, Place, Shared, StepError,
    View,
};
use crate::text::words;

use super::attempt::{Attempt, Begun, Ended, Unfinished};
use super::begin::Begin;
use super::boundary::{at_boundary, place_in};
use super::breakpoints::{Breakpoints, breakpoint};
use super::conclusion::Recorded;
use super::core::RunCore;
use super::outcome::Settlement;
use super::outcome::rest::Slot;
use super::slots::Work;
use super::transition::{Attempted, budget_at, overspent};

/// How many steps that never wait may run before other tasks get their turn.
pub(super) const STEPS_IN_A_ROW: u32 = 64;

/// Advances one session until it settles.
pub(crate) struct Driver<C: Context, S: State> {
    pub(super) program: Arc<Program<C, S>>,
    pub(super) core: Arc<RunCore>,
    pub(super) shared: Arc<Shared<C>>,
    pub(super) state: Arc<S>,
    /// Where the session goes back to if this run is dropped.
    pub(super) home: Option<Slot<S>>,
    /// In place of the loop's own.
    budget: Option<Box<Budget>>,
    pub(crate) breakpoints: Option<Box<Breakpoints>>,
    /// Since when the run is at work, where that matters.
    pub(super) clock: Option<Instant>,
    /// How the run began, for its first event.
    pub(super) begin: Begin,
    /// A reducer or a route panicked: the state in memory means nothing.
    pub(super) lost: bool,
    /// The run has settled.
    pub(super) settled: bool,
    /// Observers heard of its start, and not of its end.
    pub(super) observed: bool,
    /// An earlier run of this turn may have passed over inputs in the inbox.
    pub(super) look_back: bool,
    /// What the last attempt has left.
    pub(super) left: Left,
}

/// How far entering a step came without waiting.
enum Entered<T> {
    /// The attempt is over, or was not made.
    Over(Attempted),
    /// The lease may be lost.
    MayBeLost,
    /// The attempt has begun.
    Begun(Box<Unfinished<T>>),
    /// At a step that asks or has items.
    InParts,
    /// The step waits for timers alone.
    Sleeps,
}

/// What an attempt leaves to be recorded.
#[derive(Default)]
pub(super) struct Left {
    pub(super) failure: Option<StepError>,
    /// Questions, each with its key; of a gate, without one.
    pub(super) asked: Vec<(Option<String>, Asked)>,
    /// Timers that are not due.
    pub(super) timers: Vec<Timer>,
    /// The keys of children whose turns are not over.
    pub(super) children: Vec<String>,
    /// What the reducers did.
    pub(super) ops: Vec<Op>,
}

impl<C: Context, S: State> Driver<C, S> {
    pub(crate) fn new(
        program: Arc<Program<C, S>>,
        context: C,
        core: RunCore,
        state: Arc<S>,
        home: Option<Slot<S>>,
        begin: Begin,
        budget: Option<Budget>,
    ) -> Self {
        let core = Arc::new(core);
        core.stop.attach(Arc::downgrade(&core) as _);
        let _ = core.budget.set(budget.unwrap_or(program.graph.wiring.budget));
        let shared = Arc::new(Shared { context, effects: Arc::clone(&core) as _ });
        Self {
            program,
            core,
            shared,
            state,
            home,
            budget: budget.map(Box::new),
            breakpoints: None,
            clock: None,
            look_back: begin.look_back,
            begin,
            lost: false,
            settled: false,
            observed: false,
            left: Left::default(),
        }
    }

    /// What the run does for its steps.
    pub(crate) fn effects(&self) -> Arc<dyn Effects> {
        Arc::clone(&self.shared.effects)
    }

    /// Runs until the session settles.
    pub(crate) async fn drive(mut self: Box<Self>) -> Settlement<S> {
        let program = Arc::clone(&self.program);
        let wiring = &*program.graph.wiring;
        self.begin(wiring);
        let mut in_a_row = 0_u32;
        loop {
            // Most attempts are over at once: what they return is folded before the next await.
            let attempted = match lazy(|task| self.enter(&program, task)).await {
                Entered::Over(attempted) => attempted,
                Entered::Begun(unfinished) => self.end(&program, unfinished).await,
                entered => Box::pin(self.complete(&program, entered)).await,
            };
            let concluded = match self.advance(wiring, attempted) {
                // Without a log, what is recorded is committed.
                Recorded::Step if self.core.journal.is_none() => None,
                recorded => self.commit(wiring, recorded).await,
            };
            if let Some(conclusion) = concluded {
                if let Some(settlement) = Box::pin(self.settle(*conclusion)).await {
                    return settlement;
                }
                // The inbox has what the session waits for.
                self.begin(wiring);
            }
            in_a_row = in_a_row.wrapping_add(1);
            if in_a_row.is_multiple_of(STEPS_IN_A_ROW) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn begin(&mut self, wiring: &Wiring) {
        self.observed = true;
        let timed = self.budget(wiring).wall.is_some() || wiring.finally.is_some();
        self.clock = timed.then(Instant::now);
        let Begin { resumed, cause, answered, from, since, .. } = std::mem::take(&mut self.begin);
        self.core.relate(from.trace.as_ref(), Relation::Input);
        self.core.publish(None, || {
            let trace = self.core.session(|session| session.trace.clone());
            // The clocks of two processes differ.
            let waited_ms = since.map(|since| UtcMillis::now().0.saturating_sub(since.0));
            EventKind::RunStarted { resumed, cause, waited_ms, worker: self.core.worker, trace }
        });
        self.core.publish_answered(answered);
    }

    /// Enters the next step, unless something keeps it from being entered, and polls its body once.
    fn enter(
        &mut self,
        program: &Program<C, S>,
        task: &mut std::task::Context<'_>,
    ) -> Entered<S::Update> {
        let wiring = &*program.graph.wiring;
        if self.core.journal.as_ref().is_some_and(Journal::may_be_lost) {
            return Entered::MayBeLost;
        }
        if let Some(kept_from) = self.kept_from_entering(wiring) {
            return Entered::Over(kept_from);
        }
        let budget = self.budget(wiring);
        let entered = self.core.enter_where(|session, slots| {
            at_boundary(wiring, budget, self.breakpoints.as_deref(), session)?;
            let place = place_in(session, None);
            // Of a step that asks or has items, its parts enter.
            if let Action::Run(_) = program.steps[place.step].action {
                slots.enter(place);
            }
            Ok(place)
        });
        let place = match entered {
            Ok(place) => place,
            Err(Attempted::Waits { asks: false }) => return Entered::Sleeps,
            Err(kept_from) => {
                return Entered::Over(match kept_from {
                    Attempted::Asked => self.break_before(wiring),
                    Attempted::Sleeps => {
                        self.left.timers = super::timers::after(wiring, &self.core);
                        kept_from
                    }
                    _ => kept_from,
                });
            }
        };
        self.core.publish_fired(place);
        self.core.publish(Some(place), || EventKind::StepStarted);
        let executable = &program.steps[place.step];
        match &executable.action {
            Action::Decide => Entered::Over(self.fold(executable, None)),
            Action::Run(body) => {
                let attempt = self.attempt_at(wiring, place);
                let lent = CxParts { shared: &self.shared, place: &place };
                match attempt.begin(task, || body(self.view(), lent)) {
                    Begun::Ended(ended) => Entered::Over(self.done(executable, ended)),
                    Begun::Unfinished(unfinished) => Entered::Begun(unfinished),
                }
            }
            Action::Ask(_) | Action::Each(_) => Entered::InParts,
        }
    }

    /// Asks before the step at work.
    fn break_before(&mut self, wiring: &Wiring) -> Attempted {
        let step = self.core.session(|session| session.cursor.step);
        match breakpoint(wiring, step, BreakpointAt::Before) {
            Ok(asked) => {
                self.left.asked = vec![asked];
                Attempted::Asked
            }
            Err(error) => self.failed(error),
        }
    }

    /// Waits for what has to be waited for.
    async fn complete(
        &mut self,
        program: &Program<C, S>,
        mut entered: Entered<S::Update>,
    ) -> Attempted {
        loop {
            match entered {
                Entered::Over(attempted) => return attempted,
                Entered::MayBeLost if !Box::pin(self.holds()).await => return Attempted::LeaseLost,
                Entered::Sleeps if !Box::pin(self.sleep_here()).await => {
                    return Attempted::Waits { asks: false };
                }
                Entered::MayBeLost | Entered::Sleeps => {
                    entered = lazy(|task| self.enter(program, task)).await;
                }
                Entered::Begun(unfinished) => return self.end(program, unfinished).await,
                Entered::InParts => {
                    return Box::pin(self.in_parts(program, self.place(None))).await;
                }
            }
        }
    }

    /// Brings the attempt at a step to its end.
    async fn end(
        &mut self,
        program: &Program<C, S>,
        unfinished: Box<Unfinished<S::Update>>,
    ) -> Attempted {
        let place = self.place(None);
        let ended = self.attempt_at(&program.graph.wiring, place).end(unfinished).await;
        self.done(&program.steps[place.step], ended)
    }

    /// Makes the attempts that are due at a step that asks or has items.
    async fn in_parts(&mut self, program: &Program<C, S>, place: Place) -> Attempted {
        let wiring = &*program.graph.wiring;
        let executable = &program.steps[place.step];
        match &executable.action {
            Action::Ask(gate) => self.gate(wiring, executable, gate, place).await,
            Action::Each(each) => self.each(wiring, executable, each, place).await,
            Action::Run(_) | Action::Decide => self.fold(executable, None),
        }
    }

    /// Whether the run still holds its session.
    pub(super) async fn holds(&self) -> bool {
        let Some(journal) = &self.core.journal else { return true };
        !journal.may_be_lost() || journal.holds().await
    }

    /// What keeps any step or item from being entered: a stop, a budget.
    pub(super) fn kept_from_entering(&self, wiring: &Wiring) -> Option<Attempted> {
        if let Some(stopped) = self.is_stopped() {
            return Some(stopped);
        }
        self.out_of_budget(wiring).map(Attempted::Over)
    }

    /// Whether the run was asked to end. A cancel is a stop, too.
    pub(super) fn is_stopped(&self) -> Option<Attempted> {
        if !self.core.stop.is_stopped() {
            return None;
        }
        let cancelled = self.core.stop.is_cancelled();
        Some(if cancelled { Attempted::Cancel } else { Attempted::Stop })
    }

    /// The part of the budget that is used up, but for the steps.
    fn out_of_budget(&self, wiring: &Wiring) -> Option<Limit> {
        let limits = self.budget(wiring);
        if limits.tokens.is_none() && limits.cost_micros.is_none() && limits.wall.is_none() {
            return None;
        }
        let spent = self.core.spent();
        let limit =
            self.core.session(|session| overspent(budget_at(limits, &session.cursor), &spent));
        limit.or_else(|| {
            let over = self.wall_deadline(wiring).is_some_and(|at| Instant::now() >= at);
            over.then_some(Limit::Wall)
        })
    }

    fn budget<'a>(&'a self, wiring: &'a Wiring) -> &'a Budget {
        self.budget.as_deref().unwrap_or(&wiring.budget)
    }

    /// When the wall budget is used up.
    pub(super) fn wall_deadline(&self, wiring: &Wiring) -> Option<Instant> {
        let started = self.clock?;
        let limits = self.budget(wiring);
        self.core.session(|session| {
            let wall = budget_at(limits, &session.cursor).wall?;
            let used = match session.cursor.finishing {
                Some(_) => Duration::ZERO,
                None => Duration::from_millis(session.active_ms),
            };
            Some(started + wall.saturating_sub(used))
        })
    }

    /// Where the next attempt stands.
    pub(super) fn place(&self, item: Option<u32>) -> Place {
        self.core.session(|session| place_in(session, item))
    }

    pub(super) fn view(&self) -> View<S> {
        View::new(Arc::clone(&self.state))
    }

    pub(super) fn cx(&self, place: Place) -> Cx<C> {
        Cx::new(Arc::clone(&self.shared), place)
    }

    pub(super) fn attempt_at(&self, wiring: &Wiring, place: Place) -> Attempt<&RunCore> {
        Attempt {
            core: &self.core,
            place,
            timeout: wiring.nodes[place.step].policy.timeout,
            wall: self.wall_deadline(wiring),
        }
    }

    /// Folds what an attempt returned, or says why there is nothing to fold.
    fn done(&mut self, executable: &Executable<C, S>, ended: Ended<S::Update>) -> Attempted {
        match ended {
            Ended::Done(update) => self.fold(executable, Some(update)),
            other => self.undone(other),
        }
    }

    /// What an attempt without a result means to the loop.
    pub(super) fn undone<T>(&mut self, ended: Ended<T>) -> Attempted {
        match ended {
            Ended::Done(_) => self.failed(StepError::fatal("the step has no result")),
            Ended::Failed(error) => self.failed(error),
            Ended::Awaits(work) => {
                let Work { asked, timers, children, .. } = *work;
                self.left.asked = asked.into_iter().map(|(key, it)| (Some(key), it)).collect();
                (self.left.timers, self.left.children) = (timers, children);
                match self.left.asked.is_empty() {
                    true => Attempted::Sleeps,
                    false => Attempted::Asked,
                }
            }
            Ended::Cancelled => Attempted::Cancel,
            Ended::OutOfTime => Attempted::Over(Limit::Wall),
        }
    }

    pub(super) fn failed(&mut self, error: StepError) -> Attempted {
        let retryable = !error.is_fatal();
        self.left.failure = Some(error);
        Attempted::Failed { retryable }
    }

    /// Runs the half of a gate that is due.
    async fn gate(
        &mut self,
        wiring: &Wiring,
        executable: &Executable<C, S>,
        gate: &AskHalf<C, S>,
        place: Place,
    ) -> Attempted {
        let asked = self.core.session(|session| session.asked(None, None).cloned());
        let resolved = asked.and_then(|asked| Some((asked.interrupt, asked.resolution?)));
        let (view, cx) = (self.view(), self.cx(place));
        let attempt = self.attempt_at(wiring, place);
        match resolved {
            None => match attempt.run(|| (gate.ask)(view, cx)).await {
                Ended::Done(mut asked) => {
                    asked.expires = wiring.nodes[place.step].expires.map(|expiry| expiry.after);
                    self.left.asked = vec![(None, asked)];
                    Attempted::Asked
                }
                other => self.undone(other),
            },
            Some((interrupt, Resolution::Answered { value, by, at, .. })) => {
                let answer = Answer { id: interrupt.id, name: None, value: Ok(value), by, at };
                let question = interrupt.question;
                let ended = attempt.run(|| (gate.answer)(view, cx, question, answer)).await;
                self.done(executable, ended)
            }
            Some((_, Resolution::Expired | Resolution::Withdrawn)) => {
                match wiring.nodes[place.step].expires.and_then(|expiry| expiry.to) {
                    Some(edge) => Attempted::Expired { to: edge.to },
                    None => self.failed(StepError::of(
                        FailureKind::Expired,
                        false,
                        "the question was not answered in time".to_owned(),
                    )),
                }
            }
        }
    }

    /// Folds updates into the state, in place when no view of it is held, and asks the route which
    /// branch to take.
    pub(super) fn fold(
        &mut self,
        executable: &Executable<C, S>,
        updates: impl IntoIterator<Item = S::Update>,
    ) -> Attempted {
        let durable = self.core.journal.is_some();
        let mut ops = if durable { Ops::on() } else { Ops::off() };
        let routing = Cell::new(false);
        let state = &mut self.state;
        let folded = catch_unwind(AssertUnwindSafe(|| {
            for update in updates {
                Arc::make_mut(state).apply(update, &mut ops);
            }
            routing.set(true);
            executable.route.as_ref().map(|route| route(state))
        }));
        let branch = match folded {
            Ok(branch) => branch,
            Err(panic) => {
                self.lost = true;
                let (kind, code) = match routing.get() {
                    true => (FailureKind::RoutePanic, "the route"),
                    false => (FailureKind::ReducerPanic, "a reducer"),
                };
                let why = format!("{code} panicked: {}", words(&*panic));
                self.left.failure = Some(StepError::of(kind, false, why));
                return Attempted::Lost;
            }
        };
        let ops = ops.finish().map_err(|error| StepError::unfolded(&error));
        let checked = ops.and_then(|ops| match check_ops(&ops) {
            Ok(()) => Ok(ops),
            Err(error) => Err(StepError::of(FailureKind::Encode, false, error.to_string())),
        });
        match checked {
            Ok(ops) => {
                self.left.ops = ops;
                Attempted::Done { branch }
            }
            // A part of the update may have been folded, and there is no log to return to.
            Err(error) if !durable => {
                self.lost = true;
                self.left.failure = Some(error);
                Attempted::Lost
            }
            // The log cannot hold it: the state is as it was before the step.
            Err(error) => match self.restore_state() {
                Ok(()) => self.failed(error),
                Err(error) => self.failed(error),
            },
        }
    }
}
