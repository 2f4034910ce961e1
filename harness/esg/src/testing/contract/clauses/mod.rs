//! Every promise, by name.
mod steps;
mod values;
mod workers;

use super::Sources;
use crate::exec::{Executor, Load, Ran, RunStep, Sync, Wrote};
use crate::model::{Entity, Fingerprint, Unit};

/// The result of a clause.
pub(super) enum Held {
    Kept,
    Skipped(&'static str),
}

type Started = Box<dyn Executor>;
type Start<'a> = &'a dyn Fn() -> Result<Started, String>;
type Checked = Result<Held, String>;
type Clause = fn(&Sources, Start<'_>) -> Checked;

pub(super) const CLAUSES: &[(&str, Clause)] = &[
    ("fingerprint-is-of-the-kind", workers::fingerprint_is_of_the_kind),
    ("binding-is-reported", steps::binding_is_reported),
    ("read-is-reported", steps::read_is_reported),
    ("own-binding-is-no-read", steps::own_binding_is_no_read),
    ("missing-name-is-a-read", steps::missing_name_is_a_read),
    ("deletion-is-reported", steps::deletion_is_reported),
    ("change-in-place-is-reported", steps::change_in_place_is_reported),
    ("shared-objects-are-one-unit", steps::shared_objects_are_one_unit),
    ("keys-are-new", steps::keys_are_new),
    ("equal-content-has-equal-fingerprints", steps::equal_content_has_equal_fingerprints),
    ("failure-names-what-is-dirty", steps::failure_names_what_is_dirty),
    ("input-is-bound", steps::input_is_bound),
    ("output-is-kept", steps::output_is_kept),
    ("untracked-is-reported", steps::untracked_is_reported),
    ("readings-are-recorded-and-replayed", steps::readings_are_replayed),
    ("unserializable-says-so", steps::unserializable_says_so),
    ("dropped-is-gone", values::dropped_is_gone),
    ("stashed-comes-back", values::stashed_comes_back),
    ("stored-loads-elsewhere", values::stored_loads_elsewhere),
    ("sharing-is-restored", values::sharing_is_restored),
    ("damaged-form-fails-alone", values::damaged_form_fails_alone),
    ("sweep-shows-everything", values::sweep_shows_everything),
    ("absent-value-is-an-error", values::absent_value_is_an_error),
    ("fresh-holds-nothing", workers::fresh_holds_nothing),
    ("lost-worker-says-so", workers::lost_worker_says_so),
    ("kill-ends-the-step", workers::kill_ends_the_step),
    ("twin-is-fresh-and-equal", workers::twin_is_fresh_and_equal),
    ("files-are-tracked", values::files_are_tracked),
];

/// Fails unless the condition holds.
fn ensure(so: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if so { Ok(()) } else { Err(otherwise()) }
}

/// One worker with its count of steps.
struct Worker {
    executor: Started,
    seq: u64,
}

impl Worker {
    fn start(start: Start<'_>) -> Result<Self, String> {
        Ok(Self { executor: start()?, seq: 0 })
    }

    fn try_run(&mut self, source: &str) -> Result<Ran, crate::exec::ExecError> {
        self.seq += 1;
        let step = RunStep { seq: self.seq, step: "s", source, bind: None, readings: None };
        self.executor.run(&step)
    }

    fn run(&mut self, source: &str) -> Result<Ran, String> {
        self.try_run(source).map_err(|error| format!("`{source}`: {error}"))
    }

    /// Runs a step that succeeds.
    fn ok(&mut self, source: &str) -> Result<Ran, String> {
        let ran = self.run(source)?;
        ensure(ran.ending.is_ok() && !ran.lost, || format!("`{source}` ended: {}", ran.ending))?;
        Ok(ran)
    }

    fn sync(&mut self, sync: &Sync) -> Result<(), String> {
        let synced = self.executor.sync(sync).map_err(|error| error.to_string())?;
        ensure(synced.failed.is_empty(), || format!("failed to load {:?}", synced.failed))
    }

    fn shows(&mut self, name: &str, json: &str) -> Result<(), String> {
        let value = self.executor.value(name).map_err(|error| format!("`{name}`: {error}"))?;
        let found = value.json.map(|json| json.to_string());
        ensure(found.as_deref() == Some(json), || format!("`{name}` is {found:?}, expected {json}"))
    }

    fn lacks(&mut self, name: &str) -> Result<(), String> {
        match self.executor.value(name) {
            Err(error) if !error.lost() => Ok(()),
            Err(error) => Err(format!("asking for the absent `{name}` lost the worker: {error}")),
            Ok(value) => Err(format!("`{name}` should be absent and is {}", value.repr)),
        }
    }
}

/// The unit of a name, with the index of its member.
fn unit<'r>(ran: &'r Ran, name: &str) -> Result<(&'r Unit, usize), String> {
    let entity = Entity::name(name);
    let at = |unit: &Unit| unit.members.iter().position(|member| member.entity == entity);
    let found = ran.units.iter().find_map(|(unit, _)| Some((unit, at(unit)?)));
    found.ok_or_else(|| format!("no unit has `{name}`"))
}

fn own(ran: &Ran, name: &str) -> Result<Fingerprint, String> {
    unit(ran, name).map(|(unit, at)| unit.members[at].own)
}

/// How to load the unit of a name.
fn load(ran: &Ran, name: &str) -> Result<Load, String> {
    let entity = Entity::name(name);
    let has = |unit: &Unit| unit.members.iter().any(|member| member.entity == entity);
    let Some((unit, blob)) = ran.units.iter().find(|(unit, _)| has(unit)) else {
        return Err(format!("no unit has `{name}`"));
    };
    let members: Vec<_> = unit.members.iter().map(|member| member.entity.clone()).collect();
    Ok(Load {
        key: unit.key.clone(),
        take: members.clone(),
        members,
        blob: blob.clone().ok_or_else(|| format!("the unit of `{name}` has no stored form"))?,
        refs: unit.refs.clone(),
    })
}

fn wrote(ran: &Ran, name: &str, how: Wrote) -> Result<(), String> {
    let found = ran.wrote.get(&Entity::name(name));
    ensure(found == Some(&how), || format!("`{name}` is reported as {found:?}, not as {how:?}"))
}

fn kept() -> Checked {
    Ok(Held::Kept)
}

const NO_SOURCE: Held = Held::Skipped("the language has no source for it");
