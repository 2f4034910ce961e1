//! The worker: runs steps in the interpreter, and finds out what they did.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use monty_types::MontyObject;

use super::Monty;
use super::functions::functions;
use super::names::{Names, groups, unit};
use super::session::{OWN, Session, apart};
use super::values::{Form, Function, Held, Kind, from_json, to_json};
use crate::exec::{
    Blob, Caps, Ending, ExecError, Executor, KillHandle, Load, Output, Ran, RunStep, Swept, Sync,
    Synced, Unstash, Value, Wrote,
};
use crate::model::{Entity, Unit, UnitKey};
use crate::scan::{Scan, scan};

/// A worker in this process, which [`Monty`] starts.
pub struct MontyWorker {
    kind: Monty,
    fingerprint: String,
    session: Session,
    /// What is bound, as it was last seen.
    names: Names,
    /// The unit of each name.
    units: HashMap<Arc<str>, UnitKey>,
    /// Every name that may be bound.
    known: BTreeSet<Arc<str>>,
    /// What the bodies of all functions and classes load.
    loads: BTreeSet<Arc<str>>,
    /// Units that were moved out of the way: their names, and where they are.
    aside: HashMap<UnitKey, Vec<Aside>>,
    /// Counts the places for what is moved out of the way. The interpreter keeps each name that it has seen.
    places: usize,
    free: Vec<String>,
}

struct Aside {
    name: Arc<str>,
    place: String,
    function: Option<Function>,
}

impl MontyWorker {
    pub(super) fn new(kind: Monty, session: Session) -> Self {
        Self {
            fingerprint: kind.fingerprint(),
            kind,
            session,
            names: Names::new(),
            units: HashMap::new(),
            known: BTreeSet::new(),
            loads: BTreeSet::new(),
            aside: HashMap::new(),
            places: 0,
            free: Vec::new(),
        }
    }

    /// What a name is bound to, if it is.
    fn look(&mut self, name: &str) -> Result<Option<(MontyObject, Vec<Arc<str>>)>, ExecError> {
        let object = match self.session.own(name, Vec::new()) {
            Ok(object) => object,
            Err(error) if error.exc_type() == monty_types::ExcType::NameError => return Ok(None),
            Err(error) => return Err(ExecError::new(error.summary())),
        };
        // What holds no other object needs no walk.
        let parts = match object {
            MontyObject::List(_)
            | MontyObject::Dict(_)
            | MontyObject::Set(_)
            | MontyObject::Tuple(_)
            | MontyObject::NamedTuple { .. } => {
                self.session.must(&format!("{OWN}walk({name})"), Vec::new())?
            }
            _ => MontyObject::None,
        };
        let parts = match parts {
            MontyObject::List(parts) => parts.iter().map(|part| part.to_string().into()).collect(),
            _ => Vec::new(),
        };
        Ok(Some((object, parts)))
    }

    /// Looks at every name. Those that `made` names are new functions.
    fn look_around(&mut self, made: &BTreeMap<Arc<str>, Function>) -> Result<Names, ExecError> {
        let mut names = Names::new();
        for name in self.known.clone() {
            let Some((object, parts)) = self.look(&name)? else { continue };
            let is_function = |of: &str| match &object {
                MontyObject::Repr(text) => text.starts_with(&format!("<function '{of}' at ")),
                _ => false,
            };
            let before = self.names.get(&name).and_then(|held| held.function.as_ref());
            let function = made.get(&name).or(before).filter(|_| is_function(&name)).cloned();
            names.insert(name, Held { object, parts, function });
        }
        Ok(names)
    }

    /// Notes the names of a step, before it runs.
    fn expect(&mut self, scan: &Scan) {
        let bound = [&scan.writes, &scan.deferred_writes, &scan.rebinds];
        let bound = bound.into_iter().flat_map(|names| names.iter()).filter(|it| is_free(it));
        self.known.extend(bound.map(Arc::from));
        let loads = scan.summaries.values().flat_map(|names| names.iter());
        self.loads.extend(loads.chain(scan.deferred_reads.iter()).map(Arc::from));
    }

