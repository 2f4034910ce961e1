//! A worker for a few lines of Python, in this process.
mod language;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde_json::{Value as Json, json};

use crate::exec::{
    Blob, Caps, ExecError, Executor, KillHandle, Ran, RunStep, Swept, Sync, Synced, Value,
};
use crate::model::{Entity, Fingerprint, Member, Unit, UnitKey};
use language::Turn;

/// A worker for a small part of Python, without an interpreter: tests of graphs and executors are
/// fast with it, and the same everywhere.
///
/// A step is lines of these forms; any other line ends the step as not supported:
///
/// ```python
/// x = 1 + y             # integers and sums
/// xs = [1, y]           # lists of integers; `ys = xs` shares the list
/// xs.append(x)
/// n = len(xs) + sum(xs)
/// it = iter(xs)         # cannot be serialized
/// n = next(it)
/// t = now()             # a clock reading
/// del x
/// print(x)
/// raise ValueError
/// untracked()           # an untracked operation
/// crash()               # ends the worker
/// while True: pass      # runs until it is killed
/// ```
///
/// ```
/// use harness_esg::testing::TinyWorker;
/// use harness_esg::{Blobs, CodeGraph, Program};
///
/// let program = Program::from_script("# %% load\nxs = [3, 1]\n# %% sum\nn = sum(xs)")?;
/// let mut graph = CodeGraph::new(program, TinyWorker::new(), Blobs::memory());
/// assert!(graph.replay()?.ok());
/// assert_eq!(graph.value("n")?.repr, "4");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TinyWorker {
    caps: Caps,
    names: BTreeMap<Arc<str>, Shared>,
    /// The unit of each live name.
    units: HashMap<Arc<str>, UnitKey>,
    aside: HashMap<UnitKey, Vec<(Arc<str>, Shared)>>,
    killed: Arc<Killed>,
    clock: u64,
    before_run: BeforeRun,
}

/// What is called before a step runs.
struct BeforeRun(Box<Watch>);

type Watch = dyn FnMut(&RunStep<'_>) -> Result<(), ExecError> + Send;

impl std::fmt::Debug for BeforeRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BeforeRun")
    }
}

type Shared = Arc<Mutex<Object>>;

#[derive(Clone, Debug, PartialEq)]
enum Object {
    Int(i64),
    List(Vec<i64>),
    /// What is left of it, in reverse.
    Iter(Vec<i64>),
}

#[derive(Debug, Default)]
struct Killed(Mutex<bool>, Condvar);

impl Killed {
    fn kill(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }

    /// Waits for the kill.
    fn wait(&self) {
        let mut killed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*killed {
            killed = self.1.wait(killed).unwrap_or_else(PoisonError::into_inner);
        }
        *killed = false;
    }

