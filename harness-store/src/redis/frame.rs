//! What is stored of batches and of messages.

use std::time::Duration;

use harness::store::{Message, StoreError};
use harness::{InterruptId, SessionId};
use sha1_smol::Sha1;

use crate::sql::{corrupt, unframe};

/// Numbers that callers may have made up are counted with as if they were this; the scripts count with
/// floating-point numbers.
pub(crate) const MAX_SEQ: u64 = 1 << 52;

/// A time to live in microseconds, of which the scripts count the sum with any time of the server
/// exactly: at most some thirty years.
pub(crate) fn micros(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX).min(1_000_000_000_000_000)
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha1::from(bytes).digest().to_string()
}

/// The checksum of a batch, which the function `sum_of` of the scripts computes, too.
pub(crate) fn sum(id: &SessionId, first: u64, last: u64, token: &str, framed: &[u8]) -> String {
    let id = id.as_str();
    hash(format!("{first}:{last}:{token}:{}:{id}{}", id.len(), hash(framed)).as_bytes())
}

/// A batch in the log, whose entries are sound.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) bytes: u64,
    /// Each with whether it is a snapshot.
    pub(crate) entries: Option<Vec<(&'a [u8], bool)>>,
}

impl<'a> Stored<'a> {
    /// `place` says where the batch is and what its checksum is; `after` is the last sound entry
    /// before it. There are no entries if it no longer fits into the page.
    pub(crate) fn check(
        id: &SessionId,
        after: u64,
        place: &str,
        framed: Option<&'a [u8]>,
    ) -> Result<Self, StoreError> {
        let damaged = |what: &str| corrupt(id, after, format!("the next batch {what}"));
        let parse = || {
            let mut parts = place.split(':');
            let mut number = || parts.next()?.parse::<u64>().ok();
            let (first, last, bytes) = (number()?, number()?, number()?);
            Some((first, last, bytes, parts.next()?, parts.next()?))
        };
        let Some((first, last, bytes, token, expected)) = parse() else {
            return Err(damaged("has no place in the log"));
        };
        let Some(framed) = framed else {
            return Ok(Self { first, last, bytes, entries: None });
        };
        if sum(id, first, last, token, framed) != expected {
            return Err(damaged("is not what was written: its checksum differs"));
        }
        let entries = unframe(framed).ok_or_else(|| damaged("is not whole"))?;
        if last.checked_sub(first).is_none_or(|more| more + 1 != entries.len() as u64) {
            return Err(damaged("has another number of entries"));
        }
        Ok(Self { first, last, bytes, entries: Some(entries) })
    }
}

/// A message as it is stored: a checksum, then its parts, each after its length, then its body.
pub(crate) fn pack(id: &SessionId, message: &Message) -> Vec<u8> {
    let interrupt = message.interrupt.as_ref().map(InterruptId::as_str);
    let mut packed = vec![u8::from(message.expiry) | u8::from(interrupt.is_some()) << 1];
    for part in [&*message.key, &*message.digest, interrupt.unwrap_or_default()] {
        packed.extend((part.len() as u32).to_le_bytes());
        packed.extend_from_slice(part.as_bytes());
    }
    packed.extend_from_slice(&message.body);
    let mut stored = message_sum(id, &packed).to_vec();
    stored.append(&mut packed);
    stored
}

fn message_sum(id: &SessionId, packed: &[u8]) -> [u8; 20] {
    let mut sum = Sha1::from(id.as_str());
    sum.update(&[0xff]);
    sum.update(packed);
    sum.digest().bytes()
}

/// The message, unless it is not what was sent.
pub(crate) fn unpack(id: &SessionId, stored: &[u8]) -> Option<Message> {
    let (expected, packed) = stored.split_first_chunk::<20>()?;
    if message_sum(id, packed) != *expected {
        return None;
    }
    let (flags, mut rest) = packed.split_first()?;
    let mut text = || {
        let (bytes, after) = rest.split_first_chunk::<4>()?;
        let (part, after) = after.split_at_checked(u32::from_le_bytes(*bytes) as usize)?;
        rest = after;
        std::str::from_utf8(part).ok()
    };
    let (key, digest, interrupt) = (text()?.to_owned(), text()?.to_owned(), text()?);
    Some(Message {
        key,
        digest,
        interrupt: (flags & 2 != 0).then(|| InterruptId::new(interrupt)),
        expiry: flags & 1 != 0,
        body: rest.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_message_is_read_back_unless_a_byte_of_it_differs() {
        let id = SessionId::new("s").unwrap();
        let full = Message {
            interrupt: Some(InterruptId::new("q")),
            expiry: true,
            ..Message::new("key\0", "digest", [0, 255])
        };
        for message in [full, Message::new("", "", "")] {
            let stored = pack(&id, &message);
            assert_eq!(unpack(&id, &stored), Some(message));
            assert_eq!(unpack(&SessionId::new("t").unwrap(), &stored), None);
            for at in 0..stored.len() {
                let mut other = stored.clone();
                other[at] ^= 1;
                assert_eq!(unpack(&id, &other), None, "byte {at}");
            }
        }
    }
}
