//! Steps that run their body for each of several items.
//!
//! The items are computed once and recorded; each has one durable result. An item that asks gives up
//! its place to the next one, and is entered again once it has its answers. The step is done when
//! all items are, and their results are folded in the order of the items.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, lazy};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::graph::{Executable, Limit, Wiring};
use crate::id::InterruptId;
use crate::journal::{Broken, Journal, When};
use crate::observe::EventKind;
use crate::session::{Change, ItemDone, ItemResult, Planned, Session, check_value};
use crate::state::State;
use crate::step::{EachBody, FailureKind, ItemEnd, Place, StepError};

use super::attempt::{Attempt, Begun, Ended};
use super::boundary::place_in;
use super::driver::{Driver, STEPS_IN_A_ROW};
use super::slots;
use super::timers::until;
use super::transition::Attempted;

/// What an item in flight comes to.
enum Flight {
    /// An attempt at it ended.
    Attempted(Place, Ended<serde_json::Value>),
    /// Its back-off is over.
    Due(u32),
}

/// The items that are not done.
struct Work {
    /// Those that can be entered.
    ready: VecDeque<u32>,
    /// Those among them, at work, or in a back-off.
    busy: BTreeSet<u32>,
    /// Attempts that were over at once.
    over: VecDeque<Flight>,
    flights: FuturesUnordered<BoxFuture<'static, Flight>>,
    /// How many attempts are in flight; items that back off are not among them.
    attempts: usize,
    /// Those that wait for a timer, by when it is due.
    sleeping: BTreeSet<(UtcMillis, u32)>,
    /// Why no more items are entered.
    stopped: Option<Attempted>,
}

impl Work {
    /// Whether no attempt is under way, and none can be made now.
    fn is_idle(&self) -> bool {
        self.over.is_empty() && self.flights.is_empty()
    }

    /// Items can be entered that waited.
    fn wake(&mut self, woken: &BTreeSet<u32>) {
        // An item whose timer was due may be at work when the answer comes that it asked for as well.
        self.ready.extend(woken.iter().filter(|index| self.busy.insert(**index)));
        self.sleeping.retain(|(_, index)| !woken.contains(index));
    }

    /// When the first item wakes that waits for a timer.
    fn wakes(&self) -> Option<UtcMillis> {
        self.sleeping.first().map(|(due, _)| *due)
    }

    /// What ends next; `None` if nothing is in flight.
    async fn next(&mut self) -> Option<Flight> {
        match self.over.pop_front() {
            Some(flight) => Some(flight),
            None => self.flights.next().await,
        }
    }
}

impl<C: Context, S: State> Driver<C, S> {
    pub(super) async fn each(
        &mut self,
        wiring: &Wiring,
        executable: &Executable<C, S>,
        each: &EachBody<C, S>,
        place: Place,
    ) -> Attempted {
        if self.core.session(|session| session.items.is_none())
            && let Some(attempted) = self.plan(wiring, each, place).await
        {
            return attempted;
        }
        match self.work(wiring, each).await {
            Ok(Some(attempted)) => attempted,
            Ok(None) => self.fold_items(executable, each),
            Err(broken) => {
                // The attempts in flight are dropped, but for the effects that they began.
                self.core.abort_tasks();
                self.core.effects_over().await;
                self.failed(broken.to_error())
            }
        }
    }

    /// Computes the items and records them. Returns how the attempt ended, if there are none.
    async fn plan(
        &mut self,
        wiring: &Wiring,
        each: &EachBody<C, S>,
        place: Place,
    ) -> Option<Attempted> {
        let (view, cx) = (self.view(), self.cx(place));
        let items = match self.attempt_at(wiring, place).run(|| (each.plan)(view, cx)).await {
            Ended::Done(items) => items,
            other => return Some(self.undone(other)),
        };
        let planned = Planned { items };
        let check = serde_json::Value::Array(planned.items.clone());
        if let Err(error) = check_value(&check) {
            let why = format!("the items of the step: {error}");
            return Some(self.failed(StepError::of(FailureKind::Encode, false, why)));
        }
        let count = planned.items.len();
        let recorded = self.core.record_as(place, Change::Planned(planned), || {
            vec![EventKind::Planned { items: count }]
        });
        let written = match recorded {
            Ok(()) => self.append(When::Mode).await,
            Err(broken) => Err(broken),
        };
        written.err().map(|broken| self.failed(broken.to_error()))
    }

