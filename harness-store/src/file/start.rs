//! Where a reader of a long log may start: what the log adds up to just before its last snapshot,
//! in a small file beside it.
//!
//! Who reads from the last snapshot on needs nothing else of what comes before, so the cost of
//! opening a session does not grow with its age. Whatever needs more reads the log from its
//! beginning, and then checks that it is the one that was started in.
//!
//! It is believed only if the log begins with the same header and the very record stands where it
//! says, and if nothing before that can be lost any more: it is written once that is durable. Where
//! nothing is synced, it holds until the machine starts again. Otherwise one reader could see what
//! a loss of power has left of the log, and another what it was before.
//!
//! What is damaged before the snapshot is therefore told to those who read it, and not to those who
//! go on from the snapshot; what is damaged from there on, to everybody.

use harness::UtcMillis;
use harness::store::{Message, OpenInterrupt, SessionSummary, StoreError, Token};
use serde::{Deserialize, Serialize};

use super::disk::{Disk, DiskFile};
use super::index::{Index, Mark};
use super::lease::{read_small, write_small};
use super::record::{self, MessageText, Record, Seal};
use super::session::{Session, State};
use super::store::{Inner, Sync};

/// How much of a log must lie before a snapshot, and between two, so that it pays to start there.
const WORTH: u64 = 64 * 1024;

/// The most bytes of messages that are kept here. With more, the log is read from its beginning.
const MAX_LETTERS: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Start {
    life: String,
    rewritten: u64,
    /// Where the record of the snapshot stands, how long it is, and its checksum.
    pub(crate) offset: u64,
    len: u64,
    record: u32,
    /// The checksum of all before it.
    sum: u32,
    torn: u64,
    named: bool,
    fence: u64,
    token: String,
    owner: u64,
    until: u64,
    first: u64,
    head: u64,
    created: UtcMillis,
    updated: UtcMillis,
    summary: SessionSummary,
    interrupts: Vec<OpenInterrupt>,
    messages: Vec<MessageText>,
    /// The start of the machine until whose end it holds; if there is none, it was durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
}

impl Start {
    /// What the log adds up to before a record with a snapshot, if it pays to start there.
    pub(crate) fn before(
        index: &Index,
        sum: crc32fast::Hasher,
        offset: u64,
        line: &[u8],
    ) -> Option<Self> {
        let last = index.start.as_ref().map_or(0, |start| start.offset);
        let messages = || index.messages.iter().map(|stored| &stored.message);
        let weight =
            |message: &Message| message.body.len() + message.key.len() + message.digest.len();
        if offset < last + WORTH || messages().map(weight).sum::<usize>() > MAX_LETTERS {
            return None;
        }
        let (header, seal) = (index.header.as_ref()?, index.seal.as_ref()?);
        Some(Self {
            life: header.life.clone(),
            rewritten: header.rewritten,
            offset,
            len: line.len() as u64,
            record: crc32fast::hash(line),
            sum: sum.finalize(),
            torn: index.torn,
            named: index.named,
            fence: seal.fence,
            token: seal.token.to_string(),
            owner: seal.owner,
            until: seal.until,
            first: index.first,
            head: index.head,
            created: index.created?,
            updated: index.updated,
            summary: index.summary.clone()?,
            interrupts: index.interrupts.values().cloned().collect(),
            messages: messages().map(record::message_text).collect(),
            boot: None,
        })
    }

