//! What a replay would run.
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::CodeGraph;
use crate::model::{Entity, Fingerprint, UnitKey};
use crate::program::{EdgeKind, INPUT, Program};
use crate::replay::{Planned, Reason, need};
use crate::scan::Scan;
use crate::state::State;
use crate::trace::Execution;

/// What a replay would run, as far as can be determined without running anything. A step that may
/// run need not: a step whose outputs equal its earlier ones does not invalidate its readers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    steps: Vec<(Arc<str>, Reason)>,
    /// By step or input, the number of the execution that would be kept.
    kept: Vec<(Arc<str>, u64)>,
}

impl Plan {
    /// The steps that would or may run, in order, and why.
    pub fn steps(&self) -> impl Iterator<Item = (&str, &Reason)> {
        self.steps.iter().map(|(step, reason)| (&**step, reason))
    }

    /// The steps that would not run, in order, with the number of the execution that represents each: not
    /// always its last one. Inputs are among them, under `input:` and their name.
    pub fn kept(&self) -> impl Iterator<Item = (&str, u64)> {
        self.kept.iter().map(|(step, execution)| (&**step, *execution))
    }

    pub(super) fn add(&mut self, step: &Arc<str>, reason: Reason) {
        self.steps.push((step.clone(), reason));
    }

    /// Whether nothing would run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|(step, reason)| writeln!(f, "{step}: {reason}"))
    }
}

impl CodeGraph {
    /// What the next replay would run, and why.
    ///
    /// It contains every step that the replay runs, unless a step does what neither its source nor
    /// its earlier runs show.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let steps = self.planned();
        let mut ahead = Ahead { fragile: self.fragile(), ..Ahead::default() };
        let mut outside = self.engine.outside();
        let mut reasons: BTreeMap<&str, Reason> = BTreeMap::new();
        let mut kept: Vec<(Arc<str>, u64)> = Vec::new();
        for step in &steps {
            let valid = self.engine.valid(step, &ahead.state, &mut outside);
            let may = valid.as_deref().map(|execution| ahead.unknown_of(step, execution));
            match (valid, may) {
                (Some(execution), Some(may)) if may.is_empty() => {
                    ahead.keep(step, &execution);
                    kept.push((step.id.clone(), execution.seq));
                    continue;
                }
                (_, Some(may)) => reasons.insert(&step.id, Reason::May(may)),
                _ => {
                    let stale = self.engine.stale(step, &ahead.state, &outside);
                    reasons.insert(&step.id, stale.unwrap_or(Reason::Invalidated))
                }
            };
            ahead.goes_back();
            for maker in self.makers_for(step, &ahead) {
                if let Some(maker) = steps.iter().find(|step| step.id == maker) {
                    reasons.entry(&maker.id).or_insert(Reason::Rebuilt);
                }
            }
            ahead.stays(self, step);
            ahead.assume(step, self.engine.ledger.history.latest(&step.id), self.program());
            ahead.follow(self, step);
        }
        let reason = |step: &Planned| Some((step.id.clone(), reasons.get(&*step.id)?.clone()));
        // What makes a value again for a later step does run.
        kept.retain(|(step, _)| !reasons.contains_key(&**step));
        Plan { steps: steps.iter().filter_map(reason).collect(), kept }
    }

    /// What the worker holds, cannot be stored, and is closed when the worker goes back to a state
    /// without it.
    fn fragile(&self) -> Vec<(Entity, UnitKey)> {
        let held = self.state.around().filter(|(entity, slot)| {
            slot.made.stored.is_none() && self.engine.live.holds(entity, slot)
        });
        held.map(|(entity, slot)| (entity.clone(), slot.key().clone())).collect()
    }

    /// The steps that have to make unserializable values again for a step.
    fn makers_for(&self, step: &Planned, ahead: &Ahead) -> BTreeSet<Arc<str>> {
        let (engine, state) = (&self.engine, &ahead.state);
        let before = engine.ledger.history.of(&step.id, step.syntax, &engine.name).map(Arc::as_ref);
        let names = |scan: &Scan| match scan.opaque {
            // It may read every name. The replay finds out which.
            true => state.entities().map(|(entity, _)| entity.clone()).collect(),
            false => BTreeSet::new(),
        };
        let needed = need(step, state, before, &names(&step.scan), false);
        let former = needed.iter().filter_map(|entity| ahead.former.get(entity)).flatten();
        let former: BTreeSet<Arc<str>> = former.cloned().collect();
        let gone = needed.into_iter().filter(|entity| ahead.is_gone(self, entity));
        &engine.makers(state, &gone.collect()) | &former
    }
}

