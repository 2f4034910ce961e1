//! Workers: fresh ones, lost ones, twins.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::exec::Ending;

pub(super) fn fingerprint_is_of_the_kind(sources: &Sources, start: Start<'_>) -> Checked {
    let (mut one, two) = (Worker::start(start)?, Worker::start(start)?);
    let before = one.executor.fingerprint().to_owned();
    ensure(!before.is_empty() && before == two.executor.fingerprint(), || {
        format!("`{before}` and `{}` are of one kind", two.executor.fingerprint())
    })?;
    one.ok(sources.bind)?;
    one.executor.fresh().map_err(|error| error.to_string())?;
    ensure(one.executor.fingerprint() == before, || "it changed with a fresh worker".to_owned())?;
    kept()
}

pub(super) fn fresh_holds_nothing(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    worker.ok(sources.bind)?;
    worker.executor.fresh().map_err(|error| error.to_string())?;
    worker.lacks("x")?;
    kept()
}

pub(super) fn lost_worker_says_so(sources: &Sources, start: Start<'_>) -> Checked {
    let Some(source) = sources.crash else { return Ok(NO_SOURCE) };
    let mut worker = Worker::start(start)?;
    worker.ok(sources.bind)?;
    let ran = worker.run(source)?;
    ensure(ran.lost && matches!(ran.ending, Ending::Crashed { .. }), || {
        format!("it ended: {} (lost: {})", ran.ending, ran.lost)
    })?;
    // The next call starts a fresh worker.
    worker.lacks("x")?;
    worker.ok(sources.bind)?;
    kept()
}

pub(super) fn kill_ends_the_step(sources: &Sources, start: Start<'_>) -> Checked {
    let Some(source) = sources.endless else { return Ok(NO_SOURCE) };
    let mut worker = Worker::start(start)?;
    if !worker.executor.caps().interrupts {
        return Ok(Held::Skipped("it cannot be interrupted"));
    }
    let (handle, ended) = (worker.executor.kill_handle(), Arc::new(AtomicBool::new(false)));
    let killer = std::thread::spawn({
        let ended = ended.clone();
        move || {
            // Nothing reports when the step runs. Too early, and the worker is lost before it.
            let mut pause = Duration::from_millis(20);
            while !ended.load(Ordering::Acquire) {
                std::thread::park_timeout(pause);
                pause *= 2;
                handle.kill();
            }
        }
    });
    let ran = loop {
        match worker.try_run(source) {
            Err(error) if error.lost() => {}
            ran => break ran,
        }
    };
    ended.store(true, Ordering::Release);
    killer.thread().unpark();
    let joined = killer.join();
    let ran = ran.map_err(|error| error.to_string())?;
    ensure(joined.is_ok() && ran.lost && matches!(ran.ending, Ending::Crashed { .. }), || {
        format!("it ended: {} (lost: {})", ran.ending, ran.lost)
    })?;
    kept()
}

pub(super) fn twin_is_fresh_and_equal(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    if !worker.executor.caps().twins {
        return Ok(Held::Skipped("it has no twins"));
    }
    let first = own(&worker.ok(sources.list)?, "xs")?;
    let twin = worker.executor.twin().map_err(|error| error.to_string())?;
    let mut twin = Worker { executor: twin, seq: 0 };
    ensure(twin.executor.fingerprint() == worker.executor.fingerprint(), || {
        "the twin is of another kind".to_owned()
    })?;
    twin.lacks("xs")?;
    let same = own(&twin.ok(sources.list)?, "xs")?;
    ensure(first == same, || "equal lists have two fingerprints".to_owned())?;
    twin.ok(sources.append)?;
    drop(twin);
    worker.shows("xs", "[1]")?;
    kept()
}
