//! Applies operations to a program.
use std::sync::Arc;

use crate::model::Fingerprint;
use crate::scan::{Scan, scan};
use crate::text::near;

use super::artifact::Part;
use super::check::{check_id, check_input, check_json, check_step, syntax_of};
use super::operation::{Change, Operation};
use super::order::Slot;
use super::version::{Version, VersionId, VersionKind};
use super::{Input, Node, Program, ProgramError, Provenance, Removed, Step};

impl Program {
    pub(super) fn perform(
        &mut self,
        operation: Operation,
        scan: Option<Scan>,
    ) -> Result<Option<VersionId>, ProgramError> {
        self.check_parent(&operation)?;
        let sign = &operation.provenance;
        let (done, version) = match &operation.change {
            Change::Added { step, source, before } => {
                (true, Some(self.do_add(step, source, before.as_deref(), scan, sign)?))
            }
            Change::Replaced { step, source } => {
                let (done, version) = self.do_replace(step, source, scan, sign)?;
                (done, Some(version))
            }
            Change::Removed { step } => {
                self.do_remove(step)?;
                (true, None)
            }
            Change::Moved { step, before } => (self.do_move(step, before.as_deref())?, None),
            Change::RolledBack { version } => (self.do_roll_back(*version)?, Some(*version)),
            Change::Input { name, value } => {
                let (done, version) = self.do_input(name, &value.to_string(), sign)?;
                (done, Some(version))
            }
            Change::InputJson { name, json } => {
                let (done, version) = self.do_input(name, json.trim(), sign)?;
                (done, Some(version))
            }
            Change::Artifact { name, parts } => (self.do_artifact(name, parts)?, None),
        };
        if done {
            self.operations.push(operation);
        }
        Ok(version)
    }

    /// A change that was made for a version is refused if another one is current.
    fn check_parent(&self, operation: &Operation) -> Result<(), ProgramError> {
        let Some(parent) = operation.provenance.parent else { return Ok(()) };
        self.version(parent)?;
        let of_step = |id: &str| self.step(id).ok().map(|step| step.version);
        let of_input = |name: &str| {
            let input = self.inputs().find(|input| *input.name == *name);
            input.map(|input| input.version)
        };
        let (step, current) = match &operation.change {
            Change::Added { step, .. } => {
                (step, self.removed.get(step).map(|removed| removed.version))
            }
            Change::Replaced { step, .. }
            | Change::Removed { step }
            | Change::Moved { step, .. } => (step, of_step(step)),
            Change::RolledBack { version } => {
                let Version { step, kind, .. } = self.version(*version)?;
                match kind {
                    VersionKind::Step => (step, of_step(step)),
                    VersionKind::Input => (step, of_input(step)),
                }
            }
            Change::Input { name, .. } | Change::InputJson { name, .. } => (name, of_input(name)),
            Change::Artifact { .. } => return Ok(()),
        };
        match current {
            Some(current) if current != parent => {
                Err(ProgramError::Outdated { step: step.to_string(), parent, current })
            }
            _ => Ok(()),
        }
    }

    fn do_add(
        &mut self,
        id: &Arc<str>,
        source: &Arc<str>,
        before: Option<&str>,
        known: Option<Scan>,
        sign: &Provenance,
    ) -> Result<VersionId, ProgramError> {
        if self.steps.contains_key(id) {
            return Err(ProgramError::DuplicateStep { step: id.to_string() });
        }
        check_step(id)?;
        let rank = self.rank_before(before)?;
        let found = Arc::new(known.unwrap_or_else(|| scan(source)));
        let parent = self.removed.remove(id).map(|removed| removed.version);
        let syntax = syntax_of(&found, source);
        let version = self.version_of(id, VersionKind::Step, source, syntax, parent, sign);
        let step = Step { id: id.clone(), version, source: source.clone(), syntax, scan: found };
        self.put(rank, step);
        Ok(version)
    }

    fn do_replace(
        &mut self,
        id: &str,
        source: &Arc<str>,
        known: Option<Scan>,
        sign: &Provenance,
    ) -> Result<(bool, VersionId), ProgramError> {
        let slot = self.slot(id)?;
        let old = self.step(id)?;
        let parent = old.version;
        if old.source == *source {
            return Ok((false, parent));
        }
        let id = old.id.clone();
        let found = Arc::new(known.unwrap_or_else(|| scan(source)));
        let syntax = syntax_of(&found, source);
        let version = self.version_of(&id, VersionKind::Step, source, syntax, Some(parent), sign);
        let step = Step { id, version, source: source.clone(), syntax, scan: found };
        self.set(slot, step);
        Ok((true, version))
    }

    fn do_remove(&mut self, id: &str) -> Result<(), ProgramError> {
        let slot = self.slot(id)?;
        let step = self.step(id)?;
        let (id, version) = (step.id.clone(), step.version);
        let behind = self.order.slots().get(self.order.rank(slot) + 1);
        let before = behind.and_then(|slot| match &self.nodes[slot.index()] {
            Node::Step(step) => Some(step.id.clone()),
            _ => None,
        });
        self.forget(slot);
        self.order.remove(slot);
        self.steps.remove(&id);
        self.observed.remove(&slot);
        self.nodes[slot.index()] = Node::Gone;
        self.settle();
        self.removed.insert(id, Removed { version, before });
        Ok(())
    }