/// The channel of all files in [`MEANS`].
const FILES: &str = "files";

/// Names through which a step may change files and the process, and what they may change.
const MEANS: &[(&str, &[&str])] = &[
    ("open", &[FILES]),
    ("os", &[FILES, "cwd", "env"]),
    ("pathlib", &[FILES]),
    ("Path", &[FILES]),
    ("random", &["rng"]),
    ("shutil", &[FILES]),
    ("sqlite3", &[FILES]),
    ("sys", &["path"]),
    ("tempfile", &[FILES]),
    ("warnings", &["warn"]),
    ("zipfile", &[FILES]),
];

/// Names through which a step may load any submodule.
const LOADERS: &[&str] = &["__import__", "importlib", "pkgutil", "runpy"];

/// What the state of the process begins with that says whether a submodule is loaded.
const LOADED: &str = "import/";

fn package(module: &str) -> &str {
    module.split('.').next().unwrap_or(module)
}

/// The packages that a step imports.
fn packages(scan: &Scan) -> impl Iterator<Item = &str> {
    scan.imports.iter().map(|import| package(&import.module))
}

/// The listing that changes with a file.
fn folder(entity: &Entity) -> Option<Entity> {
    let Entity::File(path) = entity else { return None };
    let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
    Some(Entity::Listing(folder.into()))
}

/// What is known of the state that a replay will reach, step by step.
#[derive(Default)]
struct Ahead {
    state: State,
    /// What steps that run may change.
    unknown: BTreeSet<Entity>,
    /// Whether steps that run may change any file.
    files: bool,
    /// The packages of which they may load submodules, or not any more: an import may fail.
    packages: BTreeSet<String>,
    /// Whether they may load submodules of any package.
    loads: bool,
    /// The packages that the steps so far import.
    imported: BTreeSet<String>,
    /// What may share other objects than before, itself unchanged.
    regrouped: BTreeSet<Entity>,
    /// By step: what it may read of steps that run, according to the sources.
    readers: HashMap<Arc<str>, BTreeSet<Entity>>,
    /// What the worker holds of the process that cannot be stored.
    fragile: Vec<(Entity, UnitKey)>,
    /// What it will not hold any more by then.
    closed: HashSet<UnitKey>,
    /// By what edited steps changed before, the makers of what they found there: they may leave it so.
    former: BTreeMap<Entity, BTreeSet<Arc<str>>>,
}

impl Ahead {
    /// What a step read then and may find changed.
    fn unknown_of(&self, step: &Planned, execution: &Execution) -> Vec<Entity> {
        let read = execution.trace.known().filter(|entity| self.is_unknown(entity));
        let mut may: BTreeSet<Entity> = read.cloned().collect();
        may.extend(self.readers.get(&step.id).into_iter().flatten().cloned());
        may.extend(execution.trace.tied.intersection(&self.regrouped).cloned());
        may.into_iter().collect()
    }

    /// Whether it, or a class or module that it refers to, may change.
    fn is_unknown(&self, entity: &Entity) -> bool {
        if self.unknown.contains(entity) {
            return true;
        }
        match entity {
            Entity::File(_) | Entity::Listing(_) => self.files,
            Entity::Process(what) => what
                .strip_prefix(LOADED)
                .is_some_and(|module| self.loads || self.packages.contains(package(module))),
            Entity::Name(_) | Entity::Token(_) | Entity::Module(_) => {
                let reached = self.state.reach([entity.clone()]);
                reached
                    .iter()
                    .any(|one| !matches!(one, Entity::Name(_)) && self.unknown.contains(one))
            }
            _ => false,
        }
    }