    fn take(&self) -> bool {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn get(object: &Shared) -> Object {
    object.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Object {
    fn json(&self) -> Json {
        match self {
            Self::Int(int) => json!(int),
            Self::List(list) | Self::Iter(list) => json!(list),
        }
    }

    /// Also reads what [`json`](Self::json) writes, except for iterators.
    fn parse(bytes: &[u8]) -> Option<Self> {
        match serde_json::from_slice(bytes).ok()? {
            Json::Number(int) => int.as_i64().map(Self::Int),
            Json::Array(list) => {
                list.iter().map(Json::as_i64).collect::<Option<_>>().map(Self::List)
            }
            _ => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::List(_) => "list",
            Self::Iter(_) => "list_iterator",
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&[self.kind().as_bytes(), self.json().to_string().as_bytes()])
    }
}

impl TinyWorker {
    /// A fresh worker.
    #[must_use]
    pub fn new() -> Self {
        Self::limited(Self::CAPS)
    }

    /// What it can do: everything but files.
    pub const CAPS: Caps = Caps::new(None).files(false);

    /// A fresh worker that can do less than [`CAPS`](Self::CAPS).
    #[must_use]
    pub fn limited(caps: Caps) -> Self {
        Self {
            caps,
            names: BTreeMap::new(),
            units: HashMap::new(),
            aside: HashMap::new(),
            killed: Arc::default(),
            clock: 0,
            before_run: BeforeRun(Box::new(|_| Ok(()))),
        }
    }

    /// Calls `watch` before each step, which then fails with its error, as if the worker had broken down.
    /// Its [twins](Executor::twin) do not.
    ///
    /// ```
    /// use harness_esg::testing::TinyWorker;
    /// use harness_esg::{Blobs, CodeGraph, ExecError, Program};
    ///
    /// let broken = TinyWorker::new().before_run(|_| Err(ExecError::new("it broke down")));
    /// let program = Program::from_script("x = 1")?;
    /// assert!(CodeGraph::new(program, broken, Blobs::memory()).replay().is_err());
    /// # Ok::<(), harness_esg::ProgramError>(())
    /// ```
    #[must_use]
    pub fn before_run(
        mut self,
        watch: impl FnMut(&RunStep<'_>) -> Result<(), ExecError> + Send + 'static,
    ) -> Self {
        self.before_run = BeforeRun(Box::new(watch));
        self
    }

    fn clear(&mut self) {
        self.names.clear();
        self.units.clear();
        self.aside.clear();
    }

    /// Fails if the worker was killed while no step ran.
    fn check(&mut self) -> Result<(), ExecError> {
        if self.killed.take() {
            self.clear();
            return Err(ExecError::new("the worker was killed while no step ran").with_loss());
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.names.remove(name);
        self.units.remove(name);
    }

    /// The live names of an object.
    fn names_of(&self, object: &Shared) -> Vec<Arc<str>> {
        let same = self.names.iter().filter(|(_, other)| Arc::ptr_eq(object, other));
        same.map(|(name, _)| name.clone()).collect()
    }

    /// The unit of an object, with its serialized form.
    fn unit(&self, key: UnitKey, object: &Shared) -> (Unit, Option<Blob>) {
        let content = get(object);
        let own = content.fingerprint();
        let iterates = matches!(content, Object::Iter(_));
        let names = self.names_of(object);
        let pairs = (0..names.len()).flat_map(|one| (0..one).map(move |other| (other, one)));
        // Integers have no identity.
        let is_shared = !matches!(content, Object::Int(_));
        let bytes = content.json().to_string().into_bytes();
        let unit = Unit {
            key,
            share: pairs.filter(|_| is_shared).map(|(one, other)| (one, other, own)).collect(),
            members: names
                .iter()
                .map(|name| Member {
                    entity: Entity::name(name),
                    own,
                    refs: Vec::new(),
                    opaque: false,
                    iterates,
                    loads: Vec::new(),
                })
                .collect(),
            refs: Vec::new(),
            unserializable: iterates.then(|| "an iterator".to_owned()),
            size: bytes.len() as u64,
        };
        (unit, (!iterates).then(|| bytes.into()))
    }

    /// Every unit of these names.
    fn units_of(
        &self,
        names: impl IntoIterator<Item = Arc<str>>,
        key: impl Fn(usize) -> UnitKey,
    ) -> Vec<(Unit, Option<Blob>)> {
        let mut seen: Vec<&Shared> = Vec::new();
        for name in names {
            if let Some(object) = self.names.get(&name)
                && !seen.iter().any(|one| Arc::ptr_eq(one, object))
            {
                seen.push(object);
            }
        }
        seen.iter().enumerate().map(|(at, object)| self.unit(key(at), object)).collect()
    }
}

impl Executor for TinyWorker {
    fn fingerprint(&self) -> &str {
        "tiny 1"
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    fn fresh(&mut self) -> Result<(), ExecError> {
        self.killed.take();
        self.clear();
        Ok(())
    }

    fn sync(&mut self, request: &Sync) -> Result<Synced, ExecError> {
        self.check()?;
        for name in request.drop.iter().filter_map(Entity::as_name) {
            self.remove(name);
        }
        for key in &request.stash {
            let names = self.units.iter().filter(|(_, unit)| *unit == key);
            let names: Vec<_> = names.map(|(name, _)| name.clone()).collect();
            let object = |name: &Arc<str>| Some((name.clone(), self.names.get(name)?.clone()));
            let held = names.iter().filter_map(object).collect();
            self.aside.insert(key.clone(), held);
            names.iter().for_each(|name| self.remove(name));
        }
        for key in &request.forget {
            self.aside.remove(key);
        }
        for unit in &request.unstash {
            for (name, object) in self.aside.remove(&unit.key).unwrap_or_default() {
                if unit.members.contains(&Entity::Name(name.clone())) {
                    self.names.insert(name.clone(), object);
                    self.units.insert(name, unit.key.clone());
                }
            }
        }
        let mut synced = Synced::default();
        for load in &request.load {
            let parsed = Object::parse(&load.blob).filter(|_| self.caps.restores);
            let Some(object) = parsed else {
                synced.failed.push((load.key.clone(), "it is damaged".to_owned()));
                continue;
            };
            let object = Arc::new(Mutex::new(object));
            for name in load.take.iter().filter_map(Entity::as_name) {
                self.names.insert(name.into(), object.clone());
                self.units.insert(name.into(), load.key.clone());
            }
        }
        Ok(synced)
    }

    fn run(&mut self, request: &RunStep<'_>) -> Result<Ran, ExecError> {
        self.check()?;
        (self.before_run.0)(request)?;
        let mut turn = Turn::new(self, request.readings.unwrap_or_default());
        let ending = match request.bind {
            Some((name, value)) => turn.bind_json(name, value),
            None => turn.run(request.source),
        };
        let mut ran = turn.into_ran(ending);
        if ran.lost {
            self.clear();
        } else if ran.ending.is_ok() {
            let touched: BTreeSet<Arc<str>> =
                ran.wrote.keys().filter_map(Entity::as_name).map(Arc::from).collect();
            ran.units = self.units_of(touched, |at| format!("{}.{at}", request.seq).into());
            for (unit, _) in &ran.units {
                for name in unit.members.iter().filter_map(|member| member.entity.as_name()) {
                    self.units.insert(name.into(), unit.key.clone());
                }
            }
        } else {
            ran.dirty = std::mem::take(&mut ran.wrote).into_keys().collect();
        }
        Ok(ran)
    }

    fn sweep(&mut self) -> Result<Swept, ExecError> {
        self.check()?;
        let units = self.units_of(self.names.keys().cloned(), |at| format!("s.{at}").into());
        let units = units.into_iter().map(|(unit, _)| unit).collect();
        Ok(Swept { units, unattributed: Vec::new() })
    }

    fn value(&mut self, name: &str) -> Result<Value, ExecError> {
        self.check()?;
        let object = self.names.get(name).map(get);
        let object = object.ok_or_else(|| ExecError::new(format!("`{name}` is not live")))?;
        let json = object.json();
        let (repr, json) = match object {
            Object::Iter(_) => ("<list_iterator>".to_owned(), None),
            _ => (json.to_string().replace(',', ", "), Some(json)),
        };
        Ok(Value { repr, type_name: object.kind().to_owned(), json })
    }

    fn kill_handle(&self) -> KillHandle {
        let killed = self.killed.clone();
        let interrupts = self.caps.interrupts;
        KillHandle::new(move || {
            if interrupts {
                killed.kill();
            }
        })
    }

    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError> {
        match self.caps.twins {
            true => Ok(Box::new(Self::limited(self.caps))),
            false => Err(ExecError::new("it has no twins")),
        }
    }
}

impl Default for TinyWorker {
    fn default() -> Self {
        Self::new()
    }
}
