use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::graph::{AtMost, Branch, Edge, Kind, Node};
use crate::id::Position;
use crate::llm::Usage;
use crate::session::Visits;
use crate::session::{End, Kept};
use crate::step::{Policy, Retry};

fn edge(to: usize) -> Edge {
    Edge { to, at: Location::caller() }
}

fn then(to: usize) -> Exit {
    Exit::Then(edge(to))
}

/// Routes by two signals: the first leads to `to`, the second ends.
fn route(to: usize) -> Exit {
    let branches = vec![
        Branch { signal: "On", dest: Dest::Step(edge(to)) },
        Branch { signal: "Off", dest: Dest::End },
    ];
    Exit::Route { signals: "Sig", branches }
}

fn node(exit: Exit) -> Node {
    Node {
        name: Arc::from("step"),
        aliases: Vec::new(),
        question: None,
        expires: None,
        kind: Kind::Run,
        exit,
        policy: Policy::default(),
        on_error: None,
        at_most: None,
        at: Location::caller(),
    }
}

fn retried(exit: Exit, times: u32) -> Node {
    let retry = Some(Retry::every(Duration::ZERO).times(times));
    Node { policy: Policy { retry, ..Policy::default() }, ..node(exit) }
}

fn on_error(exit: Exit, to: usize) -> Node {
    Node { on_error: Some(edge(to)), ..node(exit) }
}

fn at_most(exit: Exit, times: u32, instead: usize) -> Node {
    Node { at_most: Some(AtMost { times, instead: edge(instead) }), ..node(exit) }
}

fn wiring(nodes: Vec<Node>) -> Wiring {
    Wiring {
        name: Arc::from("loop"),
        nodes,
        start: 0,
        on_error: None,
        finally: None,
        budget: Budget::default(),
        at: Location::caller(),
    }
}

/// A cursor in its first attempt at `step`.
fn at(step: usize) -> Cursor<usize> {
    Cursor {
        step,
        position: Position(1),
        last: Position(1),
        attempt: 0,
        retries: 0,
        steps: 0,
        visits: visits([]),
        failure: None,
        finishing: None,
    }
}

fn finishing(step: usize) -> Cursor<usize> {
    Cursor { finishing: Some(Kept { end: End::plain(), since: 0 }), ..at(step) }
}

/// How often each step was entered.
fn visits<const N: usize>(counts: [u32; N]) -> Visits<usize> {
    counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
}

fn next(wiring: &Wiring, step: usize, attempted: Attempted) -> Next {
    transition(wiring, &at(step), attempted)
}

const DONE: Attempted = Attempted::Done { branch: None };
const RETRYABLE: Attempted = Attempted::Failed { retryable: true };
const FATAL: Attempted = Attempted::Failed { retryable: false };

fn kept(finally: Finally) -> Next {
    Next::Settle(Settle::Kept { finally })
}

#[test]
fn what_happened_and_the_exit_say_what_comes_next() {
    let wiring = wiring(vec![node(then(1)), node(route(0)), node(Exit::End)]);
    let ended = |branch| Next::Settle(Settle::Ended { branch });
    let table = [
        (0, DONE, Next::Enter { step: 1 }),
        (1, Attempted::Done { branch: Some(0) }, Next::Enter { step: 0 }),
        (1, Attempted::Done { branch: Some(1) }, ended(Some(1))),
        (2, DONE, ended(None)),
    ];
    for (step, attempted, expected) in table {
        assert_eq!(next(&wiring, step, attempted), expected, "{step} {attempted:?}");
    }
    // Whatever the exit, what keeps a step from being done says itself what comes next.
    let whatever = [
        (Attempted::Asked, Next::Ask),
        (Attempted::Sleeps, Next::Sleep),
        (Attempted::Waits { asks: true }, Next::Settle(Settle::Interrupted)),
        (Attempted::Waits { asks: false }, Next::Settle(Settle::Waiting)),
        (Attempted::Expired { to: 2 }, Next::Enter { step: 2 }),
        (RETRYABLE, Next::Settle(Settle::Failed)),
        (FATAL, Next::Settle(Settle::Failed)),
        (Attempted::Lost, Next::Settle(Settle::Failed)),
        (Attempted::Over(Limit::Steps), Next::Settle(Settle::Exhausted(Limit::Steps))),
        (Attempted::Over(Limit::Wall), Next::Settle(Settle::Exhausted(Limit::Wall))),
        (Attempted::Stop, Next::Settle(Settle::Stopped)),
        (Attempted::Cancel, Next::Settle(Settle::Cancelled)),
        (Attempted::LeaseLost, Next::Settle(Settle::LeaseLost)),
    ];
    for (attempted, expected) in whatever {
        for step in 0..3 {
            assert_eq!(next(&wiring, step, attempted), expected, "{step} {attempted:?}");
        }
    }
}

