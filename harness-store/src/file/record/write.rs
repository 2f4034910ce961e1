//! Writing records.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use harness::store::rules::{self, Outline};
use harness::store::{Batch, Message, NewEntry, StoreError};
use harness::{Seq, UtcMillis};
use serde::Serialize;

use super::{
    BatchRecord, ClaimRecord, FORMAT, Header, MAX_RECORD, MessageText, Meta, Origin, Record,
    entries, inner, parse,
};

/// What a batch becomes in the line, as far as that does not depend on the log.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) outline: Outline,
    pub(crate) at: UtcMillis,
    pub(crate) flush: bool,
    /// Whether the session rests after it.
    pub(crate) settles: bool,
    pub(crate) body: Vec<u8>,
    /// What it says beside its entries; `None` if it is one plain entry.
    meta: Option<Meta>,
}

impl Prepared {
    /// # Errors
    /// [`StoreError::TooLarge`] if it does not fit into a record.
    pub(crate) fn new(batch: &Batch<'_>) -> Result<Self, StoreError> {
        let breaks = |byte: &u8| *byte < b' ' || *byte == 0x7f;
        // Every byte is looked at, as that is faster than to stop at the first that is found.
        let any = |bytes: &[u8]| bytes.iter().fold(false, |found, byte| found | breaks(byte));
        let escaped = batch.entries.iter().any(|entry| any(entry.bytes));
        let plain = match batch.entries {
            [entry] => {
                !entry.snapshot
                    && !escaped
                    && batch.summary.is_none()
                    && batch.open.is_empty()
                    && batch.close.is_empty()
            }
            _ => false,
        };
        let mut lengths = Vec::new();
        let mut payload = Vec::new();
        for entry in batch.entries {
            let start = payload.len();
            if escaped {
                payload.extend(BASE64.encode(entry.bytes).into_bytes());
            } else {
                payload.extend_from_slice(entry.bytes);
            }
            // One is added, so that an empty snapshot differs from an empty entry.
            let length = i64::try_from(payload.len() - start).unwrap_or(i64::MAX);
            lengths.push(if entry.snapshot { -1 - length } else { length });
        }
        let (meta, body) = if plain {
            (None, payload)
        } else {
            let meta = Meta {
                lengths,
                escaped,
                summary: batch.summary.cloned(),
                open: batch.open.to_vec(),
                close: batch.close.to_vec(),
            };
            let text = json(&meta);
            let mut body = format!("{} {text}", text.len()).into_bytes();
            body.extend(payload);
            (Some(meta), body)
        };
        let bytes = body.len() as u64;
        if bytes > MAX_RECORD {
            return Err(StoreError::TooLarge { bytes, limit: MAX_RECORD });
        }
        Ok(Self {
            outline: batch.into(),
            at: batch.at,
            flush: batch.flush,
            settles: batch
                .summary
                .is_some_and(|summary| summary.phase != harness::store::Phase::Running),
            body,
            meta,
        })
    }

    /// Whether a sound line holds this batch.
    pub(crate) fn is(&self, line: &[u8]) -> bool {
        fn entries_of(line: &[u8]) -> Vec<(Vec<u8>, bool)> {
            entries(line).unwrap_or_default()
        }
        let Some(Record::Batch(found)) = parse(line) else { return false };
        let sent = self.line(0, 0, false);
        let (sent, stored) = (entries_of(inner(&sent)), entries_of(line));
        let views = [&sent, &stored].map(|entries| {
            let view =
                entries.iter().map(|(bytes, snapshot)| NewEntry { bytes, snapshot: *snapshot });
            view.collect::<Vec<_>>()
        });
        let [sent, stored] = [
            (self.outline.after, &views[0], self.meta.as_ref()),
            (Seq(found.after), &views[1], found.meta.as_deref()),
        ]
        .map(|(after, entries, meta)| {
            let batch = Batch { after, entries, ..Batch::default() };
            meta.map_or(batch, |meta| Batch {
                summary: meta.summary.as_ref(),
                open: &meta.open,
                close: &meta.close,
                ..batch
            })
        });
        rules::is_repetition(&sent, &stored)
    }

