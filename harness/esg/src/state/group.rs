//! Which entities share objects.
use std::collections::BTreeSet;

use super::State;
use crate::model::Entity;

impl State {
    /// The entities of this state that share a mutable object with `entity`, directly or through
    /// others, including itself. Members of a unit that have been rebound since do not count, nor
    /// do entities connected only through them.
    pub(crate) fn group(&self, entity: &Entity) -> BTreeSet<Entity> {
        let mut group = BTreeSet::from([entity.clone()]);
        let Some(slot) = self.slots.get(entity) else { return group };
        let unit = &slot.made.unit;
        let mut beside = vec![Vec::new(); unit.members.len()];
        for &(one, other, _) in &unit.share {
            if one.max(other) < beside.len() {
                beside[one].push(other);
                beside[other].push(one);
            }
        }
        let mut open = vec![slot.at];
        let mut seen = vec![false; unit.members.len()];
        seen[slot.at] = true;
        while let Some(at) = open.pop() {
            for &next in &beside[at] {
                if std::mem::replace(&mut seen[next], true) {
                    continue;
                }
                let member = &unit.members[next].entity;
                if self.slots.get(member).is_some_and(|there| there.key() == slot.key()) {
                    group.insert(member.clone());
                    open.push(next);
                }
            }
        }
        group
    }

    /// Everything that `entities` refer to, directly or indirectly, including themselves.
    pub(crate) fn reach(&self, entities: impl IntoIterator<Item = Entity>) -> BTreeSet<Entity> {
        let mut open: Vec<_> = entities.into_iter().collect();
        let mut reached = BTreeSet::new();
        while let Some(entity) = open.pop() {
            if let Some(slot) = self.slots.get(&entity) {
                open.extend(slot.refs().filter(|next| !reached.contains(*next)).cloned());
            }
            reached.insert(entity);
        }
        reached
    }
}
