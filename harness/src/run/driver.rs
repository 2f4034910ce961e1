//! The driver: performs what [`transition`] decides.
//!
//! A step's *attempt* is polled; its *update* is folded into the state in place; its *route* reads
//! the result; one [`Commit`] records all of it; its event follows. Whatever fails before the
//! commit changes nothing, but for a reducer or a route that panics: what it worked on is
//! discarded, and the run fails without a state.

use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use crate::context::Context;
use crate::graph::{Budget, Limit, Program, Wiring};
use crate::observe::EventKind;
use crate::session::{Commit, Ending, Session};
use crate::state::State;
use crate::step::{Active, BoxFuture, BoxRoom, Effects, Place, Scope, Shared, Twin};

use super::advance::Pause;
use super::answers::Taken;
use super::effects::RunCore;
use super::held::Slot;
use super::record::Durable;
use super::running::Back;
use super::settle::{How, Settlement};
use super::transition::{
    Happened, Transition, budget_at, out_of_steps, out_of_visits, overspent, transition,
};

/// Advances one session until it settles.
pub(crate) struct Driver<C: Context, S: State> {
    pub(super) program: Arc<Program<C, S>>,
    pub(super) core: Arc<RunCore>,
    pub(super) shared: Arc<Shared<C>>,
    pub(super) session: Session<S>,
    pub(super) twin: Twin<S>,
    /// Where the session goes back to if this run is dropped.
    pub(super) home: Option<Slot<S>>,
    /// How many steps a turn may take before `.finally(..)`.
    most_steps: u64,
    /// In place of the loop's own.
    budget: Option<Box<Budget>>,
    /// Where the bodies of steps work that have been entered.
    pub(super) rooms: Box<[Option<BoxRoom<C, S>>]>,
    /// The step that waits in its room, to be polled when it is woken.
    pub(super) waiting: Option<Place>,
    pub(super) scope: Option<Active>,
    /// Whether anything but the number of steps is limited.
    limited: bool,
    /// Nobody listens.
    pub(super) silent: bool,
    /// Whether a wall budget makes the clock matter.
    timed: bool,
    /// Set while it does and the run is at work.
    pub(super) started: Option<Instant>,
    /// The answers this run was resumed with; none for a new session.
    pub(super) taken: Option<Vec<Taken>>,
    pub(super) lost: bool,
    /// What is laid up for the log, where there is one.
    pub(super) durable: Option<Box<Durable>>,
}

impl<C: Context, S: State> Driver<C, S> {
    pub(crate) fn new(
        program: Arc<Program<C, S>>,
        context: C,
        core: RunCore,
        session: Session<S>,
        home: Option<Slot<S>>,
        taken: Option<Vec<Taken>>,
        budget: Option<Box<Budget>>,
    ) -> Self {
        let limits = budget.as_deref().unwrap_or(&program.graph.wiring.budget);
        let timed = limits.wall.is_some() || program.graph.wiring.finally.is_some();
        let limited = timed || limits.tokens.is_some() || limits.cost_micros.is_some();
        let most_steps = limits.steps.unwrap_or(u64::MAX);
        let core = Arc::new(core);
        let effects: Arc<dyn Effects> = Arc::clone(&core) as Arc<dyn Effects>;
        let silent = core.fanout.is_silent();
        let durable = core.journal.is_some().then(|| Durable::new(taken.is_some()));
        let mut driver = Self {
            durable,
            scope: Some(Active::new(Scope {
                effects: Arc::clone(&effects),
                place: Place::default(),
            })),
            shared: Arc::new(Shared { context, effects }),
            waiting: None,
            rooms: program.steps.iter().map(|_| None).collect(),
            program,
            core,
            session,
            twin: Twin::new(),
            home,
            budget,
            limited,
            most_steps,
            silent,
            timed,
            started: None,
            taken,
            lost: false,
        };
        driver.take_up();
        driver
    }

    /// Takes over what the session remembers, and the answers that came.
    pub(super) fn take_up(&mut self) {
        let session = &mut self.session;
        if session.open().next().is_none() {
            session.take_answers();
        }
        self.core.remember(session.memory.take());
        self.core.set_spent(session.spent.take());
        self.core.set_failure(session.cursor.failure.clone());
        session.cursor.retries = 0;
    }

    /// Begins the run: not before it is polled, for a request may be put together long before.
    pub(super) fn begin(&mut self) {
        self.started = self.timed.then(Instant::now);
        self.announce();
    }

