//! What a step reports.
use std::collections::BTreeSet;

use super::*;
use crate::exec::Ending;

pub(super) fn binding_is_reported(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    let ran = worker.ok(sources.bind)?;
    wrote(&ran, "x", Wrote::Bound)?;
    unit(&ran, "x")?;
    worker.shows("x", "1")?;
    kept()
}

pub(super) fn read_is_reported(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    worker.ok(sources.bind)?;
    let ran = worker.ok(sources.read)?;
    ensure(ran.reads.contains(&Entity::name("x")), || {
        "the read of `x` is not reported".to_owned()
    })?;
    wrote(&ran, "y", Wrote::Bound)?;
    kept()
}

pub(super) fn own_binding_is_no_read(sources: &Sources, start: Start<'_>) -> Checked {
    let ran = Worker::start(start)?.ok(sources.bind_both)?;
    ensure(!ran.reads.contains(&Entity::name("x")), || {
        "the step bound `x` itself, and it is reported as read".to_owned()
    })?;
    kept()
}

pub(super) fn missing_name_is_a_read(sources: &Sources, start: Start<'_>) -> Checked {
    let ran = Worker::start(start)?.run(sources.read)?;
    ensure(matches!(ran.ending, Ending::Raised { .. }), || format!("it ended: {}", ran.ending))?;
    ensure(ran.reads.contains(&Entity::name("x")), || {
        "the step failed because `x` is not bound, and does not run again once it is".to_owned()
    })?;
    kept()
}

pub(super) fn deletion_is_reported(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    worker.ok(sources.bind)?;
    wrote(&worker.ok(sources.delete)?, "x", Wrote::Deleted)?;
    worker.lacks("x")?;
    kept()
}

pub(super) fn change_in_place_is_reported(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    let before = own(&worker.ok(sources.list)?, "xs")?;
    let ran = worker.ok(sources.append)?;
    wrote(&ran, "xs", Wrote::Mutated)?;
    ensure(own(&ran, "xs")? != before, || "the fingerprint of `xs` is as before".to_owned())?;
    worker.shows("xs", "[1,2]")?;
    kept()
}

pub(super) fn shared_objects_are_one_unit(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    for source in [sources.share, sources.append] {
        let ran = worker.ok(source)?;
        let ((one, left), (two, right)) = (unit(&ran, "xs")?, unit(&ran, "ys")?);
        ensure(one.key == two.key, || format!("`xs` and `ys` are in two units after `{source}`"))?;
        let pair = BTreeSet::from([left, right]);
        let shares = one.share.iter().any(|(from, to, _)| BTreeSet::from([*from, *to]) == pair);
        ensure(shares, || format!("the unit does not say what they share after `{source}`"))?;
    }
    kept()
}

pub(super) fn keys_are_new(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    let (one, two) = (worker.ok(sources.bind)?, worker.ok(sources.list)?);
    let (one, two) = (&unit(&one, "x")?.0.key, &unit(&two, "xs")?.0.key);
    ensure(one != two, || format!("two units have the key `{one}`"))?;
    kept()
}

pub(super) fn equal_content_has_equal_fingerprints(sources: &Sources, start: Start<'_>) -> Checked {
    let (mut one, mut two) = (Worker::start(start)?, Worker::start(start)?);
    let (first, same) = (own(&one.ok(sources.list)?, "xs")?, own(&two.ok(sources.list)?, "xs")?);
    ensure(first == same, || "equal lists in two workers have two fingerprints".to_owned())?;
    let again = own(&one.ok(sources.list)?, "xs")?;
    ensure(first == again, || "a list that is made again has another fingerprint".to_owned())?;
    kept()
}

pub(super) fn failure_names_what_is_dirty(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    worker.ok(sources.list)?;
    let ran = worker.run(sources.append_fails)?;
    ensure(matches!(ran.ending, Ending::Raised { .. }), || format!("it ended: {}", ran.ending))?;
    ensure(!ran.lost, || "the worker is lost".to_owned())?;
    let xs = Entity::name("xs");
    ensure(ran.dirty.contains(&xs) || ran.wrote.contains_key(&xs), || {
        "the failed step changed `xs`, and it is not reported as dirty".to_owned()
    })?;
    kept()
}

pub(super) fn input_is_bound(_: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    let bind = Some(("k", "[1,2]"));
    let step = RunStep { seq: 1, step: "input/k", source: "", bind, readings: None };
    let ran = worker.executor.run(&step).map_err(|error| error.to_string())?;
    ensure(ran.ending.is_ok(), || format!("it ended: {}", ran.ending))?;
    wrote(&ran, "k", Wrote::Bound)?;
    worker.shows("k", "[1,2]")?;
    kept()
}

pub(super) fn output_is_kept(sources: &Sources, start: Start<'_>) -> Checked {
    let ran = Worker::start(start)?.ok(sources.print)?;
    ensure(ran.stdout.bytes == b"1\n", || {
        format!("the output is {:?}", String::from_utf8_lossy(&ran.stdout.bytes))
    })?;
    kept()
}

pub(super) fn untracked_is_reported(sources: &Sources, start: Start<'_>) -> Checked {
    let Some(source) = sources.untracked else { return Ok(NO_SOURCE) };
    let ran = Worker::start(start)?.ok(source)?;
    ensure(!ran.untracked.is_empty(), || "no untracked operation is reported".to_owned())?;
    kept()
}

pub(super) fn readings_are_replayed(sources: &Sources, start: Start<'_>) -> Checked {
    let Some(source) = sources.clock else { return Ok(NO_SOURCE) };
    let (mut one, mut two) = (Worker::start(start)?, Worker::start(start)?);
    // The clock of the second worker differs.
    two.ok(source)?;
    let first = one.ok(source)?;
    ensure(first.clock && !first.readings.is_empty(), || "no reading is reported".to_owned())?;
    let readings = Some(&*first.readings);
    let step = RunStep { seq: 9, step: "s", source, bind: None, readings };
    let again = two.executor.run(&step).map_err(|error| error.to_string())?;
    ensure(again.readings == first.readings, || {
        format!("{:?} became {:?}", first.readings, again.readings)
    })?;
    ensure(own(&again, "t")? == own(&first, "t")?, || "another value was read".to_owned())?;
    kept()
}

pub(super) fn unserializable_says_so(sources: &Sources, start: Start<'_>) -> Checked {
    let Some(source) = sources.unserializable else { return Ok(NO_SOURCE) };
    let mut worker = Worker::start(start)?;
    worker.ok(sources.list)?;
    let ran = worker.ok(source)?;
    let (unit, _) = unit(&ran, "it")?;
    ensure(unit.unserializable.is_some(), || {
        "the unit does not say that it has no form".to_owned()
    })?;
    ensure(load(&ran, "it").is_err(), || "it has a stored form all the same".to_owned())?;
    kept()
}