#[test]
fn retries_are_allowed_as_often_as_declared_and_for_retryable_failures_only() {
    let wiring = wiring(vec![retried(Exit::End, 2)]);
    let after =
        |retries: u32, attempted| transition(&wiring, &Cursor { retries, ..at(0) }, attempted);
    assert_eq!(after(0, RETRYABLE), Next::Retry);
    assert_eq!(after(1, RETRYABLE), Next::Retry);
    assert_eq!(after(2, RETRYABLE), Next::Settle(Settle::Failed));
    assert_eq!(after(0, FATAL), Next::Settle(Settle::Failed));
    // Attempts that were no retries (after an answer, say) use none up.
    let reentered = Cursor { attempt: 9, ..at(0) };
    assert_eq!(transition(&wiring, &reentered, RETRYABLE), Next::Retry);
}

#[test]
fn retries_come_before_the_error_route() {
    let mut node_0 = retried(Exit::End, 1);
    node_0.on_error = Some(edge(1));
    let wiring = wiring(vec![node_0, node(Exit::End)]);
    assert_eq!(next(&wiring, 0, RETRYABLE), Next::Retry);
    let used = Cursor { retries: 1, ..at(0) };
    assert_eq!(transition(&wiring, &used, RETRYABLE), Next::Divert { step: 1 });
    assert_eq!(next(&wiring, 0, FATAL), Next::Divert { step: 1 });
}

#[test]
fn a_steps_error_route_wins_over_the_loops() {
    let mut wiring =
        wiring(vec![on_error(then(1), 2), node(Exit::End), node(Exit::End), node(Exit::End)]);
    wiring.on_error = Some(edge(3));
    assert_eq!(next(&wiring, 0, FATAL), Next::Divert { step: 2 });
    assert_eq!(next(&wiring, 1, FATAL), Next::Divert { step: 3 });
    // An error step without a route of its own has the loop's ..
    assert_eq!(next(&wiring, 2, FATAL), Next::Divert { step: 3 });
    // .. and the loop's error step has none.
    assert_eq!(next(&wiring, 3, FATAL), Next::Settle(Settle::Failed));
}

#[test]
fn the_loops_error_route_may_be_a_chain_and_never_comes_back() {
    let mut wiring = wiring(vec![
        node(Exit::End),
        on_error(Exit::End, 2),
        on_error(Exit::End, 3),
        node(Exit::End),
    ]);
    wiring.on_error = Some(edge(1));
    let mut route = vec![0];
    let mut step = 0;
    while let Next::Divert { step: error_step } = next(&wiring, step, FATAL) {
        assert!(!route.contains(&error_step), "{route:?} comes back to {error_step}");
        route.push(error_step);
        step = error_step;
    }
    assert_eq!(route, [0, 1, 2, 3]);
    assert_eq!(next(&wiring, 3, FATAL), Next::Settle(Settle::Failed));
}

#[test]
fn a_failing_error_step_never_enters_itself() {
    // Of its own accord, which `build()` refuses ..
    let own = wiring(vec![on_error(Exit::End, 0)]);
    assert_eq!(next(&own, 0, FATAL), Next::Settle(Settle::Failed));
    assert_eq!(
        transition(&own, &finishing(0), FATAL),
        kept(Finally::Failed),
        "nor inside `finally`"
    );
    // .. or by the loop's route.
    let mut loops = wiring(vec![node(Exit::End)]);
    loops.on_error = Some(edge(0));
    assert_eq!(next(&loops, 0, FATAL), Next::Settle(Settle::Failed));
}

