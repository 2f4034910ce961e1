//! What comes next: a pure function of the graph, the cursor, and how the attempt ended.
//!
//! It knows no clock, no runtime, no store and no user code, so every rule of the loop is tested as
//! a table.

use crate::graph::{Budget, Dest, Exit, FINALLY, Limit, Wiring};
use crate::llm::Spend;
use crate::session::Cursor;

/// How an attempt at the cursor ended, or what kept it from being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempted {
    /// The step's update is folded in; `branch` is what its route answered.
    Done { branch: Option<usize> },
    /// It asked questions that have no answer.
    Asked,
    /// It waits for timers alone.
    Sleeps,
    /// What it waits for was recorded before: answers, or only timers.
    Waits { asks: bool },
    /// The gate's question was not answered in time, and this is where that leads.
    Expired { to: usize },
    /// The step failed.
    Failed { retryable: bool },
    /// The state was lost in a reducer or a route that panicked.
    Lost,
    /// A budget is reached, before the step or in the middle of it.
    Over(Limit),
    /// The run is asked to stop.
    Stop,
    /// The run is cancelled.
    Cancel,
    /// The lease of the session is lost.
    LeaseLost,
}

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Commit and enter `step`.
    Enter { step: usize },
    /// Try the same step again after its back-off.
    Retry,
    /// Commit the failure and enter its error step.
    Divert { step: usize },
    /// Commit the questions and settle as interrupted.
    Ask,
    /// Commit the timers, and look whether one is due.
    Sleep,
    /// The turn has come to `end`: commit that, and enter the first step of `.finally(..)`.
    Finish { end: Settle, step: usize },
    /// Settle.
    Settle(Settle),
}

/// How a run settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settle {
    /// The loop came to an end, by this branch of its last step's route.
    Ended {
        branch: Option<usize>,
    },
    /// The failure that just happened is final.
    Failed,
    Exhausted(Limit),
    Interrupted,
    /// Timers are to come.
    Waiting,
    Stopped,
    Cancelled,
    /// The lease of the session is lost.
    LeaseLost,
    /// The steps of `.finally(..)` are over: settle with the end that was kept, and report whether
    /// they failed, asked or used up their budget.
    Kept {
        finally: Finally,
    },
}

/// How `.finally(..)` went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finally {
    Well,
    Failed,
    Asked,
    Over(Limit),
}

/// What comes next.
pub(crate) fn transition(wiring: &Wiring, cursor: &Cursor<usize>, attempted: Attempted) -> Next {
    // Nearly every step is done; the rest need not be inlined with it.
    match attempted {
        Attempted::Done { branch } => done(wiring, cursor, branch),
        other => undone(wiring, cursor, other),
    }
}

fn done(wiring: &Wiring, cursor: &Cursor<usize>, branch: Option<usize>) -> Next {
    let dest = match (&wiring.nodes[cursor.step].exit, branch) {
        (Exit::Then(edge), _) => Dest::Step(*edge),
        (Exit::Route { branches, .. }, Some(branch)) => branches[branch].dest,
        (Exit::End | Exit::Route { .. }, _) => Dest::End,
    };
    match dest {
        Dest::Step(edge) => enter(wiring, cursor, edge.to),
        Dest::End => finish(wiring, cursor, Settle::Ended { branch }),
    }
}