    fn do_move(&mut self, id: &str, before: Option<&str>) -> Result<bool, ProgramError> {
        let slot = self.slot(id)?;
        let (from, to) = (self.order.rank(slot), self.rank_before(before)?);
        if to == from || to == from + 1 {
            return Ok(false);
        }
        self.forget(slot);
        self.order.remove(slot);
        self.order.insert(if to > from { to - 1 } else { to }, slot);
        self.renew(slot);
        Ok(true)
    }

    fn do_roll_back(&mut self, id: VersionId) -> Result<bool, ProgramError> {
        let Version { step, kind, source, syntax, .. } = self.version(id)?.clone();
        match kind {
            VersionKind::Input => {
                let Some(slot) = self.inputs.get(&step).copied() else {
                    return Ok(false);
                };
                let changed = matches!(
                    &self.nodes[slot.index()], Node::Input(input) if input.version != id
                );
                self.nodes[slot.index()] = Node::Input(Input {
                    name: step,
                    version: id,
                    json: source,
                    fingerprint: syntax,
                });
                Ok(changed)
            }
            VersionKind::Step => {
                let scan = Arc::new(scan(&source));
                let back = Step { id: step.clone(), version: id, source, syntax, scan };
                match self.steps.get(&step).copied() {
                    Some(_) if self.step(&step)?.version == id => return Ok(false),
                    Some(slot) => self.set(slot, back),
                    None => {
                        let before = self.removed.remove(&step).and_then(|removed| removed.before);
                        let before = before.filter(|before| self.steps.contains_key(before));
                        let rank = self.rank_before(before.as_deref())?;
                        self.put(rank, back);
                    }
                }
                Ok(true)
            }
        }
    }

    fn do_input(
        &mut self,
        name: &Arc<str>,
        json: &str,
        sign: &Provenance,
    ) -> Result<(bool, VersionId), ProgramError> {
        check_input(name)?;
        check_json(name, json)?;
        let json: Arc<str> = json.into();
        let fingerprint = Fingerprint::of(&[b"input", json.as_bytes()]);
        let slot = self.inputs.get(name).copied();
        let old = slot.and_then(|slot| match &self.nodes[slot.index()] {
            Node::Input(input) => Some((input.version, input.fingerprint)),
            _ => None,
        });
        if let Some((version, old)) = old
            && old == fingerprint
        {
            return Ok((false, version));
        }
        let parent = old.map(|(version, _)| version);
        let version = self.version_of(name, VersionKind::Input, &json, fingerprint, parent, sign);
        let node = Node::Input(Input { name: name.clone(), version, json, fingerprint });
        match slot {
            Some(slot) => self.nodes[slot.index()] = node,
            None => {
                let slot = Slot::new(self.nodes.len());
                self.nodes.push(node);
                let rank = self.inputs.range(..name.clone()).count();
                self.inputs.insert(name.clone(), slot);
                self.order.insert(rank, slot);
                self.renew(slot);
            }
        }
        Ok((true, version))
    }

    fn do_artifact(&mut self, name: &Arc<str>, parts: &[Part]) -> Result<bool, ProgramError> {
        if parts.is_empty() {
            return match self.artifacts.remove(name) {
                Some(_) => Ok(true),
                None => Err(self.unknown_artifact(name)),
            };
        }
        check_id(name)?;
        for part in parts {
            if let Part::Step(id) = part {
                self.slot(id)?;
            }
        }
        let changed = self.artifacts.get(name).is_none_or(|old| old != parts);
        self.artifacts.insert(name.clone(), parts.to_vec());
        Ok(changed)
    }

    pub(super) fn unknown_artifact(&self, name: &str) -> ProgramError {
        let near = near(name, self.artifacts.keys().map(|known| &**known)).map(str::to_owned);
        ProgramError::UnknownArtifact { artifact: name.to_owned(), near }
    }

    /// The position before a step, or the end.
    fn rank_before(&self, before: Option<&str>) -> Result<usize, ProgramError> {
        match before {
            Some(before) => Ok(self.order.rank(self.slot(before)?)),
            None => Ok(self.order.len()),
        }
    }

    fn version_of(
        &mut self,
        step: &Arc<str>,
        kind: VersionKind,
        source: &Arc<str>,
        syntax: Fingerprint,
        parent: Option<VersionId>,
        sign: &Provenance,
    ) -> VersionId {
        let id = VersionId(u32::try_from(self.versions.len()).unwrap_or(u32::MAX));
        self.versions.push(Version {
            id,
            parent,
            step: step.clone(),
            kind,
            source: source.clone(),
            syntax,
            provenance: sign.clone(),
        });
        id
    }

    fn put(&mut self, rank: usize, step: Step) {
        let slot = Slot::new(self.nodes.len());
        self.steps.insert(step.id.clone(), slot);
        self.nodes.push(Node::Step(step));
        self.order.insert(rank, slot);
        self.renew(slot);
    }

    /// Sets the version of a step. If its code is the same, everything recorded about it stays.
    fn set(&mut self, slot: Slot, step: Step) {
        let same =
            matches!(&self.nodes[slot.index()], Node::Step(old) if old.syntax == step.syntax);
        self.nodes[slot.index()] = Node::Step(step);
        if !same {
            self.observed.remove(&slot);
            self.renew(slot);
        }
    }
}
