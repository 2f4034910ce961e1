//! The moves that bring the worker to a state.
use super::*;
use crate::exec::{Load, Sync, Unstash};

/// The request to the worker, and what is missing.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    pub(crate) sync: Sync,
    /// Needed, not live, and without a stored form.
    pub(crate) missing: BTreeSet<Entity>,
}

impl Live {
    /// Moves the worker to `state` as far as `need` says. `need` must be closed under references
    /// and sharing. `blob` reads a stored form; if it is lost, its unit is missing.
    ///
    /// The moves are recorded at once. Send them to the worker, and report what failed to load with
    /// [`failed`](Self::failed).
    pub(crate) fn moves(
        &mut self,
        state: &State,
        need: &BTreeSet<Entity>,
        blob: &mut dyn FnMut(&Made) -> Option<crate::exec::Blob>,
    ) -> Moves {
        let mut moves = Moves::default();
        moves.sync.drop.extend(std::mem::take(&mut self.spoiled));
        let changed = self.changed(state);
        self.leave(state, changed.as_deref(), &mut moves);
        let mut wanted: BTreeMap<UnitKey, (Arc<Made>, BTreeSet<Entity>)> = BTreeMap::new();
        for entity in need {
            if let Some(slot) = state.slot(entity) {
                let unit = wanted.entry(slot.key().clone());
                unit.or_insert_with(|| (slot.made.clone(), BTreeSet::new()))
                    .1
                    .insert(entity.clone());
            }
        }
        let (mut done, mut broken) = (HashSet::new(), HashSet::new());
        for key in wanted.keys() {
            self.ensure(key, &wanted, state, &mut done, &mut broken, blob, &mut moves);
        }
        self.stale(state, changed, &mut moves);
        self.trim(&mut moves);
        // What is put back stands behind all others.
        let Sync { drop, stash, unstash, load, .. } = &moves.sync;
        self.disordered |=
            !(drop.is_empty() && stash.is_empty() && unstash.is_empty() && load.is_empty());
        if need.contains(&Entity::Everything) && std::mem::take(&mut self.disordered) {
            moves.sync.order = state.names();
        }
        self.used |= !moves.sync.stash.is_empty() || !moves.sync.drop.is_empty();
        self.agreed = Some(state.seen());
        self.placed.clear();
        moves
    }

    /// What may differ from the state since the last moves; `None` if anything may.
    fn changed(&self, state: &State) -> Option<Vec<Entity>> {
        let since = state.since(self.agreed?)?;
        let changed: BTreeSet<&Entity> = since.iter().chain(&self.placed).collect();
        Some(changed.into_iter().cloned().collect())
    }

    /// Removes what is not at the state's version from the namespace.
    fn leave(&mut self, state: &State, changed: Option<&[Entity]>, moves: &mut Moves) {
        let mut leaving: BTreeMap<UnitKey, Vec<Entity>> = BTreeMap::new();
        let mut look = |entity: &Entity, key: &UnitKey| {
            if state.slot(entity).is_none_or(|slot| slot.key() != key) {
                leaving.entry(key.clone()).or_default().push(entity.clone());
            }
        };
        match changed {
            Some(changed) => changed
                .iter()
                .filter_map(|entity| Some((entity, self.at.get(entity)?)))
                .for_each(|(entity, key)| look(entity, key)),
            None => self.at.iter().for_each(|(entity, key)| look(entity, key)),
        }
        for (key, entities) in leaving {
            let whole =
                self.held.get(&key).is_some_and(|held| held.members.len() == entities.len());
            if whole && entities.iter().all(can_be_put_aside) {
                self.put_aside(&key);
                moves.sync.stash.push(key);
            } else {
                for entity in entities {
                    self.lose(&entity);
                    moves.sync.drop.push(entity);
                }
            }
        }
        moves.sync.drop.sort_unstable();
    }

    fn put_aside(&mut self, key: &UnitKey) {
        if let Some(held) = self.held.get_mut(key) {
            held.aside = true;
            for entity in &held.members {
                self.at.remove(entity);
            }
            self.aside.push(key.clone());
        }
    }

