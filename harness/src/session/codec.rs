//! Encoding and decoding of entries.
//!
//! Both are bounded: an entry that could not be decoded again is not encoded.

use std::cell::Cell;
use std::fmt;
use std::io;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::ser::Formatter;

use crate::clock::UtcMillis;
use crate::llm::Spend;
use crate::state::Op;

use super::FORMAT;
use super::change::{Change, Entry, Reserved};
use super::error::{EntryError, EntryFault, MAX_ENTRY};
use super::spent::Spent;

/// The maximum nesting of lists and maps in a snapshot: what `serde_json` reads.
const MAX_DEPTH: usize = 127;

/// The maximum nesting in other entries. It is lower, because a snapshot nests their contents deeper.
const MAX_ENTRY_DEPTH: usize = MAX_DEPTH - 15;

impl Entry {
    /// Appends the entry to `out`, as one JSON object without line breaks.
    ///
    /// # Errors
    /// An entry that is too large or too deep to be decoded again. `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EntryError> {
        let start = out.len();
        let encoded = self.encode_onto(out);
        if encoded.is_err() {
            out.truncate(start);
        }
        encoded
    }

    fn encode_onto(&self, out: &mut Vec<u8>) -> Result<(), EntryError> {
        let start = out.len();
        let most = match &self.change {
            Change::Snapshot(_) => MAX_DEPTH,
            _ => MAX_ENTRY_DEPTH,
        };
        if !self.ops().iter().all(is_flat_enough) {
            return Err(EntryFault::TooDeep { most }.into());
        }
        let formatter = Nesting { left: most };
        let mut serializer = serde_json::Serializer::with_formatter(&mut *out, formatter);
        self.serialize(&mut serializer).map_err(|error| match error.is_io() {
            true => EntryFault::TooDeep { most },
            false => EntryFault::malformed(&error),
        })?;
        within(out.len() - start)
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// Bytes that are not an entry, or one that a [newer version](EntryError::is_newer) of this
    /// library wrote. The error contains nothing of the entry.
    pub fn decode(bytes: &[u8]) -> Result<Self, EntryError> {
        if bytes.len() > MAX_ENTRY {
            return Err(EntryFault::TooLarge { bytes: bytes.len() }.into());
        }
        let fault = Cell::new(None);
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let read = Reading { fault: &fault }
            .deserialize(&mut deserializer)
            .and_then(|entry| deserializer.end().map(|()| entry));
        match read {
            Ok(entry) => Ok(entry),
            // A newer format may have another shape.
            Err(_) if fault.get().is_some() || is_newer(bytes) => Err(EntryFault::Newer.into()),
            Err(error) => Err(EntryFault::malformed(&error).into()),
        }
    }

    fn ops(&self) -> &[Op] {
        match &self.change {
            Change::Committed(committed) => &committed.ops,
            Change::RunStarted(started) => &started.ops,
            Change::Edited(edited) => &edited.ops,
            _ => &[],
        }
    }
}

/// Whether an entry can hold these operations. Checked before they are applied; the rest of the entry
/// is small.
pub(crate) fn check_ops(ops: &[Op]) -> Result<(), EntryError> {
    // The entry, its change, the list, the operation and its value.
    const AROUND: usize = 5;
    let mut bytes = 0;
    for op in ops {
        let left = MAX_ENTRY_DEPTH - AROUND;
        if !is_flat_enough(op) || value_of(op).is_some_and(|it| !fits(it, left, &mut bytes)) {
            return Err(EntryFault::TooDeep { most: MAX_ENTRY_DEPTH }.into());
        }
    }
    // Most entries are small enough without an exact count.
    if bytes > MAX_ENTRY / WIDEST {
        let mut counted = Counted(0);
        serde_json::to_writer(&mut counted, ops).map_err(|error| EntryFault::malformed(&error))?;
        if counted.0 > MAX_ENTRY - ROOM {
            return Err(EntryFault::TooLarge { bytes: counted.0 }.into());
        }
    }
    Ok(())
}

/// Whether an inbox message, and the entry that copies it, can hold a value.
pub(crate) fn check_value(value: &Value) -> Result<(), EntryError> {
    // The entry, its change, the resolution, its kind.
    const AROUND: usize = 5;
    let mut bytes = 0;
    if !fits(value, MAX_ENTRY_DEPTH - AROUND, &mut bytes) {
        return Err(EntryFault::TooDeep { most: MAX_ENTRY_DEPTH }.into());
    }
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, value).map_err(|error| EntryFault::malformed(&error))?;
    match counted.0 > MAX_ENTRY - ROOM {
        true => Err(EntryFault::TooLarge { bytes: counted.0 }.into()),
        false => Ok(()),
    }
}

/// The most bytes of JSON for one byte of text.
const WIDEST: usize = 8;

/// Room for the parts of an entry other than its operations.
const ROOM: usize = 64 << 10;

