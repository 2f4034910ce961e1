//! The names of a worker, grouped by the mutable objects that they share.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::values::{Held, Kind};
use crate::exec::Blob;
use crate::model::{Entity, Fingerprint, Member, Unit, UnitKey};

/// The names, with what they are bound to.
pub(super) type Names = BTreeMap<Arc<str>, Held>;

/// The names that share objects with others, as sets.
pub(super) fn groups(names: &Names) -> Vec<Vec<Arc<str>>> {
    let mut groups: Vec<(BTreeSet<&Arc<str>>, bool, Vec<Arc<str>>)> = Vec::new();
    for (name, held) in names {
        let parts: BTreeSet<_> = held.parts.iter().collect();
        let is_hidden = held.kind() == Kind::Hidden;
        // What holds a state that cannot be seen may share it with anything that can change.
        let touches = |other: &(BTreeSet<&Arc<str>>, bool, Vec<Arc<str>>)| {
            let can_change = |parts: &BTreeSet<_>, hidden: bool| hidden || !parts.is_empty();
            (is_hidden && can_change(&other.0, other.1))
                || (other.1 && can_change(&parts, is_hidden))
                || !other.0.is_disjoint(&parts)
        };
        let (with, mut rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(touches);
        let mut all = (parts.clone(), is_hidden, vec![name.clone()]);
        for (parts, hidden, names) in with {
            all.0.extend(parts);
            all.1 |= hidden;
            all.2.extend(names);
        }
        all.2.sort();
        rest.push(all);
        groups = rest;
    }
    groups.into_iter().map(|(_, _, names)| names).collect()
}

/// The unit of a group, with its serialized form.
pub(super) fn unit(
    key: UnitKey,
    group: &[Arc<str>],
    names: &Names,
    limit: u64,
) -> (Unit, Option<Blob>) {
    let held: Vec<&Held> = group.iter().filter_map(|name| names.get(name)).collect();
    let owns: Vec<Fingerprint> = held.iter().map(|one| one.fingerprint()).collect();
    let pairs = (0..held.len()).flat_map(|one| (0..one).map(move |other| (other, one)));
    let share = pairs.filter_map(|(one, other)| {
        let digest = held[one].common(held[other]).or_else(|| {
            let hidden = [one, other].iter().any(|at| held[*at].kind() == Kind::Hidden);
            hidden.then(|| Fingerprint::of(&[b"hidden", owns[one].bytes(), owns[other].bytes()]))
        })?;
        Some((one, other, digest))
    });
    let members = group.iter().zip(&held).zip(&owns).map(|((name, held), own)| Member {
        entity: Entity::Name(name.clone()),
        own: *own,
        refs: Vec::new(),
        opaque: held.kind() != Kind::Plain,
        iterates: held.kind() == Kind::Hidden,
        loads: held.function.as_ref().map(|function| function.loads.clone()).unwrap_or_default(),
    });
    let stored = match owns.iter().all(|own| own == &owns[0]) {
        true => stored(&held),
        false => Err(PART),
    };
    let size = stored.as_ref().map_or(0, |bytes| bytes.len() as u64);
    let unserializable = match &stored {
        Ok(_) if size > limit => Some(format!("it takes {size} bytes")),
        Ok(_) => None,
        Err(why) => Some((*why).to_owned()),
    };
    let blob = stored.ok().filter(|_| unserializable.is_none()).map(Blob::from);
    let unit = Unit {
        key,
        share: share.collect(),
        members: members.collect(),
        refs: Vec::new(),
        unserializable,
        size,
    };
    (unit, blob)
}

/// Why a group is not stored.
const PART: &str = "it shares a part with another value";

/// The stored form of a group: that of its one object, to which all its names are bound.
fn stored(held: &[&Held]) -> Result<Vec<u8>, &'static str> {
    let Some((first, others)) = held.split_first() else { return Err("it has no name") };
    if others.iter().any(|other| other.parts != first.parts) {
        return Err(PART);
    }
    match first.kind() {
        Kind::Plain if first.repeats() => return Err("it has a part twice"),
        Kind::Plain => {}
        Kind::Opaque | Kind::Hidden => return Err("it is no data"),
    }
    first.form().and_then(|form| form.to_bytes()).ok_or("it has no stored form")
}