    /// Makes the unit live, after what it refers to. `false` if that is impossible.
    #[allow(clippy::too_many_arguments, reason = "one recursion over one plan")]
    fn ensure(
        &mut self,
        key: &UnitKey,
        wanted: &BTreeMap<UnitKey, (Arc<Made>, BTreeSet<Entity>)>,
        state: &State,
        done: &mut HashSet<UnitKey>,
        broken: &mut HashSet<UnitKey>,
        blob: &mut dyn FnMut(&Made) -> Option<crate::exec::Blob>,
        moves: &mut Moves,
    ) -> bool {
        if !done.insert(key.clone()) {
            return !broken.contains(key);
        }
        let Some((made, members)) = wanted.get(key) else { return true };
        let mut whole = true;
        for entity in &made.unit.refs {
            if let Some(slot) = state.slot(entity) {
                let key = slot.key().clone();
                whole &= key == made.unit.key
                    || self.ensure(&key, wanted, state, done, broken, blob, moves);
            }
        }
        let whole = whole && self.fetch(made, members, blob, moves);
        if !whole {
            broken.insert(key.clone());
            moves.missing.extend(members.iter().cloned());
        }
        whole
    }

    fn fetch(
        &mut self,
        made: &Arc<Made>,
        members: &BTreeSet<Entity>,
        blob: &mut dyn FnMut(&Made) -> Option<crate::exec::Blob>,
        moves: &mut Moves,
    ) -> bool {
        let key = &made.unit.key;
        if let Some(held) = self.usable(key, made)
            && members.is_subset(&held.members)
        {
            if held.aside {
                self.take_back(key, members, moves);
            }
            return true;
        }
        let Some(bytes) = blob(made) else { return false };
        // Replaces what is left of it as a whole.
        if let Some(held) = self.held.get(key).cloned() {
            if held.aside {
                moves.sync.forget.push(key.clone());
                self.held.remove(key);
                self.aside.retain(|one| one != key);
            } else {
                for entity in held.members {
                    self.lose(&entity);
                    moves.sync.drop.push(entity);
                }
            }
        }
        moves.sync.load.push(Load {
            key: key.clone(),
            members: made.unit.members.iter().map(|member| member.entity.clone()).collect(),
            take: members.iter().cloned().collect(),
            blob: bytes,
            refs: made.unit.refs.clone(),
        });
        self.hold(made, members.clone());
        true
    }

    fn take_back(&mut self, key: &UnitKey, members: &BTreeSet<Entity>, moves: &mut Moves) {
        let Some(held) = self.held.get_mut(key) else { return };
        held.aside = false;
        held.members.retain(|entity| members.contains(entity));
        let (members, tokens) = (held.members.clone(), held.tokens.clone());
        for entity in &members {
            self.place(entity, key);
        }
        for (token, object) in tokens {
            if members.contains(&token) {
                self.mean(token, object);
            }
        }
        self.aside.retain(|one| one != key);
        moves
            .sync
            .unstash
            .push(Unstash { key: key.clone(), members: members.into_iter().collect() });
    }

    /// Removes also what is not needed and refers to an object that its token does not mean any
    /// more.
    fn stale(&mut self, state: &State, changed: Option<Vec<Entity>>, moves: &mut Moves) {
        let mut changed = changed;
        loop {
            let is_stale = |(entity, key): &(&Entity, &UnitKey)| {
                state.slot(entity).is_some_and(|slot| self.usable(key, &slot.made).is_none())
            };
            // After a token changed its object, any unit may refer to the former one.
            let stale: Vec<Entity> = match changed.take().filter(|_| !self.moved) {
                Some(changed) => {
                    let there = changed.iter().filter_map(|entity| self.at.get_key_value(entity));
                    there.filter(is_stale).map(|(entity, _)| entity.clone()).collect()
                }
                None => self.at.iter().filter(is_stale).map(|(entity, _)| entity.clone()).collect(),
            };
            if stale.is_empty() {
                self.moved = false;
                return;
            }
            for entity in stale {
                self.lose(&entity);
                self.meant.remove(&entity);
                moves.sync.drop.push(entity);
            }
        }
    }

    /// Keeps the stashed units within the limit.
    fn trim(&mut self, moves: &mut Moves) {
        let mut size: u64 =
            self.aside.iter().filter_map(|key| self.held.get(key)).map(|held| held.size).sum();
        while size > ASIDE && !self.aside.is_empty() {
            let key = self.aside.remove(0);
            size = size.saturating_sub(self.held.remove(&key).map_or(0, |held| held.size));
            moves.sync.forget.push(key);
        }
    }
}

/// Files and process state exist in one place only, so they are written again.
fn can_be_put_aside(entity: &Entity) -> bool {
    matches!(entity, Entity::Name(_) | Entity::Token(_))
}
