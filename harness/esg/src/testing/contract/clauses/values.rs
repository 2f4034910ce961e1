//! Moving values.
use std::sync::Arc;

use super::*;
use crate::exec::Unstash;

pub(super) fn dropped_is_gone(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    worker.ok(sources.bind)?;
    worker.sync(&Sync { drop: vec![Entity::name("x")], ..Sync::default() })?;
    worker.lacks("x")?;
    let ran = worker.run(sources.read)?;
    ensure(!ran.ending.is_ok(), || "a step still finds it".to_owned())?;
    kept()
}

pub(super) fn stashed_comes_back(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    let ran = worker.ok(sources.share)?;
    let (unit, _) = unit(&ran, "xs")?;
    let key = unit.key.clone();
    worker.sync(&Sync { stash: vec![key.clone()], ..Sync::default() })?;
    worker.lacks("xs")?;
    let members = unit.members.iter().map(|member| member.entity.clone()).collect();
    worker.sync(&Sync { unstash: vec![Unstash { key, members }], ..Sync::default() })?;
    worker.ok(sources.append)?;
    worker.shows("ys", "[1,2]")?;
    kept()
}

const NO_RESTORE: Held = Held::Skipped("it restores no values");

pub(super) fn stored_loads_elsewhere(sources: &Sources, start: Start<'_>) -> Checked {
    let (mut one, mut two) = (Worker::start(start)?, Worker::start(start)?);
    if !one.executor.caps().restores {
        return Ok(NO_RESTORE);
    }
    let ran = one.ok(sources.list)?;
    two.sync(&Sync { load: vec![load(&ran, "xs")?], ..Sync::default() })?;
    two.shows("xs", "[1]")?;
    let swept = two.executor.sweep().map_err(|error| error.to_string())?;
    let mut members = swept.units.iter().flat_map(|unit| &unit.members);
    let xs = members.find(|member| member.entity == Entity::name("xs"));
    ensure(xs.map(|xs| xs.own) == Some(own(&ran, "xs")?), || {
        "the loaded value has another fingerprint than the stored one".to_owned()
    })?;
    kept()
}

pub(super) fn sharing_is_restored(sources: &Sources, start: Start<'_>) -> Checked {
    let (mut one, mut two) = (Worker::start(start)?, Worker::start(start)?);
    if !one.executor.caps().restores {
        return Ok(NO_RESTORE);
    }
    let ran = one.ok(sources.share)?;
    two.sync(&Sync { load: vec![load(&ran, "xs")?], ..Sync::default() })?;
    two.ok(sources.append)?;
    two.ok(sources.length)?;
    two.shows("n", "2")?;
    kept()
}

pub(super) fn damaged_form_fails_alone(sources: &Sources, start: Start<'_>) -> Checked {
    let (mut one, mut two) = (Worker::start(start)?, Worker::start(start)?);
    if !one.executor.caps().restores {
        return Ok(NO_RESTORE);
    }
    let (x, xs) = (load(&one.ok(sources.bind)?, "x")?, load(&one.ok(sources.list)?, "xs")?);
    let key = xs.key.clone();
    let damaged = Load { blob: Arc::from(&b"\xffdamaged"[..]), ..xs };
    let sync = Sync { load: vec![damaged, x], ..Sync::default() };
    let synced = two.executor.sync(&sync).map_err(|error| error.to_string())?;
    let failed: Vec<_> = synced.failed.iter().map(|(key, _)| key).collect();
    ensure(failed == [&key], || format!("{failed:?} failed to load, expected `{key}`"))?;
    two.lacks("xs")?;
    two.shows("x", "1")?;
    kept()
}

pub(super) fn sweep_shows_everything(sources: &Sources, start: Start<'_>) -> Checked {
    let mut worker = Worker::start(start)?;
    let ran = worker.ok(sources.share)?;
    worker.ok(sources.bind)?;
    let swept = worker.executor.sweep().map_err(|error| error.to_string())?;
    ensure(swept.unattributed.is_empty(), || format!("unattributed: {:?}", swept.unattributed))?;
    let members: Vec<_> = swept.units.iter().flat_map(|unit| &unit.members).collect();
    for name in ["x", "xs", "ys"] {
        let found = members.iter().find(|member| member.entity == Entity::name(name));
        let found = found.ok_or_else(|| format!("`{name}` is missing"))?;
        if name != "x" {
            ensure(found.own == own(&ran, name)?, || {
                format!("`{name}` has another fingerprint than in the run")
            })?;
        }
    }
    kept()
}

pub(super) fn absent_value_is_an_error(_: &Sources, start: Start<'_>) -> Checked {
    Worker::start(start)?.lacks("x")?;
    kept()
}

pub(super) fn files_are_tracked(sources: &Sources, start: Start<'_>) -> Checked {
    let Some(source) = sources.write_file else { return Ok(NO_SOURCE) };
    let (mut one, mut two) = (Worker::start(start)?, Worker::start(start)?);
    if !one.executor.caps().files {
        return Ok(Held::Skipped("it does not track files"));
    }
    let ran = one.ok(source)?;
    let file = Entity::file("f");
    ensure(ran.wrote.contains_key(&file), || "the file is not reported as written".to_owned())?;
    let Some((unit, Some(blob))) =
        ran.units.iter().find(|(unit, _)| unit.members.iter().any(|one| one.entity == file))
    else {
        return Err("no unit with a stored form has the file".to_owned());
    };
    let load = Load {
        key: unit.key.clone(),
        members: vec![file.clone()],
        take: vec![file.clone()],
        blob: blob.clone(),
        refs: Vec::new(),
    };
    two.sync(&Sync { load: vec![load], ..Sync::default() })?;
    let swept = two.executor.sweep().map_err(|error| error.to_string())?;
    let mut members = swept.units.iter().flat_map(|unit| &unit.members);
    ensure(members.any(|member| member.entity == file), || {
        "the file is not there after it was loaded".to_owned()
    })?;
    kept()
}