#[test]
fn a_step_whose_visits_are_used_up_gives_way_to_another() {
    let wiring = wiring(vec![
        node(then(1)),
        at_most(Exit::End, 2, 2),
        at_most(Exit::End, 1, 3),
        node(Exit::End),
    ]);
    let visited = |visits: [u32; 4]| Cursor { visits: self::visits(visits), ..at(0) };
    let table = [
        ([1, 0, 0, 0], 1),
        ([1, 1, 0, 0], 1),
        ([1, 2, 0, 0], 2),
        ([1, 2, 1, 0], 3),
        ([9, 3, 1, 9], 3),
    ];
    for (visits, step) in table {
        let next = transition(&wiring, &visited(visits), DONE);
        assert_eq!(next, Next::Enter { step }, "{visits:?}");
    }
}

#[test]
fn the_limit_of_visits_holds_for_error_steps_too() {
    let wiring = wiring(vec![on_error(Exit::End, 1), at_most(Exit::End, 1, 2), node(Exit::End)]);
    let visited = |visits: [u32; 3]| Cursor { visits: self::visits(visits), ..at(0) };
    assert_eq!(transition(&wiring, &visited([1, 0, 0]), FATAL), Next::Divert { step: 1 });
    assert_eq!(transition(&wiring, &visited([1, 1, 0]), FATAL), Next::Divert { step: 2 });
}

/// Two steps that only lead to each other, each to be entered once.
fn dead_end() -> Wiring {
    wiring(vec![on_error(then(1), 1), at_most(then(0), 1, 2), at_most(Exit::End, 1, 1)])
}

#[test]
fn steps_that_give_way_only_to_each_other_are_entered_in_name_and_exhaust_the_turn() {
    let wiring = dead_end();
    let used = Cursor { visits: visits([1, 1, 1]), ..at(0) };
    // What the step before did is committed first ..
    assert_eq!(transition(&wiring, &used, DONE), Next::Enter { step: 1 });
    assert_eq!(transition(&wiring, &used, FATAL), Next::Divert { step: 1 });
    // .. then, at the boundary, the turn is found exhausted, as often as it is resumed.
    let entered = Cursor { visits: visits([1, 2, 1]), ..at(1) };
    assert!(out_of_visits(&wiring, &entered));
    assert_eq!(
        transition(&wiring, &entered, Attempted::Over(Limit::AtMost)),
        Next::Settle(Settle::Exhausted(Limit::AtMost))
    );
    let within = Cursor { visits: visits([1, 1, 1]), ..at(1) };
    assert!(!out_of_visits(&wiring, &within));
    assert!(!out_of_visits(&wiring, &at(0)));
    // Inside `finally` the end that was kept settles it.
    let used = Cursor { visits: visits([1, 1, 1]), ..finishing(0) };
    assert_eq!(transition(&wiring, &used, DONE), kept(Finally::Over(Limit::AtMost)));
    let first = Cursor { visits: visits([1, 2, 1]), ..finishing(1) };
    assert!(!out_of_visits(&wiring, &first), "`finally` itself is always entered");
}

#[test]
fn finally_comes_before_every_end_and_before_no_pause() {
    let mut wiring = wiring(vec![node(Exit::End), node(Exit::End)]);
    wiring.finally = Some(edge(1));
    let finish = |end| Next::Finish { end, step: 1 };
    let over = Attempted::Over(Limit::Tokens);
    let table = [
        (DONE, finish(Settle::Ended { branch: None })),
        (RETRYABLE, finish(Settle::Failed)),
        (FATAL, finish(Settle::Failed)),
        (over, finish(Settle::Exhausted(Limit::Tokens))),
        (Attempted::Asked, Next::Ask),
        (Attempted::Sleeps, Next::Sleep),
        (Attempted::Waits { asks: true }, Next::Settle(Settle::Interrupted)),
        (Attempted::Waits { asks: false }, Next::Settle(Settle::Waiting)),
        (Attempted::Expired { to: 0 }, Next::Enter { step: 0 }),
        (Attempted::LeaseLost, Next::Settle(Settle::LeaseLost)),
        (Attempted::Stop, Next::Settle(Settle::Stopped)),
        (Attempted::Cancel, Next::Settle(Settle::Cancelled)),
        (Attempted::Lost, Next::Settle(Settle::Failed)),
    ];
    for (attempted, expected) in table {
        assert_eq!(next(&wiring, 0, attempted), expected, "{attempted:?}");
    }
}

