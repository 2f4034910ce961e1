//! Parses the worker's replies. Nothing in them is trusted to be well formed.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::model::{Entity, Fingerprint, Member, Unit, UnitKey};

use crate::exec::wire::{Blob, Ending, Output, Ran, Swept, Synced, Untracked, Value, Wrote};

/// The longest key of a unit, in bytes.
const KEY: usize = 100;

/// The fields of every reply.
#[derive(Debug, Deserialize)]
struct Head<'a> {
    op: &'a str,
    nonce: &'a str,
    #[serde(default)]
    error: Option<String>,
}

/// An unusable reply.
#[derive(Debug)]
pub(in crate::exec) enum Bad {
    /// The worker reports its own failure.
    Failed(String),
    /// It does not answer the request.
    Reply(String),
}

/// The reply to `op`, if it carries `nonce`.
///
/// # Errors
/// In any other case.
pub(in crate::exec) fn parse<T: DeserializeOwned>(
    json: &[u8],
    op: &str,
    nonce: &str,
) -> Result<T, Bad> {
    let bad = |error: serde_json::Error| Bad::Reply(format!("not a reply to `{op}` ({error})"));
    let head: Head<'_> = serde_json::from_slice(json).map_err(bad)?;
    if head.op != op || head.nonce != nonce {
        return Err(Bad::Reply(format!("a reply to another request than this `{op}`")));
    }
    match head.error {
        Some(error) => Err(Bad::Failed(cut(error))),
        None => serde_json::from_slice(json).map_err(bad),
    }
}

fn cut(mut text: String) -> String {
    const MOST: usize = 2000;
    if text.len() > MOST {
        text.truncate(text.floor_char_boundary(MOST));
        text.push('…');
    }
    text
}

/// The result of moving values.
#[derive(Debug, Deserialize)]
pub(in crate::exec) struct SyncReply {
    #[serde(default)]
    failed: Vec<(UnitKey, String)>,
}

impl From<SyncReply> for Synced {
    fn from(reply: SyncReply) -> Self {
        Self { failed: reply.failed }
    }
}

/// A value for display. Empty if it is not live.
#[derive(Debug, Deserialize)]
pub(in crate::exec) struct ValueReply {
    #[serde(default)]
    repr: Option<String>,
    #[serde(default, rename = "type")]
    type_name: Option<String>,
    #[serde(default)]
    json: Option<Json>,
}

impl ValueReply {
    /// The value, if it is live.
    pub(in crate::exec) fn into_value(self) -> Option<Value> {
        let type_name = self.type_name.unwrap_or_default();
        Some(Value { repr: self.repr?, type_name, json: self.json })
    }
}

/// A member of a unit, by index or by name.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Which {
    Index(usize),
    Entity(Entity),
}

