//! Keeps old objects where a step produced equal ones again.
//!
//! A class that a step defines again is a new object, even if nothing about it changed. Instances
//! of the old class still exist, so the old class stays: each new token that equals the one the
//! same step made before, in everything it reaches, is replaced by the old token.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Execution;
use crate::model::{Entity, Member, Unit};
use crate::state::Made;

/// Whether the worker still holds what an earlier run made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Held {
    No,
    /// Made of other objects than its tokens mean now, or with references to others.
    Else,
    AsMeant,
}

/// Rewrites the units of `new` to refer to the objects of `old` wherever its own objects are equal
/// to them.
///
/// Units without tokens are replaced if the worker still holds the old one. Units of objects that
/// the step found and changed are replaced if the old unit is of these objects.
pub(crate) fn unify(new: &mut Execution, old: &Execution, held: &dyn Fn(&Made) -> Held) {
    let mut same = candidates(new, old);
    loop {
        let before = same.len();
        let kept: HashSet<usize> = (0..new.trace.units.len())
            .filter(|&at| replacement(&new.trace.units[at], old, &same).is_some())
            .collect();
        let members = |made: &Made| {
            made.unit.members.iter().map(|one| one.entity.clone()).collect::<Vec<_>>()
        };
        for (at, made) in new.trace.units.iter().enumerate() {
            if !kept.contains(&at) {
                members(made).iter().for_each(|entity| {
                    same.remove(entity);
                });
            }
        }
        let unserializable = (0..new.trace.units.len())
            .filter(|at| !kept.contains(at))
            .map(|at| &new.trace.units[at])
            .filter(|made| made.unit.unserializable.is_some());
        for entity in behind(unserializable, new) {
            same.remove(&entity);
        }
        if same.len() == before {
            break;
        }
    }
    for made in &mut new.trace.units {
        let there = replacement(made, old, &same).filter(|there| {
            let mut tokens = made.unit.members.iter().map(|member| &member.entity);
            match tokens.find(|entity| matches!(entity, Entity::Token(_))) {
                // An object that existed before is the same object, not one kept from `old`.
                Some(token) if !same.contains_key(token) => held(there) == Held::AsMeant,
                Some(_) => true,
                None => held(there) != Held::No,
            }
        });
        if let Some(there) = there {
            *made = there.clone();
        } else if made.unit.refs.iter().any(|entity| same.contains_key(entity)) {
            let mut renamed = Made::clone(made);
            for entity in &mut renamed.unit.refs {
                if let Some(old) = same.get(entity) {
                    *entity = old.clone();
                }
            }
            *made = Arc::new(renamed);
        }
    }
    new.trace.wrote = std::mem::take(&mut new.trace.wrote)
        .into_iter()
        .map(|(entity, wrote)| (same.get(&entity).cloned().unwrap_or(entity), wrote))
        .collect();
}

/// Everything these units lead to among what was made with them. An unserializable object cannot
/// get another object in place of one it holds, and cannot be replaced itself.
fn behind<'a>(units: impl Iterator<Item = &'a Arc<Made>>, new: &Execution) -> HashSet<Entity> {
    let mut open: Vec<&Entity> = units.flat_map(|made| &made.unit.refs).collect();
    let mut found = HashSet::new();
    if open.is_empty() {
        return found;
    }
    let mut units = HashMap::new();
    for made in &new.trace.units {
        units.extend(made.unit.members.iter().map(|member| (&member.entity, made)));
    }
    while let Some(entity) = open.pop() {
        if found.insert(entity.clone())
            && let Some(made) = units.get(entity)
        {
            open.extend(&made.unit.refs);
        }
    }
    found
}

/// Pairs of tokens at the same places in what both made, found by walking from the names.
fn candidates(new: &Execution, old: &Execution) -> HashMap<Entity, Entity> {
    let minted = format!("{}.", new.seq);
    let index = |execution: &Execution| -> HashMap<Entity, (Arc<Made>, usize)> {
        let mut index = HashMap::new();
        for made in &execution.trace.units {
            for (at, member) in made.unit.members.iter().enumerate() {
                index.insert(member.entity.clone(), (made.clone(), at));
            }
        }
        index
    };
    let (fresh, known) = (index(new), index(old));
    let mut open: Vec<(Entity, Entity)> = fresh
        .keys()
        .filter(|entity| !matches!(entity, Entity::Token(_)))
        .filter(|entity| known.contains_key(*entity))
        .map(|entity| (entity.clone(), entity.clone()))
        .collect();
    let (mut pairs, mut taken) = (HashMap::new(), HashMap::new());
    let mut clash = HashSet::new();
    while let Some((one, other)) = open.pop() {
        let (Some((ours, at)), Some((theirs, there))) = (fresh.get(&one), known.get(&other)) else {
            continue;
        };
        let (ours_member, theirs_member) = (&ours.unit.members[*at], &theirs.unit.members[*there]);
        for (a, b) in std::iter::zip(&ours_member.refs, &theirs_member.refs) {
            let (Some(a), Some(b)) = (ours.unit.refs.get(*a), theirs.unit.refs.get(*b)) else {
                continue;
            };
            let is_ours = matches!(a, Entity::Token(token) if token.starts_with(&minted));
            if !is_ours || !matches!(b, Entity::Token(_)) {
                continue;
            }
            match (pairs.get(a), taken.get(b)) {
                (None, None) => {
                    pairs.insert(a.clone(), b.clone());
                    taken.insert(b.clone(), a.clone());
                    open.push((a.clone(), b.clone()));
                }
                (Some(with), _) if with == b => {}
                _ => {
                    clash.insert(a.clone());
                }
            }
        }
    }
    pairs.retain(|one, _| !clash.contains(one));
    pairs
}

/// The old unit that equals the new one, given which tokens are the same.
fn replacement<'a>(
    new: &Made,
    old: &'a Execution,
    same: &HashMap<Entity, Entity>,
) -> Option<&'a Arc<Made>> {
    if new.unit.unserializable.is_some() {
        return None;
    }
    let named = |entity: &Entity| same.get(entity).unwrap_or(entity).clone();
    let first = named(&new.unit.members.first()?.entity);
    let there = old
        .trace
        .units
        .iter()
        .find(|made| made.unit.members.iter().any(|member| member.entity == first))?;
    (there.unit.unserializable.is_none() && equal(&new.unit, &there.unit, named)).then_some(there)
}

fn equal(new: &Unit, old: &Unit, named: impl Fn(&Entity) -> Entity) -> bool {
    if new.members.len() != old.members.len() || new.share.len() != old.share.len() {
        return false;
    }
    let refs =
        |unit: &Unit, member: &Member, named: &dyn Fn(&Entity) -> Entity| -> Option<Vec<Entity>> {
            member.refs.iter().map(|&at| unit.refs.get(at).map(named)).collect()
        };
    let mut order = Vec::new();
    for member in &new.members {
        let name = named(&member.entity);
        let Some(at) = old.members.iter().position(|one| one.entity == name) else { return false };
        let other = &old.members[at];
        let same = member.own == other.own
            && !member.opaque
            && !other.opaque
            && refs(new, member, &named) == refs(old, other, &Entity::clone);
        if !same {
            return false;
        }
        order.push(at);
    }
    let shared: HashSet<_> = old.share.iter().collect();
    new.share.iter().all(|(one, other, digest)| match (order.get(*one), order.get(*other)) {
        (Some(one), Some(other)) => shared.contains(&(*one, *other, *digest)),
        _ => false,
    })
}