    /// What is read where [`line`](Self::line) stands.
    pub(crate) fn record(&self, fence: u64, base: u64, synced: bool) -> Option<Record<'_>> {
        let at = i128::from(self.at.0) - i128::from(base);
        Some(Record::Batch(BatchRecord {
            fence,
            after: self.outline.after.0,
            at: i64::try_from(at).ok()?,
            synced,
            meta: self.meta.as_ref().map(Cow::Borrowed),
            body: &self.body,
        }))
    }

    /// The record of the batch.
    pub(crate) fn line(&self, fence: u64, base: u64, synced: bool) -> Vec<u8> {
        let at = i128::from(self.at.0) - i128::from(base);
        let kind = match (self.meta.is_none(), synced) {
            (true, false) => 'b',
            (true, true) => 'B',
            (false, false) => 'm',
            (false, true) => 'M',
        };
        let mut line = Line::new(kind, self.body.len() + 40);
        line.number(fence);
        line.space();
        line.number(self.outline.after.0);
        line.space();
        if at < 0 {
            line.0.push(b'-');
        }
        line.base36(u64::try_from(at.unsigned_abs()).unwrap_or(u64::MAX));
        line.space();
        line.0.extend_from_slice(&self.body);
        line.close()
    }
}

/// A record in the making.
struct Line(Vec<u8>);

impl Line {
    fn new(kind: char, capacity: usize) -> Self {
        let mut line = Vec::with_capacity(capacity);
        line.extend_from_slice(b"\n00000000");
        line.push(kind as u8);
        Self(line)
    }

    fn space(&mut self) {
        self.0.push(b' ');
    }

    fn number(&mut self, number: u64) {
        self.digits(number, 10);
    }

    fn base36(&mut self, number: u64) {
        self.digits(number, 36);
    }

    fn digits(&mut self, mut number: u64, base: u64) {
        let start = self.0.len();
        loop {
            self.0.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % base) as usize]);
            number /= base;
            if number == 0 {
                break;
            }
        }
        self.0[start..].reverse();
    }

    fn text(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn close(mut self) -> Vec<u8> {
        let sum = crc32fast::hash(&self.0[9..]);
        for (place, digit) in self.0[1..9].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(sum >> (28 - 4 * place) & 15) as usize];
        }
        self.0.push(b'\n');
        self.0
    }
}

/// The records of this module hold no map whose keys are not text, so that writing them as JSON
/// does not fail; if it did, a reader would refuse the empty text.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(crate) fn header(header: &Header) -> Vec<u8> {
    let mut line = Line::new('H', 160);
    line.number(u64::from(FORMAT));
    line.space();
    line.text(&json(header));
    line.close()
}

pub(crate) fn claim(record: &ClaimRecord) -> Vec<u8> {
    let mut line = Line::new('C', 96);
    line.number(record.fence);
    line.text(&format!(" {} {:x} ", record.token, record.owner));
    line.number(record.until);
    line.close()
}

/// A message as it is written.
pub(crate) fn message_text(message: &Message) -> MessageText {
    let (t, b) = match String::from_utf8(message.body.clone()) {
        Ok(text) => (Some(text), None),
        Err(_) => (None, Some(BASE64.encode(&message.body))),
    };
    MessageText {
        k: message.key.clone(),
        d: message.digest.clone(),
        q: message.interrupt.clone(),
        x: message.expiry,
        t,
        b,
    }
}

pub(crate) fn messages<'a>(
    at: u64,
    messages: impl Iterator<Item = &'a Message>,
    kept: bool,
) -> Vec<u8> {
    let texts: Vec<MessageText> = messages.map(message_text).collect();
    let mut line = Line::new(if kept { 'k' } else { 'p' }, 256);
    line.base36(at);
    line.space();
    line.text(&json(&texts));
    line.close()
}

pub(crate) fn origin(origin: &Origin) -> Vec<u8> {
    let mut line = Line::new('o', 256);
    line.text(&json(origin));
    line.close()
}

pub(crate) fn removed(fence: u64) -> Vec<u8> {
    let mut line = Line::new('X', 24);
    line.number(fence);
    line.close()
}

pub(crate) fn moved(fence: u64, offset: u64, name: &str) -> Vec<u8> {
    let mut line = Line::new('V', 96);
    line.number(fence);
    line.space();
    line.number(offset);
    line.space();
    line.text(name);
    line.close()
}