    /// A step runs here: the worker goes to this state for it.
    fn goes_back(&mut self) {
        let state = &self.state;
        let gone = |(entity, key): &mut (Entity, UnitKey)| {
            state.slot(entity).is_none_or(|slot| slot.key() != key)
        };
        self.closed.extend(self.fragile.extract_if(.., gone).map(|(_, key)| key));
    }

    /// Whether the worker does not hold a value that cannot be stored.
    fn is_gone(&self, graph: &CodeGraph, entity: &Entity) -> bool {
        self.state.slot(entity).is_some_and(|slot| {
            let held = !self.closed.contains(slot.key()) && graph.engine.live.holds(entity, slot);
            slot.made.stored.is_none() && !held
        })
    }

    /// The step runs with other code, which may leave what it changed before.
    fn stays(&mut self, graph: &CodeGraph, step: &Planned) {
        let latest = graph.engine.ledger.history.latest(&step.id);
        let Some(edited) = latest.filter(|latest| latest.syntax != step.syntax) else { return };
        let changed = edited.trace.wrote.keys();
        let gone: Vec<&Entity> = changed.filter(|entity| self.is_gone(graph, entity)).collect();
        for entity in gone {
            let makers = graph.engine.makers(&self.state, &BTreeSet::from([entity.clone()]));
            self.former.insert(entity.clone(), makers);
        }
    }

    /// The step is kept: what it wrote is as it was.
    fn keep(&mut self, step: &Planned, execution: &Execution) {
        self.imported.extend(packages(&step.scan).map(str::to_owned));
        self.state.apply(execution);
        for wrote in execution.trace.wrote.keys() {
            self.unknown.remove(wrote);
        }
    }

    /// The step runs, and does what it did before or what its source allows.
    fn assume(&mut self, step: &Planned, latest: Option<&Arc<Execution>>, program: &Program) {
        // Untracked operations after it may depend on it.
        let past = self.state.past();
        self.state.set_past(past.after(Fingerprint::of(&[b"planned"]), false));
        let scan = &step.scan;
        let changed = scan.mutates.iter().chain(&scan.escapes).chain(&scan.deferred_mutates);
        // Reading an iterator, a file or a connection changes it, and so may calling a function that
        // remembers something.
        let used = scan.reads.iter().filter(|name| {
            let name = Entity::name(name);
            self.state.slot(&name).is_some_and(|slot| {
                slot.member().iterates
                    || slot.made.unit.unserializable.is_some()
                    || self.state.group(&name).iter().any(|one| matches!(one, Entity::Token(_)))
            })
        });
        let changed: Vec<Entity> = changed.chain(used).map(Entity::name).collect();
        for entity in changed {
            self.unknown.extend(self.state.group(&entity));
            self.defines(&entity, program);
            self.unknown.insert(entity);
        }
        // A new name, or what the step changes, may hold an object of another name.
        let held = scan.aliases.values().flat_map(|shared| shared.iter());
        let given = scan.reads.iter().filter(|_| !scan.mutates.is_empty() || scan.opaque);
        for name in held.chain(given) {
            self.regrouped.extend(self.state.group(&Entity::name(name)));
        }
        let is_file = |entity: &Entity| matches!(entity, Entity::File(_));
        let known = latest.filter(|latest| latest.syntax == step.syntax);
        if known.is_none_or(|known| known.trace.wrote.keys().any(is_file)) {
            self.look_around(step, program);
        }
        // What a package that was not imported so far loads is not known.
        let new = |of: &str| {
            !self.imported.contains(of)
                && !latest.is_some_and(|it| it.ending.is_ok() && it.source.contains(of))
        };
        self.loads |= known.is_none() && packages(scan).any(new);
        self.packages.extend(packages(scan).map(str::to_owned));
        self.imported.extend(packages(scan).map(str::to_owned));
        let bound = scan.writes.iter().chain(&scan.deletes).chain(&scan.deferred_writes);
        self.unknown.extend(bound.map(Entity::name));
        if let Some(failed) = known.filter(|known| !known.ending.is_ok()) {
            // What it may have changed leaves the worker with it.
            let found = failed.trace.known().filter_map(|entity| self.state.slot(entity));
            let open = found.filter(|slot| slot.made.stored.is_none());
            self.closed.extend(open.map(|slot| slot.key().clone()));
        }
        if let Some(latest) = latest {
            self.state.apply(latest);
            self.unknown.extend(latest.trace.wrote.keys().cloned());
            self.unknown.extend(latest.trace.wrote.keys().filter_map(folder));
        }
    }