/// Counts the bytes written.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn value_of(op: &Op) -> Option<&Value> {
    match op {
        Op::Set { value, .. }
        | Op::Push { value, .. }
        | Op::Put { value, .. }
        | Op::Insert { value, .. }
        | Op::Upsert { value, .. } => Some(value),
        Op::Del { .. } => None,
    }
}

fn within(bytes: usize) -> Result<(), EntryError> {
    if bytes > MAX_ENTRY { Err(EntryFault::TooLarge { bytes }.into()) } else { Ok(()) }
}

/// Whether a snapshot can hold the value that the operation adds to the state. For a short path the
/// depth of the entry is a sufficient check.
fn is_flat_enough(op: &Op) -> bool {
    let above = op.path().segments().len();
    if above <= 2 {
        return true;
    }
    let Some(value) = value_of(op) else { return true };
    MAX_ENTRY_DEPTH.checked_sub(above + 3).is_some_and(|left| fits(value, left, &mut 0))
}

/// Whether a value nests at most `left` lists and maps. Adds its approximate length to `bytes`.
fn fits(value: &Value, left: usize, bytes: &mut usize) -> bool {
    *bytes += 4;
    match value {
        Value::Array(items) => {
            left.checked_sub(1).is_some_and(|left| items.iter().all(|item| fits(item, left, bytes)))
        }
        Value::Object(map) => left.checked_sub(1).is_some_and(|left| {
            map.iter().all(|(key, item)| {
                *bytes += key.len();
                fits(item, left, bytes)
            })
        }),
        Value::String(text) => {
            *bytes += text.len();
            true
        }
        _ => true,
    }
}

/// Writes compact JSON to a maximum depth.
struct Nesting {
    left: usize,
}

impl Nesting {
    fn enter(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::InvalidData)?;
        Ok(())
    }
}

impl Formatter for Nesting {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.left += 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.left += 1;
        writer.write_all(b"}")
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2 + usize::from(self.spent.is_some())))?;
        map.serialize_entry("t", &self.at)?;
        if let Some(spent) = self.spent {
            map.serialize_entry("u", &Spent::from(spent))?;
        }
        match &self.change {
            Change::Committed(body) => map.serialize_entry("commit", body),
            Change::Opened(body) => map.serialize_entry("open", body),
            Change::Adopted(body) => map.serialize_entry("adopt", body),
            Change::RunStarted(body) => map.serialize_entry("run", body),
            Change::Recovered(body) => map.serialize_entry("recover", body),
            Change::Attempt(body) => map.serialize_entry("attempt", body),
            Change::Intent(body) => map.serialize_entry("intent", body),
            Change::NotDone(body) => map.serialize_entry("not_done", body),
            Change::Effect(body) => map.serialize_entry("effect", body),
            Change::Asked(body) => map.serialize_entry("ask", body),
            Change::Resolved(body) => map.serialize_entry("resolve", body),
            Change::Timer(body) => map.serialize_entry("timer", body),
            Change::Child(body) => map.serialize_entry("child", body),
            Change::ChildDone(body) => map.serialize_entry("child_done", body),
            Change::Planned(body) => map.serialize_entry("planned", body),
            Change::Item(body) => map.serialize_entry("item", body),
            Change::Diverted(body) => map.serialize_entry("divert", body),
            Change::Finishing(body) => map.serialize_entry("finish", body),
            Change::Settled(body) => map.serialize_entry("settle", body),
            Change::Edited(body) => map.serialize_entry("edit", body),
            Change::Snapshot(body) => map.serialize_entry("snapshot", body),
            Change::Reserved(Reserved { kind, body }) => map.serialize_entry(kind, body),
        }?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reading { fault: &Cell::new(None) }.deserialize(deserializer)
    }
}

/// The keys of an entry.
enum Key {
    At,
    Spent,
    Kind(Tag),
    Reserved(&'static str),
    Unknown,
}

#[derive(Clone, Copy)]
enum Tag {
    Open,
    Adopt,
    Run,
    Recover,
    Attempt,
    Intent,
    NotDone,
    Effect,
    Ask,
    Resolve,
    Timer,
    Child,
    ChildDone,
    Planned,
    Item,
    Commit,
    Divert,
    Finish,
    Settle,
    Edit,
    Snapshot,
}

impl Key {
    fn of(key: &str) -> Self {
        match key {
            "t" => Self::At,
            "u" => Self::Spent,
            "commit" => Self::Kind(Tag::Commit),
            "open" => Self::Kind(Tag::Open),
            "adopt" => Self::Kind(Tag::Adopt),
            "run" => Self::Kind(Tag::Run),
            "recover" => Self::Kind(Tag::Recover),
            "attempt" => Self::Kind(Tag::Attempt),
            "intent" => Self::Kind(Tag::Intent),
            "not_done" => Self::Kind(Tag::NotDone),
            "effect" => Self::Kind(Tag::Effect),
            "ask" => Self::Kind(Tag::Ask),
            "resolve" => Self::Kind(Tag::Resolve),
            "planned" => Self::Kind(Tag::Planned),
            "item" => Self::Kind(Tag::Item),
            "divert" => Self::Kind(Tag::Divert),
            "finish" => Self::Kind(Tag::Finish),
            "settle" => Self::Kind(Tag::Settle),
            "edit" => Self::Kind(Tag::Edit),
            "snapshot" => Self::Kind(Tag::Snapshot),
            "timer" => Self::Kind(Tag::Timer),
            "child" => Self::Kind(Tag::Child),
            "child_done" => Self::Kind(Tag::ChildDone),
            "notified" => Self::Reserved("notified"),
            _ => Self::Unknown,
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key of an entry")
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
                Ok(Key::of(key))
            }
        }