    /// Works on the items until all are done (`None`), or nothing can be done now.
    async fn work(
        &mut self,
        wiring: &Wiring,
        each: &EachBody<C, S>,
    ) -> Result<Option<Attempted>, Broken> {
        let ready = self.enterable();
        let mut work = Work {
            busy: ready.iter().copied().collect(),
            ready,
            over: VecDeque::new(),
            flights: FuturesUnordered::new(),
            attempts: 0,
            sleeping: self.sleeping(),
            stopped: None,
        };
        let core = Arc::clone(&self.core);
        let mut in_a_row = 0_u32;
        loop {
            // Made before the look at the inbox, so that no message is missed.
            let grown = core.journal.as_ref().map(Journal::inbox_grown);
            let message = async {
                match grown {
                    Some(grown) => grown.await,
                    None => std::future::pending().await,
                }
            };
            self.apply_answers(&mut work).await?;
            self.wake_items(&mut work);
            self.enter_items(wiring, each, &mut work).await;
            let (idle, wakes, began) = (work.is_idle(), work.wakes(), Instant::now());
            if idle && (work.stopped.is_some() || wakes.is_none_or(|due| !self.stays(due))) {
                break;
            }
            let flight = tokio::select! {
                biased;
                flight = work.next(), if !idle => flight,
                () = until(wakes) => {
                    if idle {
                        self.rested(began);
                    }
                    continue;
                }
                () = core.stop.stopping().cancelled(), if work.stopped.is_none() => {
                    work.stopped = self.is_stopped();
                    continue;
                }
                () = message => continue,
            };
            let Some(flight) = flight else { continue };
            // One append takes everything that has ended by now.
            let mut waits = self.land(wiring, &mut work, flight)?;
            while let Some(Some(flight)) = work.next().now_or_never() {
                waits |= self.land(wiring, &mut work, flight)?;
            }
            // A question must be visible before it is answered, and a crash must not start a timer
            // again.
            self.append(if waits { When::Now } else { When::Mode }).await?;
            in_a_row = in_a_row.wrapping_add(1);
            if in_a_row.is_multiple_of(STEPS_IN_A_ROW) {
                tokio::task::yield_now().await;
            }
        }
        let (done, idle) = self.core.session(|session| {
            let done = session.items.as_ref().is_none_or(|items| items.are_done());
            (done, session.is_idle(UtcMillis::now()))
        });
        let waits = Attempted::Waits { asks: self.core.session(Session::is_waiting) };
        Ok(match work.stopped {
            Some(given_up @ (Attempted::Cancel | Attempted::LeaseLost)) => Some(given_up),
            // As after any other step, what keeps the next one from being entered comes later.
            _ if done => None,
            _ if idle => Some(waits),
            stopped => Some(stopped.unwrap_or(waits)),
        })
    }

    /// The items that are not done and do not wait.
    fn enterable(&self) -> VecDeque<u32> {
        self.core.session(|session| session.enterable_items(UtcMillis::now()).collect())
    }

    /// The items that wait for timers.
    fn sleeping(&self) -> BTreeSet<(UtcMillis, u32)> {
        let now = UtcMillis::now();
        self.core.session(|session| {
            let waits = session.timers().filter_map(|(item, timer)| Some((timer.due, item?)));
            waits.filter(|(_, item)| session.waits(Some(*item), now)).collect()
        })
    }

    /// Makes the items ready whose timers are due.
    fn wake_items(&self, work: &mut Work) {
        if work.sleeping.is_empty() {
            return;
        }
        let now = UtcMillis::now();
        let due = work.sleeping.iter().take_while(|(due, _)| *due <= now);
        let woken: BTreeSet<u32> = due.map(|(_, index)| *index).collect();
        if !woken.is_empty() {
            work.wake(&woken);
        }
    }