impl Which {
    fn among(&self, members: &BTreeMap<&Entity, usize>) -> Option<usize> {
        match self {
            Self::Index(index) => Some(*index).filter(|index| *index < members.len()),
            Self::Entity(entity) => members.get(entity).copied(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct WireUnit {
    key: UnitKey,
    members: Vec<Member>,
    #[serde(default)]
    share: Vec<(Which, Which, Fingerprint)>,
    #[serde(default)]
    refs: Vec<Entity>,
    #[serde(default)]
    blob: Option<(usize, usize)>,
    #[serde(default)]
    unserializable: Option<String>,
    #[serde(default)]
    size: Option<u64>,
}

impl WireUnit {
    /// The unit, if all its indices are valid.
    fn check(self) -> Result<(Unit, Option<(usize, usize)>), String> {
        let Self { key, members, share, refs, blob, unserializable, size } = self;
        let fault = |what: &str| Err(format!("unit `{}`: {what}", cut(key.to_string())));
        if key.is_empty() || key.len() > KEY {
            return fault("a key of another length than 1 to 100 bytes");
        }
        let mut seen = BTreeMap::new();
        for (at, Member { entity, refs: of_member, .. }) in members.iter().enumerate() {
            if !entity.is_state() {
                return fault(&format!("`{entity}` is read-only"));
            }
            if seen.insert(entity, at).is_some() {
                return fault(&format!("`{entity}` is in it twice"));
            }
            if of_member.iter().any(|index| *index >= refs.len()) {
                return fault(&format!("`{entity}` refers to an entity that is not listed"));
            }
        }
        if members.is_empty() {
            return fault("nothing is in it");
        }
        let place = |(a, b, fingerprint): (Which, Which, Fingerprint)| {
            Some((a.among(&seen)?, b.among(&seen)?, fingerprint))
        };
        let Some(share) = share.into_iter().map(place).collect() else {
            return fault("a member that is not there shares something");
        };
        if refs.iter().any(|entity| !matches!(entity, Entity::Token(_) | Entity::Module(_))) {
            return fault("it refers to something else than tokens and modules");
        }
        let size = size.or(blob.map(|(_, length)| length as u64)).unwrap_or_default();
        Ok((Unit { key, members, share, refs, unserializable, size }, blob))
    }
}

#[derive(Debug, Default, Deserialize)]
struct Printed {
    at: (usize, usize),
    #[serde(default)]
    dropped: u64,
}

#[derive(Debug, Default, Deserialize)]
struct Micros {
    run: u64,
}

/// What a step did. Empty parts are left out.
#[derive(Debug, Deserialize)]
pub(in crate::exec) struct RunReply {
    ending: Ending,
    reads: BTreeSet<Entity>,
    #[serde(default)]
    external: BTreeMap<Entity, Option<String>>,
    wrote: BTreeMap<Entity, Wrote>,
    #[serde(default)]
    order: Vec<Entity>,
    units: Vec<WireUnit>,
    #[serde(default)]
    dirty: BTreeSet<Entity>,
    #[serde(default)]
    shown: BTreeSet<Arc<str>>,
    #[serde(default)]
    untracked: Vec<Untracked>,
    #[serde(default)]
    readings: Vec<Json>,
    #[serde(default)]
    clock: bool,
    #[serde(default)]
    stdout: Printed,
    #[serde(default)]
    stderr: Printed,
    #[serde(default)]
    micros: Micros,
}

/// What was bound without running a step, if that was possible.
#[derive(Debug, Deserialize)]
pub(in crate::exec) struct GraftReply {
    #[serde(default)]
    pub(in crate::exec) ran: Option<RunReply>,
}

/// Whether a worker may report this ending. The host determines all others itself.
fn may_say(ending: &Ending) -> bool {
    matches!(ending, Ending::Ok | Ending::Raised { .. } | Ending::Unsupported { .. })
}

impl RunReply {
    /// What the step of `seq` did, with the bytes of `message` attached.
    ///
    /// # Errors
    /// If the reply contradicts itself or its request.
    pub(in crate::exec) fn into_ran(
        self,
        seq: u64,
        blobs: &[u8],
        output: u64,
        took: Duration,
    ) -> Result<Ran, String> {
        if !may_say(&self.ending) {
            return Err(format!("an ending that only the host can determine: {:?}", self.ending));
        }
        if let Some(entity) = self.wrote.keys().chain(&self.dirty).find(|e| !e.is_state()) {
            return Err(format!("`{entity}` is read-only, but was written"));
        }
        let bound = |entity: &Entity| self.wrote.get(entity) == Some(&Wrote::Bound);
        if let Some(entity) = self.order.iter().find(|entity| !bound(entity)) {
            return Err(format!("`{entity}` has a place among the names, but was not bound"));
        }
        let outside = |entity: &&Entity| matches!(entity, Entity::External(_) | Entity::Package(_));
        if let Some(entity) = self.external.keys().find(|entity| !outside(entity)) {
            return Err(format!("`{entity}` is not outside of the state"));
        }
        let mine = format!("{seq}.");
        let mut units = Vec::with_capacity(self.units.len());
        let mut seen = BTreeSet::new();
        for unit in self.units {
            let (unit, at) = unit.check()?;
            if !unit.key.starts_with(&mine) || !seen.insert(unit.key.clone()) {
                return Err(format!("unit `{}` has a key of another run", unit.key));
            }
            if unit.unserializable.is_some() == at.is_some() {
                return Err(format!(
                    "unit `{}` has both or neither of a blob and a reason why it is unserializable",
                    unit.key
                ));
            }
            let blob = at.map(|at| slice(blobs, at).map(Blob::from)).transpose()?;
            units.push((unit, blob));
        }
        Ok(Ran {
            ending: self.ending,
            lost: false,
            reads: self.reads,
            external: self.external,
            wrote: self.wrote,
            order: self.order,
            units,
            dirty: self.dirty,
            shown: self.shown,
            untracked: self.untracked,
            readings: self.readings,
            clock: self.clock,
            stdout: self.stdout.take(blobs, output)?,
            stderr: self.stderr.take(blobs, output)?,
            wall: took.min(Duration::from_micros(self.micros.run)),
        })
    }
}

impl Printed {
    /// The bytes, at most `most`.
    fn take(self, blobs: &[u8], most: u64) -> Result<Output, String> {
        let bytes = slice(blobs, self.at)?;
        if bytes.len() as u64 > most {
            return Err(format!("{} bytes of output exceed the limit of {most}", bytes.len()));
        }
        Ok(Output { bytes: bytes.to_vec(), dropped: self.dropped })
    }
}

fn slice(blobs: &[u8], (offset, length): (usize, usize)) -> Result<&[u8], String> {
    let end = offset.checked_add(length);
    end.and_then(|end| blobs.get(offset..end)).ok_or_else(|| {
        format!("{length} bytes at offset {offset} exceed the {} received", blobs.len())
    })
}

/// Everything that is live.
#[derive(Debug, Deserialize)]
pub(in crate::exec) struct SweepReply {
    units: Vec<WireUnit>,
    #[serde(default)]
    unattributed: Vec<String>,
}

impl SweepReply {
    /// What the sweep found.
    ///
    /// # Errors
    /// If the reply contradicts itself.
    pub(in crate::exec) fn into_swept(self) -> Result<Swept, String> {
        let units = self.units.into_iter().map(|unit| Ok(unit.check()?.0));
        Ok(Swept { units: units.collect::<Result<_, String>>()?, unattributed: self.unattributed })
    }
}

/// A step whose worker died.
pub(in crate::exec) fn lost(ending: Ending, wall: Duration) -> Ran {
    Ran { lost: true, ..Ran::ended(ending, wall) }
}