#[test]
fn inside_finally_every_end_settles_with_the_one_that_was_kept() {
    let mut wiring =
        wiring(vec![node(Exit::End), node(then(2)), on_error(Exit::End, 3), retried(Exit::End, 1)]);
    wiring.finally = Some(edge(1));
    wiring.on_error = Some(edge(0));
    let at = |step, attempted| transition(&wiring, &finishing(step), attempted);
    let table = [
        (1, DONE, Next::Enter { step: 2 }),
        (2, DONE, kept(Finally::Well)),
        (1, Attempted::Asked, kept(Finally::Asked)),
        (1, Attempted::Waits { asks: true }, kept(Finally::Asked)),
        // A timer is no question: the last steps may wait for one.
        (1, Attempted::Sleeps, Next::Sleep),
        (1, Attempted::Waits { asks: false }, Next::Settle(Settle::Waiting)),
        (1, Attempted::Expired { to: 3 }, Next::Enter { step: 3 }),
        (1, Attempted::LeaseLost, Next::Settle(Settle::LeaseLost)),
        // The loop's error route does not hold here, a step's own does.
        (1, FATAL, kept(Finally::Failed)),
        (2, FATAL, Next::Divert { step: 3 }),
        (3, FATAL, kept(Finally::Failed)),
        (3, RETRYABLE, Next::Retry),
        (1, Attempted::Over(Limit::Steps), kept(Finally::Over(Limit::Steps))),
        (1, Attempted::Over(Limit::Wall), kept(Finally::Over(Limit::Wall))),
        (1, Attempted::Stop, Next::Settle(Settle::Stopped)),
        (1, Attempted::Cancel, Next::Settle(Settle::Cancelled)),
        (1, Attempted::Lost, Next::Settle(Settle::Failed)),
    ];
    for (step, attempted, expected) in table {
        assert_eq!(at(step, attempted), expected, "{step} {attempted:?}");
    }
}

#[test]
fn steps_are_used_up_exactly_at_the_budget() {
    let after = |steps| Cursor { steps, ..at(0) };
    let budget = Budget::steps(3);
    assert!(!out_of_steps(&budget, &after(2)));
    assert!(out_of_steps(&budget, &after(3)));
    assert!(out_of_steps(&Budget::steps(0), &after(0)));
    assert!(!out_of_steps(&Budget::unbounded("a test"), &after(u64::MAX)));
    assert!(!out_of_steps(&Budget::default(), &after(999)));
    assert!(out_of_steps(&Budget::default(), &after(1_000)));
}

#[test]
fn finally_has_a_budget_of_its_own() {
    let finishing = |since, steps| {
        let kept = Kept { end: End::plain(), since };
        Cursor { finishing: Some(kept), steps, ..at(0) }
    };
    let small = Budget::steps(1).tokens(1);
    let budget = budget_at(&small, &finishing(5_000, 5_000));
    assert_eq!(budget, &FINALLY);
    assert!(!out_of_steps(budget, &finishing(5_000, 5_099)));
    assert!(out_of_steps(budget, &finishing(5_000, 5_100)));
    assert_eq!(budget_at(&small, &at(0)), &small);
}

#[test]
fn spending_is_measured_against_tokens_and_cost() {
    let spent = |tokens, cost_micros| Spend { usage: Usage::tokens(tokens, 0), cost_micros };
    let budget = Budget::steps(1).tokens(10).cost_micros(5);
    let table = [
        (Spend::default(), None),
        (spent(9, Some(4)), None),
        (spent(10, None), Some(Limit::Tokens)),
        (spent(0, Some(5)), Some(Limit::Cost)),
        (spent(10, Some(5)), Some(Limit::Tokens)),
    ];
    for (spent, expected) in table {
        assert_eq!(overspent(&budget, &spent), expected, "{spent:?}");
    }
    assert_eq!(overspent(&Budget::steps(1), &spent(u64::MAX, Some(u64::MAX))), None);
}