    /// Enters items, as many as may be at work at a time.
    async fn enter_items(&mut self, wiring: &Wiring, each: &EachBody<C, S>, work: &mut Work) {
        while work.stopped.is_none() && work.attempts < each.concurrency && !work.ready.is_empty() {
            work.stopped = match self.holds().await {
                true => self.kept_from_entering(wiring),
                false => Some(Attempted::LeaseLost),
            };
            if work.stopped.is_some() {
                return;
            }
            let Some(index) = work.ready.pop_front() else { return };
            let entered = self.core.enter_where(|session, slots| {
                let item = session.items.as_ref()?.planned.get(index as usize)?.clone();
                let place = place_in(session, Some(index));
                slots.enter(place);
                Some((place, item))
            });
            let Some((place, item)) = entered else { continue };
            if !self.core.is_silent() {
                self.core.item_keys.note(each.key.as_ref(), place, &item);
            }
            self.core.publish_fired(place);
            self.core.publish(Some(place), || EventKind::StepStarted);
            let (view, cx) = (self.view(), self.cx(place));
            let Attempt { timeout, wall, .. } = self.attempt_at(wiring, place);
            let attempt = Attempt { core: Arc::clone(&self.core), place, timeout, wall };
            work.attempts += 1;
            match lazy(|task| attempt.begin(task, || (each.run)(item, view, cx))).await {
                Begun::Ended(ended) => work.over.push_back(Flight::Attempted(place, ended)),
                Begun::Unfinished(unfinished) => work.flights.push(Box::pin(async move {
                    Flight::Attempted(place, attempt.end(unfinished.moved()).await)
                })),
            }
        }
    }

    /// Records what an item in flight came to. Says whether it waits now.
    fn land(&mut self, wiring: &Wiring, work: &mut Work, flight: Flight) -> Result<bool, Broken> {
        let (place, ended) = match flight {
            Flight::Due(index) => {
                work.ready.push_back(index);
                return Ok(false);
            }
            Flight::Attempted(place, ended) => (place, ended),
        };
        work.attempts -= 1;
        let Some(index) = place.item else { return Ok(false) };
        match ended {
            Ended::Done(value) => match check_value(&value) {
                Ok(()) => self.item_done(place, ItemResult::Done(value))?,
                Err(error) => {
                    let why = format!("the result of item {index}: {error}");
                    let error = StepError::of(FailureKind::Encode, false, why);
                    self.item_failed(wiring, work, index, error)?;
                }
            },
            Ended::Awaits(it) if it.has_asked() && self.is_finishing() => {
                let why = "an item of a step that `finally` runs asked a question (ask before the \
                           end)";
                let error = StepError::of(FailureKind::AskInFinally, false, why.to_owned());
                self.item_failed(wiring, work, index, error)?;
            }
            Ended::Awaits(it) => {
                let slots::Work { asked, timers, children, .. } = *it;
                if !asked.is_empty() {
                    let asked = asked.into_iter().map(|(key, asked)| (Some(key), asked)).collect();
                    self.record_asked(wiring, place, asked)?;
                }
                work.busy.remove(&index);
                work.sleeping.extend(timers.iter().map(|timer| (timer.due, index)));
                self.record_waits(place, timers, children)?;
                if self.core.session(|session| !session.waits(place.item, UtcMillis::now())) {
                    // What it has asked was answered while its effects went to their end.
                    work.wake(&BTreeSet::from([index]));
                }
                return Ok(true);
            }
            Ended::Failed(error) => self.item_failed(wiring, work, index, error)?,
            Ended::Cancelled => work.stopped = Some(Attempted::Cancel),
            Ended::OutOfTime => work.stopped = Some(Attempted::Over(Limit::Wall)),
        }
        Ok(false)
    }

    fn is_finishing(&self) -> bool {
        self.core.session(|session| session.cursor.finishing.is_some())
    }