    /// What a step read: what its source reads, and what the functions load that it may call.
    fn reads(&self, scan: &Scan) -> BTreeSet<Entity> {
        let mut found: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut rest: Vec<Arc<str>> =
            scan.reads.iter().chain(scan.builtin_reads.iter()).map(Arc::from).collect();
        // A body that the step defines may run in it.
        rest.extend(scan.deferred_reads.iter().map(Arc::from));
        let mut is_unknown = false;
        while let Some(name) = rest.pop() {
            if !found.insert(name.clone()) {
                continue;
            }
            let Some(held) = self.names.get(&name) else { continue };
            match &held.function {
                Some(function) => rest.extend(function.loads.iter().cloned()),
                None if held.kind() == Kind::Hidden && !is_unknown => {
                    is_unknown = true;
                    rest.extend(self.loads.iter().cloned());
                }
                None => {}
            }
        }
        if scan.opaque {
            return std::iter::once(Entity::Everything)
                .chain(found.into_iter().map(Entity::Name))
                .collect();
        }
        // A builtin that no step has bound is none of the program's.
        let builtin =
            |name: &Arc<str>| scan.builtin_reads.contains(name) && !self.names.contains_key(name);
        found.into_iter().filter(|name| !builtin(name)).map(Entity::Name).collect()
    }

    /// What a step changed, between two looks.
    fn wrote(&self, scan: &Scan, reads: &BTreeSet<Entity>, now: &Names) -> BTreeMap<Entity, Wrote> {
        let mut wrote = BTreeMap::new();
        for name in self.names.keys().filter(|name| !now.contains_key(*name)) {
            wrote.insert(Entity::Name(name.clone()), Wrote::Deleted);
        }
        let binds = |name: &str| {
            [&scan.writes, &scan.deferred_writes, &scan.rebinds]
                .into_iter()
                .any(|names| names.contains(name))
        };
        for (name, held) in now {
            let entity = Entity::Name(name.clone());
            let how = match self.names.get(name) {
                None => Some(Wrote::Bound),
                Some(_) if scan.writes.contains(name) => Some(Wrote::Bound),
                Some(before) if changed(before, held) => match binds(name) {
                    true => Some(Wrote::Bound),
                    false => Some(Wrote::Mutated),
                },
                // Whether its state changed cannot be seen.
                Some(_) if held.kind() == Kind::Hidden && reads.contains(&entity) => {
                    Some(Wrote::Mutated)
                }
                Some(_) => None,
            };
            if let Some(how) = how {
                wrote.insert(entity, how);
            }
        }
        wrote
    }

    /// The units that are new since a look: those with a name that was written, or other names than before.
    fn regroup(
        &mut self,
        seq: u64,
        wrote: &BTreeMap<Entity, Wrote>,
        now: Names,
    ) -> Vec<(Unit, Option<Blob>)> {
        self.names = now;
        let limit = self.session.limits().value;
        let (mut made, mut units) = (Vec::new(), HashMap::new());
        for group in groups(&self.names) {
            let keys: BTreeSet<_> = group.iter().map(|name| self.units.get(name)).collect();
            let is_new = group.iter().any(|name| wrote.contains_key(&Entity::Name(name.clone())));
            let same = match (keys.len(), keys.first()) {
                // All of one unit, which has no other name that is bound.
                (1, Some(Some(key))) if !is_new => {
                    let of_it = self
                        .units
                        .iter()
                        .filter(|(name, one)| one == key && self.names.contains_key(&**name));
                    (of_it.count() == group.len()).then(|| (*key).clone())
                }
                _ => None,
            };
            let key = same.clone().unwrap_or_else(|| format!("{seq}.{}", made.len()).into());
            units.extend(group.iter().map(|name| (name.clone(), key.clone())));
            if same.is_none() {
                made.push(unit(key, &group, &self.names, limit));
            }
        }
        self.units = units;
        made
    }

    /// Unbinds a name. The language has no statement for that, but the end of a handler does it.
    fn unbind(&mut self, name: &str) -> Result<(), ExecError> {
        let text = format!("try:\n    raise {OWN}error\nexcept {OWN}error as {name}:\n    pass");
        self.session.must(&text, Vec::new())?;
        self.names.remove(name);
        self.units.remove(name);
        Ok(())
    }