    /// Marks the class or module that a name is bound to.
    fn defines(&mut self, entity: &Entity, program: &Program) {
        let (Some(name), Some(slot)) = (entity.as_name(), self.state.slot(entity)) else { return };
        let by = program.step(&slot.by).ok();
        let is_class = by.is_some_and(|by| by.scan.summaries.contains_key(name));
        let meant = slot.refs().filter(|one| is_class || matches!(one, Entity::Module(_)));
        let meant: Vec<Entity> = meant.cloned().collect();
        self.unknown.extend(meant);
    }

    /// Marks what a step may change outside of names, as far as it or what it calls names the means.
    fn look_around(&mut self, step: &Planned, program: &Program) {
        let scan = &step.scan;
        for entity in need(step, &self.state, std::iter::empty(), &BTreeSet::new(), false) {
            let by = self.state.slot(&entity).and_then(|slot| program.step(&slot.by).ok());
            let defines = |by: &Scan| match &entity {
                Entity::Name(name) => {
                    let mut imports = by.imports.iter().filter(|import| !import.names.is_empty());
                    by.summaries.contains_key(name) || imports.next().is_some()
                }
                entity => matches!(entity, Entity::Token(_)),
            };
            if let Some(by) = by.filter(|by| defines(&by.scan)) {
                self.changes(&by.scan);
            }
        }
        self.changes(scan);
        let imported = scan.imports.iter().flat_map(|import| {
            import.names.iter().map(String::as_str).chain(import.module.split('.').next())
        });
        let named = scan.reads.iter().chain(&scan.builtin_reads).chain(imported);
        self.loads |= named.clone().any(|name| LOADERS.contains(&name));
        for (_, channels) in named.filter_map(|name| MEANS.iter().find(|(known, _)| *known == name))
        {
            self.files |= channels.contains(&FILES);
            let process = channels.iter().filter(|channel| **channel != FILES);
            self.unknown.extend(process.map(|name| Entity::Process((*name).into())));
        }
    }

    fn changes(&mut self, scan: &Scan) {
        self.files |= scan.channels.contains(FILES);
        if scan.channels.contains("modules") {
            let modules = scan.imports.iter().map(|one| Entity::Module(one.module.as_str().into()));
            self.unknown.extend(modules);
        }
        let process = scan.channels.iter().filter(|channel| **channel != FILES);
        self.unknown.extend(process.map(|name| Entity::Process((*name).into())));
    }

    /// Takes the readers of a step that runs from the sources.
    fn follow(&mut self, graph: &CodeGraph, step: &Planned) {
        let edges = graph.program().edges();
        let edges = match step.id.strip_prefix(INPUT) {
            Some(name) if step.bind.is_some() => edges.of_input(name),
            _ => edges.of(&step.id).unwrap_or_default(),
        };
        for edge in edges.into_iter().filter(|edge| edge.kind != EdgeKind::Order) {
            self.readers.entry(edge.reader).or_default().extend(edge.channels);
        }
    }
}