    fn item_done(&mut self, place: Place, result: ItemResult) -> Result<(), Broken> {
        let index = place.item.unwrap_or_default();
        let failure = match &result {
            ItemResult::Done(_) => None,
            ItemResult::Failed(failure) => Some(Arc::clone(failure)),
        };
        let done = Change::Item(ItemDone { index, result });
        self.core.record_as(place, done, || {
            vec![EventKind::ItemDone { failure: failure.map(|failure| (*failure).clone()) }]
        })
    }

    /// Tries an item again, or records that it failed for good.
    fn item_failed(
        &mut self,
        wiring: &Wiring,
        work: &mut Work,
        index: u32,
        error: StepError,
    ) -> Result<(), Broken> {
        let place = self.place(Some(index));
        let retries = self.core.session(|session| session.retries(place.item));
        let again = wiring.nodes[place.step].policy.retry.is_some_and(|it| it.allows(retries));
        if error.is_fatal() || !again {
            let failure = self.failure(wiring, place, Some(error));
            return self.item_done(place, ItemResult::Failed(failure));
        }
        let delay = self.record_retry(wiring, place.item, Some(error))?;
        let until = Instant::now() + delay;
        let until = self.wall_deadline(wiring).map_or(until, |wall| wall.min(until));
        work.flights.push(Box::pin(back_off(until, index, self.core.stop.clone())));
        Ok(())
    }

    /// Applies answers that came while other items were at work.
    async fn apply_answers(&mut self, work: &mut Work) -> Result<(), Broken> {
        let core = Arc::clone(&self.core);
        let Some(journal) = &core.journal else { return Ok(()) };
        let unread = match journal.unread().await {
            Ok(unread) => unread,
            // They stay in the inbox; a later look finds them.
            Err(error) => {
                tracing::debug!(?error, "failed to read the inbox");
                return Ok(());
            }
        };
        let Some(last) = unread.last().map(|message| message.seq) else { return Ok(()) };
        let about: HashSet<InterruptId> =
            unread.iter().filter_map(|message| message.interrupt.clone()).collect();
        let items: BTreeSet<u32> = core.session(|session| {
            let open = about.iter().filter_map(|id| session.interrupt(id));
            open.filter(|asked| asked.is_open()).filter_map(|it| it.interrupt.item).collect()
        });
        if self.apply_resolutions(unread, false).await {
            let now = UtcMillis::now();
            let resolved = |index: &u32| core.session(|session| !session.waits(Some(*index), now));
            work.wake(&items.into_iter().filter(resolved).collect());
        }
        journal.pass_over(last, core.summary());
        // Inputs among them are for the run that ends the turn.
        self.look_back = true;
        Ok(())
    }

    /// Folds the results of the items, in their order.
    fn fold_items(&mut self, executable: &Executable<C, S>, each: &EachBody<C, S>) -> Attempted {
        let ends: Vec<ItemEnd> = self.core.session(|session| {
            let done = session.items.iter().flat_map(|items| items.done.values());
            done.map(|result| match result {
                ItemResult::Done(value) => Ok(value.clone()),
                ItemResult::Failed(failure) => Err(Arc::clone(failure)),
            })
            .collect()
        });
        let first = ends.iter().enumerate().find_map(|(at, end)| Some((at, end.as_ref().err()?)));
        if let Some((at, failure)) = first
            && !each.collects
        {
            let failed = ends.iter().filter(|end| end.is_err()).count();
            return self.failed(StepError::of_items(failure, at, failed, ends.len()));
        }
        let view = self.view();
        let folded =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (each.fold)(view, ends)));
        match folded {
            Ok(Ok(updates)) => self.fold(executable, updates),
            Ok(Err(error)) => self.failed(error),
            Err(panic) => {
                let why = format!("the fold panicked: {}", crate::text::words(&*panic));
                self.failed(StepError::of(FailureKind::Panic, false, why))
            }
        }
    }
}

/// Waits before the next attempt at an item; a stop ends the wait.
async fn back_off(until: Instant, index: u32, stop: super::stop::StopSignal) -> Flight {
    tokio::select! {
        () = tokio::time::sleep_until(until) => {}
        () = stop.stopping().cancelled() => {}
    }
    Flight::Due(index)
}