    fn stash(&mut self, key: &UnitKey) -> Result<(), ExecError> {
        let names = self.units.iter().filter(|(_, unit)| *unit == key);
        let mut names: Vec<_> = names.map(|(name, _)| name.clone()).collect();
        names.sort();
        let mut aside = Vec::new();
        for name in names {
            let Some(held) = self.names.get(&name) else { continue };
            let function = held.function.clone();
            let place = self.free.pop().unwrap_or_else(|| {
                self.places += 1;
                format!("{OWN}{}", self.places)
            });
            self.session.must(&format!("{place} = {name}"), Vec::new())?;
            self.unbind(&name)?;
            aside.push(Aside { name, place, function });
        }
        self.aside.insert(key.clone(), aside);
        Ok(())
    }

    fn unstash(&mut self, unit: &Unstash) -> Result<(), ExecError> {
        for Aside { name, place, function } in self.aside.remove(&unit.key).unwrap_or_default() {
            if unit.members.contains(&Entity::Name(name.clone())) {
                self.session.must(&format!("{name} = {place}"), Vec::new())?;
                self.bound(&name, function, &unit.key)?;
            }
            self.unbind(&place)?;
            self.free.push(place);
        }
        Ok(())
    }

    /// Notes that a name is bound from outside of a step.
    fn bound(
        &mut self,
        name: &Arc<str>,
        function: Option<Function>,
        key: &UnitKey,
    ) -> Result<(), ExecError> {
        self.known.insert(name.clone());
        if let Some((object, parts)) = self.look(name)? {
            self.names.insert(name.clone(), Held { object, parts, function });
            self.units.insert(name.clone(), key.clone());
        }
        Ok(())
    }