fn undone(wiring: &Wiring, cursor: &Cursor<usize>, attempted: Attempted) -> Next {
    let node = &wiring.nodes[cursor.step];
    match attempted {
        Attempted::Done { branch } => done(wiring, cursor, branch),
        Attempted::Asked | Attempted::Waits { asks: true } if cursor.finishing.is_some() => {
            Next::Settle(Settle::Kept { finally: Finally::Asked })
        }
        Attempted::Asked => Next::Ask,
        Attempted::Sleeps => Next::Sleep,
        Attempted::Waits { asks: true } => Next::Settle(Settle::Interrupted),
        Attempted::Waits { asks: false } => Next::Settle(Settle::Waiting),
        Attempted::Expired { to } => enter(wiring, cursor, to),
        Attempted::Failed { retryable } => {
            let again = node.policy.retry.is_some_and(|retry| retry.allows(cursor.retries));
            if retryable && again {
                return Next::Retry;
            }
            // Of the error routes only a step's own holds inside `.finally(..)`.
            let route = if cursor.finishing.is_some() {
                node.on_error.filter(|edge| edge.to != cursor.step)
            } else {
                wiring.error_route(cursor.step)
            };
            match route {
                Some(edge) => match reachable(wiring, cursor, edge.to) {
                    Some(step) => Next::Divert { step },
                    None => finish(wiring, cursor, Settle::Exhausted(Limit::AtMost)),
                },
                None => finish(wiring, cursor, Settle::Failed),
            }
        }
        Attempted::Lost => Next::Settle(Settle::Failed),
        Attempted::Over(limit) => finish(wiring, cursor, Settle::Exhausted(limit)),
        Attempted::Stop => Next::Settle(Settle::Stopped),
        Attempted::Cancel => Next::Settle(Settle::Cancelled),
        Attempted::LeaseLost => Next::Settle(Settle::LeaseLost),
    }
}

fn enter(wiring: &Wiring, cursor: &Cursor<usize>, step: usize) -> Next {
    match reachable(wiring, cursor, step) {
        Some(step) => Next::Enter { step },
        None => finish(wiring, cursor, Settle::Exhausted(Limit::AtMost)),
    }
}

/// Follows the ways out of steps whose visits are used up. If these lead only to each other, the
/// step is entered in name: so what came before is committed, and the turn is found
/// [out of visits](out_of_visits) at the boundary, where it can be resumed. Inside `.finally(..)`,
/// which cannot be, there is no step to enter then.
fn reachable(wiring: &Wiring, cursor: &Cursor<usize>, first: usize) -> Option<usize> {
    let mut step = first;
    for _ in 0..=wiring.nodes.len() {
        match wiring.nodes[step].at_most {
            // One that may never be entered is refused at the boundary.
            Some(limit) if cursor.visits.of(&step) >= limit.times.max(1) => {
                step = limit.instead.to;
            }
            _ => return Some(step),
        }
    }
    cursor.finishing.is_none().then_some(first)
}

/// Whether the step at the cursor was entered in name only: it may not be, nor may any other in
/// its stead.
pub(crate) fn out_of_visits(wiring: &Wiring, cursor: &Cursor<usize>) -> bool {
    // Few steps have a limit: only those are looked up.
    wiring.nodes[cursor.step].at_most.is_some_and(|limit| {
        cursor.finishing.is_none() && cursor.visits.of(&cursor.step) > limit.times
    })
}

fn finish(wiring: &Wiring, cursor: &Cursor<usize>, end: Settle) -> Next {
    match (&cursor.finishing, wiring.finally) {
        (Some(_), _) => Next::Settle(Settle::Kept {
            finally: match end {
                Settle::Failed => Finally::Failed,
                Settle::Exhausted(limit) => Finally::Over(limit),
                _ => Finally::Well,
            },
        }),
        (None, Some(edge)) => Next::Finish { end, step: edge.to },
        (None, None) => Next::Settle(end),
    }
}

/// The budget that holds at the cursor.
pub(crate) fn budget_at<'a>(budget: &'a Budget, cursor: &Cursor<usize>) -> &'a Budget {
    const IN_FINALLY: &Budget = &FINALLY;
    if cursor.finishing.is_some() { IN_FINALLY } else { budget }
}

/// Whether the number of steps is used up, which is asked before each one.
pub(crate) fn out_of_steps(budget: &Budget, cursor: &Cursor<usize>) -> bool {
    let since = cursor.finishing.as_ref().map_or(0, |finishing| finishing.since);
    budget.steps.is_some_and(|most| cursor.steps - since >= most)
}

/// Whether what was spent is all there was.
pub(crate) fn overspent(budget: &Budget, spent: &Spend) -> Option<Limit> {
    if budget.tokens.is_some_and(|most| spent.usage.total().unwrap_or(0) >= most) {
        Some(Limit::Tokens)
    } else if budget.cost_micros.is_some_and(|most| spent.cost_micros.unwrap_or(0) >= most) {
        Some(Limit::Cost)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
