//! The boundary before a step: whether an attempt may be made there, and where it stands.

use crate::clock::UtcMillis;
use crate::graph::{Budget, Limit, Wiring};
use crate::session::Session;
use crate::step::Place;

use super::breakpoints::Breakpoints;
use super::transition::{Attempted, budget_at, out_of_steps, out_of_visits};

/// What keeps the next attempt at the step at work from being made, if anything.
pub(super) fn at_boundary(
    wiring: &Wiring,
    budget: &Budget,
    breakpoints: Option<&Breakpoints>,
    session: &Session<usize>,
) -> Result<(), Attempted> {
    let cursor = &session.cursor;
    let after = wiring.nodes[cursor.step].policy.after;
    // Most steps wait for nothing, and the clock is not read.
    let may_wait =
        session.is_waiting() || !session.timers.is_empty() || session.waits_for_child(None);
    if may_wait && session.items.is_none() && session.waits(None, UtcMillis::now()) {
        return Err(Attempted::Waits { asks: session.is_waiting() });
    }
    // A position that was entered before has been counted before.
    let fresh = cursor.attempt <= session.recovered;
    if fresh && out_of_steps(budget_at(budget, cursor), cursor) {
        return Err(Attempted::Over(Limit::Steps));
    }
    if out_of_visits(wiring, cursor) {
        return Err(Attempted::Over(Limit::AtMost));
    }
    if fresh && breakpoints.is_some_and(|it| it.is_before(session)) {
        return Err(Attempted::Asked);
    }
    if after.is_some() && session.timers.due(None).is_none() && session.items.is_none() {
        return Err(Attempted::Sleeps);
    }
    Ok(())
}

/// Where the next attempt at the step at work, or at an item of it, stands.
#[inline]
pub(super) fn place_in(session: &Session<usize>, item: Option<u32>) -> Place {
    let (position, step) = (session.cursor.position, session.cursor.step);
    Place { position, step, attempt: session.attempts(item) + 1, item }
}