    /// Loads a stored unit: binds its names to its one object.
    fn load(&mut self, load: &Load) -> Result<(), String> {
        let form: Form = serde_json::from_slice(&load.blob).map_err(|error| error.to_string())?;
        let names: Vec<Arc<str>> =
            load.take.iter().filter_map(Entity::as_name).map(Arc::from).collect();
        let Some((first, others)) = names.split_first() else { return Ok(()) };
        let function = match form {
            Form::Value(object) => {
                let inputs = vec![(first.to_string(), object)];
                self.session.own("pass", inputs).map_err(|error| error.summary())?;
                None
            }
            Form::Module(module) => {
                let text = format!("import {module} as {first}");
                self.session.own(&text, Vec::new()).map_err(|error| error.summary())?;
                None
            }
            Form::Function(function) => {
                self.session
                    .define(&function.step, &function.text)
                    .map_err(|error| error.summary())?;
                self.loads.extend(function.loads.iter().cloned());
                Some(function)
            }
        };
        for other in others {
            let text = format!("{other} = {first}");
            self.session.own(&text, Vec::new()).map_err(|error| error.summary())?;
        }
        for name in &names {
            self.bound(name, function.clone(), &load.key).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Binds an input.
    fn bind(&mut self, name: &str, value: &str) -> Ending {
        let json = serde_json::from_str(value).ok();
        let Some(object) = json.as_ref().and_then(from_json) else {
            return Ending::Unsupported { feature: format!("the value of the input `{name}`") };
        };
        match self.session.own("pass", vec![(name.to_owned(), object)]) {
            Ok(_) => Ending::Ok,
            Err(error) => Ending::Unsupported { feature: error.summary() },
        }
    }
}

/// Whether a step uses a name of the worker's own, which it would not see as one of the program's.
fn uses_own(scan: &Scan) -> bool {
    let sets = [&scan.reads, &scan.writes, &scan.deferred_reads, &scan.deferred_writes];
    sets.into_iter().flat_map(|names| names.iter()).any(|name| !is_free(name))
}

fn own_names() -> Ending {
    Ending::Unsupported { feature: format!("names that begin with `{OWN}`") }
}

/// Whether a name is none of the worker's own.
fn is_free(name: &str) -> bool {
    !name.starts_with(OWN)
}

fn changed(before: &Held, now: &Held) -> bool {
    before.parts != now.parts || before.fingerprint() != now.fingerprint()
}

/// What runs on a [large stack](apart).
impl MontyWorker {
    fn sync_here(&mut self, request: &Sync) -> Result<Synced, ExecError> {
        for name in request.drop.iter().filter_map(Entity::as_name) {
            if self.names.contains_key(name) {
                self.unbind(name)?;
            }
        }
        for key in &request.stash {
            self.stash(key)?;
        }
        for key in &request.forget {
            for Aside { place, .. } in self.aside.remove(key).unwrap_or_default() {
                self.unbind(&place)?;
                self.free.push(place);
            }
        }
        for unit in &request.unstash {
            self.unstash(unit)?;
        }
        let mut synced = Synced::default();
        for load in &request.load {
            if let Err(why) = self.load(load) {
                synced.failed.push((load.key.clone(), why));
            }
        }
        Ok(synced)
    }

    fn run_here(&mut self, request: &RunStep<'_>) -> Result<Ran, ExecError> {
        let begun = Instant::now();
        let mut scanned = scan(request.source);
        if let Some((name, _)) = request.bind {
            scanned.writes = std::iter::once(name).collect();
        }
        self.expect(&scanned);
        let reads = self.reads(&scanned);
        let (ending, stdout) = match request.bind {
            Some((name, value)) => (self.bind(name, value), Output::default()),
            None if uses_own(&scanned) => (own_names(), Output::default()),
            None => self.session.run(request.step, request.source),
        };
        let wall = begun.elapsed();
        let now = self.look_around(&functions(request.step, request.source, &scanned))?;
        let wrote = self.wrote(&scanned, &reads, &now);
        let mut ran = Ran { reads, stdout, ..Ran::ended(ending, wall) };
        match ran.ending.is_ok() {
            true => {
                ran.units = self.regroup(request.seq, &wrote, now);
                ran.wrote = wrote;
            }
            false => {
                self.names = now;
                ran.dirty = wrote.into_keys().collect();
            }
        }
        Ok(ran)
    }

    fn sweep_here(&mut self) -> Result<Swept, ExecError> {
        let now = self.look_around(&BTreeMap::new())?;
        let limit = self.session.limits().value;
        let units = groups(&now).into_iter().enumerate();
        let units = units.map(|(at, group)| unit(format!("s.{at}").into(), &group, &now, limit).0);
        Ok(Swept { units: units.collect(), unattributed: Vec::new() })
    }

    fn value_here(&mut self, name: &str) -> Result<Value, ExecError> {
        let not_live = || ExecError::new(format!("`{name}` is not live"));
        let (object, _) = match self.names.contains_key(name) {
            true => self.look(name)?.ok_or_else(not_live)?,
            false => return Err(not_live()),
        };
        let mut repr = object.py_repr();
        if repr.len() > REPR {
            repr.truncate(repr.floor_char_boundary(REPR));
            repr.push_str("...");
        }
        Ok(Value { repr, type_name: object.type_name().to_owned(), json: to_json(&object) })
    }
}

impl Executor for MontyWorker {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn caps(&self) -> Caps {
        Monty::caps()
    }

    fn fresh(&mut self) -> Result<(), ExecError> {
        let session = Session::start(*self.session.limits());
        let session = session.map_err(|error| ExecError::new(error.to_string()))?;
        *self = Self::new(self.kind.clone(), session);
        Ok(())
    }

    fn sync(&mut self, request: &Sync) -> Result<Synced, ExecError> {
        apart(|| self.sync_here(request))
    }

    fn run(&mut self, request: &RunStep<'_>) -> Result<Ran, ExecError> {
        apart(|| self.run_here(request))
    }

    fn sweep(&mut self) -> Result<Swept, ExecError> {
        apart(|| self.sweep_here())
    }

    fn value(&mut self, name: &str) -> Result<Value, ExecError> {
        apart(|| self.value_here(name))
    }

    /// It kills nothing: see [`Caps::interrupts`].
    fn kill_handle(&self) -> KillHandle {
        KillHandle::new(|| {})
    }

    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError> {
        let session = Session::start(*self.session.limits());
        let session = session.map_err(|error| ExecError::new(error.to_string()))?;
        Ok(Box::new(Self::new(self.kind.clone(), session)))
    }
}

/// The longest text of a value.
const REPR: usize = 10_000;

/// Without the values.
impl fmt::Debug for MontyWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MontyWorker")
            .field("session", &self.session)
            .field("names", &self.names.len())
            .finish_non_exhaustive()
    }
}