    /// Goes from step to step until something else is due.
    pub(super) fn go(&mut self, program: &Program<C, S>, task: &mut Task<'_>) -> Poll<Pause<C, S>> {
        if self.session.open().next().is_some() {
            return Poll::Ready(Pause::Settled(How::Interrupted));
        }
        let mut scope = self.scope.take();
        let pause = Active::enter(&mut scope, || self.advance(program, task));
        self.scope = scope;
        pause
    }

    /// What is due, as a future that gives the driver back.
    pub(super) fn turn_aside(self: Box<Self>, pause: Pause<C, S>) -> BoxFuture<Back<C, S>> {
        match pause {
            Pause::Yield => Box::pin(tokio::task::yield_now().map(|()| (self, None))),
            // For itself, because a run with a log does so for every step.
            Pause::Done(branch) => Box::pin(self.keep(branch)),
            pause => Box::pin(self.see_to(pause)),
        }
    }

    /// Records a step that is done.
    async fn keep(mut self: Box<Self>, branch: Option<usize>) -> Back<C, S> {
        let program = Arc::clone(&self.program);
        match self.record_done(&program.graph.wiring, branch).await {
            Ok(None) => (self, None),
            Ok(Some(how)) => Box::pin(self.see_to(Pause::Settled(how))).await,
            Err(undone) => Box::pin(self.see_to(Pause::Happened(undone))).await,
        }
    }

    /// Does what few steps need.
    async fn see_to(mut self: Box<Self>, pause: Pause<C, S>) -> Back<C, S> {
        let program = Arc::clone(&self.program);
        let Some(how) = self.perform_due(&program, pause).await else { return (self, None) };
        if self.core.journal.is_none() && self.silent {
            // Nobody has to hear of it, and nothing goes on behind it.
            self.account_time();
            let settlement = Box::new(self.conclude(how));
            return (self, Some(settlement));
        }
        let settlement = Box::pin(self.settle(how)).await;
        if settlement.is_none() {
            self.announce();
        }
        (self, settlement.map(Box::new))
    }

    /// Settles a turn that ends in this process alone: nobody has to hear of it, and nothing goes
    /// on behind it.
    pub(super) fn end_here(
        &mut self,
        wiring: &Wiring,
        branch: Option<usize>,
    ) -> Box<Settlement<S>> {
        let (signals, signal) = wiring.nodes[self.session.cursor.step].exit.signal(branch).unzip();
        self.commit_now(wiring, Commit::Done { branch, next: None });
        self.account_time();
        Box::new(self.conclude(How::Turn(Ending::Ended { signals, signal }, None)))
    }

    /// Does what keeps the driver from going straight on. Says how the run settles, once it does.
    async fn perform_due(&mut self, program: &Program<C, S>, pause: Pause<C, S>) -> Option<How> {
        let wiring = &*program.graph.wiring;
        let undone = match pause {
            Pause::Yield | Pause::Done(_) => return None,
            Pause::Ended(branch) => {
                return Some(How::Turn(self.ended(wiring, branch).await, None));
            }
            Pause::Settled(how) => return Some(how),
            Pause::Happened(undone) => {
                if matches!(undone.0, Happened::Cut) && self.core.holds().await {
                    return None;
                }
                undone
            }
            // What few steps need is boxed for itself.
            Pause::Waits(entered, begun) => Box::pin(self.finish(program, entered, begun)).await,
            Pause::Gate(entered) => Box::pin(self.gate(program, entered)).await,
        };
        let (mut happened, mut left) = *undone;
        if matches!(happened, Happened::Done { .. })
            && let Err(error) = self.take_ops().await
        {
            happened = Happened::Failed { retryable: false };
            left.failure = Some(error);
        }
        let next = transition(wiring, &self.session.cursor, happened);
        if let (Transition::Enter { step }, Happened::Done { branch }) = (next, happened)
            && self.durable.is_none()
        {
            self.commit_done(wiring, branch, step);
            return None;
        }
        Box::pin(self.perform(wiring, happened, next, left)).await
    }

    fn announce(&mut self) {
        let resumed = self.taken.is_some();
        self.core.publish(None, || EventKind::RunStarted { resumed });
        for (id, by) in self.taken.take().unwrap_or_default() {
            self.core.publish(None, || EventKind::Answered { id, by });
        }
    }

