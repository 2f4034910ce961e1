//! What comes next: a pure function of the graph, the place in it, and what happened there.
//!
//! It knows no clock, no runtime, no store and no user code, so that every rule of the loop is
//! tested as a table.

use crate::graph::{Budget, Dest, Exit, FINALLY, Limit, Wiring};
use crate::llm::Spend;
use crate::session::Cursor;

/// What happened at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The step's update is folded in; `branch` is what its route answered.
    Done { branch: Option<usize> },
    /// Questions wait.
    Asked,
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
    /// Nothing more can be recorded.
    Cut,
}

/// What the driver does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// Commit and enter `step`.
    Enter { step: usize },
    /// Try the same step again after its back-off.
    Retry,
    /// Commit the failure and enter its error step.
    Divert { step: usize },
    /// Commit the questions and settle as interrupted.
    Wait,
    /// The turn has come to `end`: commit that, and enter the first step of `.finally(..)`.
    Finish { end: End, step: usize },
    /// Settle.
    Settle(End),
}

/// How a run settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The loop came to an end, by this branch of its last step's route.
    Ended {
        branch: Option<usize>,
    },
    /// The failure that just happened is final.
    Failed,
    Exhausted(Limit),
    Stopped,
    Cancelled,
    /// Nothing more can be recorded.
    Cut,
    /// The steps of `.finally(..)` are through: settle with the end that was kept. If they failed,
    /// or asked, or went on for too long, that is told too.
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
#[inline]
pub(crate) fn transition(wiring: &Wiring, cursor: &Cursor, happened: Happened) -> Transition {
    // Nearly every step is done; the rest need not be inlined with it.
    match happened {
        Happened::Done { branch } => done(wiring, cursor, branch),
        other => undone(wiring, cursor, other),
    }
}

#[inline]
fn done(wiring: &Wiring, cursor: &Cursor, branch: Option<usize>) -> Transition {
    let dest = match (&wiring.nodes[cursor.step].exit, branch) {
        (Exit::Then(edge), _) => Dest::Step(*edge),
        (Exit::Route { branches, .. }, Some(branch)) => branches[branch].dest,
        (Exit::End | Exit::Route { .. }, _) => Dest::End,
    };
    match dest {
        Dest::Step(edge) => enter(wiring, cursor, edge.to),
        Dest::End => finish(wiring, cursor, End::Ended { branch }),
    }
}

fn undone(wiring: &Wiring, cursor: &Cursor, happened: Happened) -> Transition {
    let node = &wiring.nodes[cursor.step];
    match happened {
        Happened::Done { branch } => done(wiring, cursor, branch),
        Happened::Asked if cursor.finishing.is_some() => {
            Transition::Settle(End::Kept { finally: Finally::Asked })
        }
        Happened::Asked => Transition::Wait,
        Happened::Expired { to } => enter(wiring, cursor, to),
        Happened::Failed { retryable } => {
            let again = node.policy.retry.is_some_and(|retry| retry.allows(cursor.retries));
            if retryable && again {
                return Transition::Retry;
            }
            // Of the error routes only a step's own holds inside `.finally(..)`.
            let route = if cursor.finishing.is_some() {
                node.on_error.filter(|edge| edge.to != cursor.step)
            } else {
                wiring.error_route(cursor.step)
            };
            match route {
                Some(edge) => match reachable(wiring, cursor, edge.to) {
                    Some(step) => Transition::Divert { step },
                    None => finish(wiring, cursor, End::Exhausted(Limit::AtMost)),
                },
                None => finish(wiring, cursor, End::Failed),
            }
        }
        Happened::Lost => Transition::Settle(End::Failed),
        Happened::Over(limit) => finish(wiring, cursor, End::Exhausted(limit)),
        Happened::Stop => Transition::Settle(End::Stopped),
        Happened::Cancel => Transition::Settle(End::Cancelled),
        Happened::Cut => Transition::Settle(End::Cut),
    }
}

#[inline]
fn enter(wiring: &Wiring, cursor: &Cursor, step: usize) -> Transition {
    // Without `.at_most(..)` there is nothing to count.
    if cursor.visits.is_empty() {
        return Transition::Enter { step };
    }
    match reachable(wiring, cursor, step) {
        Some(step) => Transition::Enter { step },
        None => finish(wiring, cursor, End::Exhausted(Limit::AtMost)),
    }
}

/// Follows the ways out of steps whose visits are used up. If these lead only to each other, the
/// step is entered in name: so what came before is committed, and the turn is found
/// [out of visits](out_of_visits) at the boundary, where it can be resumed. Inside `.finally(..)`,
/// which cannot be, there is no step to enter then.
fn reachable(wiring: &Wiring, cursor: &Cursor, first: usize) -> Option<usize> {
    let mut step = first;
    for _ in 0..=wiring.nodes.len() {
        match wiring.nodes[step].at_most {
            Some(limit) if cursor.visits.get(step).is_some_and(|n| *n >= limit.times) => {
                step = limit.instead.to;
            }
            _ => return Some(step),
        }
    }
    cursor.finishing.is_none().then_some(first)
}

/// Whether the step at the cursor was entered in name only: it may not be, nor may any other in
/// its stead.
pub(crate) fn out_of_visits(wiring: &Wiring, cursor: &Cursor) -> bool {
    cursor.finishing.is_none()
        && cursor.visits.get(cursor.step).is_some_and(|visits| {
            wiring.nodes[cursor.step].at_most.is_some_and(|limit| *visits > limit.times)
        })
}

fn finish(wiring: &Wiring, cursor: &Cursor, end: End) -> Transition {
    match (&cursor.finishing, wiring.finally) {
        (Some(_), _) => Transition::Settle(End::Kept {
            finally: match end {
                End::Failed => Finally::Failed,
                End::Exhausted(limit) => Finally::Over(limit),
                _ => Finally::Well,
            },
        }),
        (None, Some(edge)) => Transition::Finish { end, step: edge.to },
        (None, None) => Transition::Settle(end),
    }
}

/// The budget that holds at the cursor.
pub(crate) fn budget_at<'a>(budget: &'a Budget, cursor: &Cursor) -> &'a Budget {
    const IN_FINALLY: &Budget = &FINALLY;
    if cursor.finishing.is_some() { IN_FINALLY } else { budget }
}

/// Whether the number of steps is used up, which is asked before each one.
pub(crate) fn out_of_steps(budget: &Budget, cursor: &Cursor) -> bool {
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