        deserializer.deserialize_identifier(Name)
    }
}

/// Decodes an entry, and records if a newer version wrote it.
struct Reading<'a> {
    fault: &'a Cell<Option<Newer>>,
}

#[derive(Clone, Copy)]
struct Newer;

impl Reading<'_> {
    fn newer<E: de::Error>(&self) -> E {
        self.fault.set(Some(Newer));
        E::custom("the entry was written by a newer version of this library")
    }

    fn change<'de, A: MapAccess<'de>>(&self, map: &mut A, tag: Tag) -> Result<Change, A::Error> {
        Ok(match tag {
            Tag::Commit => Change::Committed(map.next_value()?),
            Tag::Open => Change::Opened(map.next_value()?),
            Tag::Adopt => Change::Adopted(map.next_value()?),
            Tag::Run => Change::RunStarted(map.next_value()?),
            Tag::Recover => Change::Recovered(map.next_value()?),
            Tag::Attempt => Change::Attempt(map.next_value()?),
            Tag::Intent => Change::Intent(map.next_value()?),
            Tag::NotDone => Change::NotDone(map.next_value()?),
            Tag::Effect => Change::Effect(map.next_value()?),
            Tag::Ask => Change::Asked(map.next_value()?),
            Tag::Resolve => Change::Resolved(map.next_value()?),
            Tag::Timer => Change::Timer(map.next_value()?),
            Tag::Child => Change::Child(map.next_value()?),
            Tag::ChildDone => Change::ChildDone(map.next_value()?),
            Tag::Planned => Change::Planned(map.next_value()?),
            Tag::Item => Change::Item(map.next_value()?),
            Tag::Divert => Change::Diverted(map.next_value()?),
            Tag::Finish => Change::Finishing(map.next_value()?),
            Tag::Settle => Change::Settled(map.next_value()?),
            Tag::Edit => Change::Edited(map.next_value()?),
            Tag::Snapshot => Change::Snapshot(map.next_value()?),
        })
    }
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Entry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entry, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry of a log")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let (mut at, mut spent, mut change) = (None::<UtcMillis>, None::<Spend>, None::<Change>);
        while let Some(key) = map.next_key()? {
            match key {
                Key::At if at.is_none() => at = Some(map.next_value()?),
                Key::Spent if spent.is_none() => spent = Some(map.next_value::<Spent>()?.into()),
                Key::Kind(tag) if change.is_none() => {
                    change = Some(self.change(&mut map, tag)?);
                }
                Key::Reserved(kind) if change.is_none() => {
                    let (kind, body) = (kind.to_owned(), map.next_value()?);
                    change = Some(Change::Reserved(Reserved { kind, body }));
                }
                Key::Unknown => return Err(self.newer()),
                _ => return Err(de::Error::custom("an entry has a key twice")),
            }
        }
        let at = at.ok_or_else(|| de::Error::missing_field("t"))?;
        let change = change.ok_or_else(|| de::Error::custom("an entry has no change"))?;
        let format = match &change {
            Change::Opened(opened) => opened.format,
            Change::Snapshot(snapshot) => snapshot.session.format,
            _ => FORMAT,
        };
        if format > FORMAT {
            return Err(self.newer());
        }
        Ok(Entry { at, spent, change })
    }
}

/// Whether the bytes are the beginning of a log, or a snapshot, of a later format.
fn is_newer(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }

    #[derive(Deserialize)]
    struct Snapshot {
        session: Versioned,
    }

    #[derive(Deserialize)]
    struct Probe {
        #[serde(rename = "t")]
        _at: IgnoredAny,
        open: Option<Versioned>,
        snapshot: Option<Snapshot>,
    }

    serde_json::from_slice::<Probe>(bytes)
        .ok()
        .and_then(|probe| probe.open.or(probe.snapshot.map(|snapshot| snapshot.session)))
        .is_some_and(|versioned| versioned.v > FORMAT)
}

#[cfg(test)]
pub(in crate::session) mod tests;