    /// What keeps the next step from being entered, if anything does.
    pub(super) fn at_boundary(&self) -> Option<Happened> {
        if self.core.journal.as_ref().is_some_and(|journal| journal.is_lost()) {
            return Some(Happened::Cut);
        }
        // A cancel is a stop, too.
        if self.core.brakes.is_stopped() {
            let cancelled = self.core.brakes.is_cancelled();
            return Some(if cancelled { Happened::Cancel } else { Happened::Stop });
        }
        let cursor = &self.session.cursor;
        let out_of_steps = match &cursor.finishing {
            None => cursor.steps >= self.most_steps,
            Some(_) => out_of_steps(budget_at(self.budget(), cursor), cursor),
        };
        // A position that was entered before has been counted before.
        if out_of_steps && cursor.attempt <= cursor.unsure {
            return Some(Happened::Over(Limit::Steps));
        }
        if !cursor.visits.is_empty() && out_of_visits(&self.program.graph.wiring, cursor) {
            return Some(Happened::Over(Limit::AtMost));
        }
        if !self.limited {
            return None;
        }
        let budget = budget_at(self.budget(), cursor);
        if (budget.tokens.is_some() || budget.cost_micros.is_some())
            && let Some(limit) = overspent(budget, &self.core.spent())
        {
            return Some(Happened::Over(limit));
        }
        match self.wall_deadline() {
            Some(deadline) if Instant::now() >= deadline => Some(Happened::Over(Limit::Wall)),
            _ => None,
        }
    }

    fn budget(&self) -> &Budget {
        self.budget.as_deref().unwrap_or(&self.program.graph.wiring.budget)
    }

    pub(super) fn wall_deadline(&self) -> Option<Instant> {
        let started = self.started?;
        let wall = budget_at(self.budget(), &self.session.cursor).wall?;
        let used = match self.session.cursor.finishing {
            Some(_) => Duration::ZERO,
            None => self.session.active,
        };
        Some(started + wall.saturating_sub(used))
    }

    /// Adds the time since it was last added to what the turn has run.
    pub(super) fn account_time(&mut self) {
        if let Some(started) = &mut self.started {
            let now = Instant::now();
            if self.session.cursor.finishing.is_none() {
                self.session.active += now - *started;
            }
            *started = now;
        }
    }

    /// Gives the session all that the run laid up for it. May be done again.
    fn rest(&mut self) {
        let session = &mut self.session;
        if let Some(memory) = self.core.take_memory() {
            session.remember(memory);
        }
        if session.cursor.finishing.is_none() {
            session.unpark();
        }
        session.spent = self.core.spent_so_far();
    }

    /// Takes the session out of the driver.
    fn take_session(&mut self) -> Session<S> {
        self.rest();
        let absent = Session::absent(&self.session);
        std::mem::replace(&mut self.session, absent)
    }

    /// Settles the run; `None` if letters say how it goes on.
    async fn settle(&mut self, how: How) -> Option<Settlement<S>> {
        self.account_time();
        let how = self.settle_durably(how).await;
        self.rest();
        if !matches!(how, How::Cut(_)) && self.goes_on(&how).await {
            return None;
        }
        if let Some(durable) = &mut self.durable {
            durable.over = true;
        }
        self.leave_home(&how);
        let session = &self.session;
        let settled = how.describe(session.open().count());
        self.core.publish(None, || EventKind::Settled {
            outcome: settled,
            steps: session.cursor.steps,
            spent: session.spent(),
        });
        // Until it is taken below, the session is given back if this is dropped.
        self.core.fanout.flush().await;
        Some(self.conclude(how))
    }

    /// A turn that is over is over: whoever does not hear of it must not run its last step again.
    fn leave_home(&mut self, how: &How) {
        if matches!(how, How::Turn(Ending::Ended { .. }, _)) {
            self.home = None;
        }
    }

    /// Hands the session over to whoever tells of the outcome.
    fn conclude(&mut self, how: How) -> Settlement<S> {
        self.leave_home(&how);
        let home = self.home.take();
        let session = self.take_session();
        let run = self.core.ids.run.clone();
        let durable = self.durable.is_some();
        Settlement { session, how, lost: self.lost, run, home, durable }
    }
}

impl<C: Context, S: State> Drop for Driver<C, S> {
    /// A run that is dropped gives its session back as of the last commit, once effects in flight
    /// are recorded. After settling there is nothing to give back.
    fn drop(&mut self) {
        let settled = self.core.try_conclude(self.session.cursor.place()).is_some();
        self.core.abort_tasks();
        self.settle_behind();
        let Some(home) = self.home.take() else { return };
        if self.lost {
            return;
        }
        self.account_time();
        let session = self.take_session();
        let core = Arc::clone(&self.core);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if !settled => {
                runtime.spawn(async move {
                    core.effects_done().await;
                    let late = core.take_memory();
                    home.put_back(session, late);
                });
            }
            _ => home.put_back(session, None),
        }
    }
}