    /// Whether the file is the log it was taken from, as far as can be told without reading all.
    fn fits(&self, file: &dyn DiskFile) -> std::io::Result<Option<Index>> {
        let mut bytes = vec![0; harness::id::MAX_SESSION_ID * 6 + 512];
        let read = file.read_at(&mut bytes, 0)?;
        let line = bytes[..read].split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
        let Some(Record::Header(_, Some(header))) =
            record::is_sound(line).then(|| record::parse(line)).flatten()
        else {
            return Ok(None);
        };
        let same = (&*header.life, header.rewritten) == (&*self.life, self.rewritten);
        let this_boot = self.boot.is_none() || self.boot == boot_id();
        let long = file.stat()?.len >= self.offset.saturating_add(self.len);
        if !same || !this_boot || !long || self.len > 2 * record::MAX_RECORD {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(self.len).unwrap_or(0)];
        let read = file.read_at(&mut bytes, self.offset)?;
        if read < bytes.len() || crc32fast::hash(&bytes) != self.record {
            return Ok(None);
        }
        let messages: Option<Vec<Message>> =
            self.messages.iter().cloned().map(record::message).collect();
        let token = u128::from_str_radix(&self.token, 16).map(Token::from_u128);
        let (Some(messages), Ok(token)) = (messages, token) else { return Ok(None) };
        let mut index = Index {
            end: self.offset,
            sum: crc32fast::Hasher::new_with_initial_len(self.sum, self.offset),
            header: Some(header),
            seal: Some(Seal { fence: self.fence, token, owner: self.owner, until: self.until }),
            seals: vec![(self.fence, token)],
            first: self.first,
            head: self.head,
            created: Some(self.created),
            updated: self.updated,
            summary: Some(self.summary.clone()),
            interrupts: self.interrupts.iter().map(|one| (one.id.clone(), one.clone())).collect(),
            torn: self.torn,
            named: self.named,
            start: Some(self.clone()),
            base: Some(self.head),
            ..Index::default()
        };
        index.send(messages);
        Ok(Some(index))
    }
}

/// What tells one start of this machine from another.
fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

impl Session {
    /// The beginning of an index that leaves out what is before the last snapshot. `None` if there
    /// is nothing to start from that can be believed.
    pub(crate) fn start(
        &self,
        disk: &dyn Disk,
        file: &dyn DiskFile,
        expected: Option<&Mark>,
    ) -> Option<Index> {
        // Whatever is wrong with it, the log itself is there to be read.
        let start: Start = read_small(disk, &self.paths.start).ok()??;
        let mut index = start.fits(file).ok()??;
        if index.header.as_ref().is_none_or(|header| header.id != self.id) {
            return None;
        }
        // What was acknowledged before the snapshot is for those to check who read it.
        index.expected = expected.filter(|mark| mark.offset > start.offset).cloned();
        Some(index)
    }

    /// Reads what is before the snapshot that the reader has started from, which must lead to where
    /// it is.
    pub(crate) fn read_all(&self, disk: &dyn Disk, state: &mut State) -> Result<(), StoreError> {
        // Whoever follows a log that goes on elsewhere may have started in the middle of that.
        while state.index.base.is_some() {
            self.read_before(disk, state)?;
        }
        Ok(())
    }

    fn read_before(&self, disk: &dyn Disk, state: &mut State) -> Result<(), StoreError> {
        let Some(file) = state.file.clone() else { return Err(self.gone()) };
        let known = &state.index;
        let mut whole = State::default();
        whole.index.expected = Some(Mark {
            life: known.life().0.to_owned(),
            rewritten: known.life().1,
            offset: known.end,
            sum: known.sum.clone().finalize(),
        });
        let len = file.stat().map_err(|error| self.failed("look at", error))?.len;
        let mut done = self.catch_up(&*file, &mut whole, len)?;
        if done.is_ok() {
            done = whole.index.complete();
        }
        done.map_err(|flaw| self.flawed(&whole.index, flaw))?;
        state.index = whole.index;
        state.index.expected = None;
        state.len = len;
        // Nothing may be written behind where the log goes on elsewhere.
        if state.index.moved.is_some() { self.refresh(disk, state) } else { Ok(()) }
    }
}

impl Inner {
    /// Leaves word where the next reader may start, if that is not where the last one was told to.
    pub(crate) fn note_start(&self, session: &Session) {
        let mut state = session.lock();
        let Some(start) = &state.index.start else { return };
        let durable = state.named && state.synced >= start.offset + start.len;
        if state.noted >= start.offset || (self.sync == Sync::Flush && !durable) {
            return;
        }
        let mut start = start.clone();
        state.noted = start.offset;
        drop(state);
        start.boot = match self.sync {
            Sync::Flush => None,
            Sync::Never => match boot_id() {
                None => return,
                boot => boot,
            },
        };
        start.named |= self.sync == Sync::Flush;
        // Without it, the log is read from its beginning.
        let _ = write_small(&*self.disk, &session.paths.start, &start);
    }
}
