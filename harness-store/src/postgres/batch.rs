//! What is kept of a batch with entries: one row.

use harness::store::{Message, NewEntry, StoreError, Token};
use harness::{Seq, SessionId};
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;

use crate::sql::{corrupt, unframe};

use super::error::unexpected;

/// The most bytes that an index takes of an id.
pub(crate) const MAX_ID: u64 = 1_024;

/// A number as the database has it: the same bits.
pub(crate) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// A seq that a caller may have made up, as one that can be added to.
pub(crate) fn seq(seq: Seq) -> i64 {
    signed(seq.0.min(1 << 62))
}

pub(crate) fn token(token: Token) -> Vec<u8> {
    token.as_u128().to_be_bytes().to_vec()
}

pub(crate) fn token_of(bytes: &[u8]) -> Option<Token> {
    Some(Token::from_u128(u128::from_be_bytes(bytes.try_into().ok()?)))
}

pub(crate) fn check_id(id: &str) -> Result<(), StoreError> {
    match id.len() as u64 {
        bytes if bytes > MAX_ID => Err(StoreError::TooLarge { bytes, limit: MAX_ID }),
        _ => Ok(()),
    }
}

/// The places of the snapshots among entries, of which the first is at `first`; `None` without one.
pub(crate) fn snapshots(first: i64, entries: &[NewEntry<'_>]) -> Option<Vec<i64>> {
    let places = entries.iter().zip(first..).filter(|(entry, _)| entry.snapshot);
    Some(places.map(|(_, seq)| seq).collect::<Vec<_>>()).filter(|it| !it.is_empty())
}

fn digest(hash: Sha256) -> Vec<u8> {
    hash.finalize()[..16].to_vec()
}

/// The checksum of a batch, which the function `damage` computes, too.
pub(crate) fn sum(id: &SessionId, first: i64, last: i64, token: &[u8], framed: &[u8]) -> Vec<u8> {
    let id = id.as_str().as_bytes();
    let mut hash = Sha256::new();
    hash.update(first.to_be_bytes());
    hash.update(last.to_be_bytes());
    hash.update(token);
    hash.update((id.len() as u64).to_be_bytes());
    hash.update(id);
    hash.update(framed);
    digest(hash)
}

/// The checksum of a message.
pub(crate) fn message_sum(id: &SessionId, message: &Message) -> Vec<u8> {
    let interrupt = message.interrupt.as_ref().map(|id| id.as_str());
    let mut hash = Sha256::new();
    hash.update([u8::from(message.expiry), u8::from(interrupt.is_some())]);
    let texts = [id.as_str(), &*message.key, &*message.digest, interrupt.unwrap_or_default()];
    for part in texts.map(str::as_bytes).into_iter().chain([&*message.body]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    digest(hash)
}

/// A row of the table of batches, which is sound.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) entries: Vec<(&'a [u8], bool)>,
}

impl<'a> Stored<'a> {
    /// `after` is the last sound entry before it.
    pub(crate) fn check(
        id: &SessionId,
        after: u64,
        [first, last]: [i64; 2],
        token: &[u8],
        expected: &[u8],
        framed: &'a [u8],
    ) -> Result<Self, StoreError> {
        let damaged = |what: &str| corrupt(id, after, format!("the next batch {what}"));
        if sum(id, first, last, token, framed) != expected {
            return Err(damaged("is not what was written: its checksum differs"));
        }
        let entries = unframe(framed).ok_or_else(|| damaged("is not whole"))?;
        let (first, last) = (first.cast_unsigned(), last.cast_unsigned());
        if last.checked_sub(first).is_none_or(|more| more + 1 != entries.len() as u64) {
            return Err(damaged("has another number of entries"));
        }
        Ok(Self { first, last, entries })
    }
}

/// A row of the functions that answer with several kinds of rows.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) kind: i16,
    numbers: Vec<Option<i64>>,
    blobs: Vec<Option<&'a [u8]>>,
}

impl<'a> Found<'a> {
    pub(crate) fn new(row: &'a Row) -> Result<Self, StoreError> {
        let wrong = |_| unexpected("a row of another form");
        Ok(Self {
            kind: row.try_get(0).map_err(wrong)?,
            numbers: row.try_get(1).map_err(wrong)?,
            blobs: row.try_get(2).map_err(wrong)?,
        })
    }

    pub(crate) fn number(&self, place: usize) -> Option<i64> {
        self.numbers.get(place).copied().flatten()
    }

    pub(crate) fn count(&self, place: usize) -> u64 {
        self.number(place).unwrap_or_default().cast_unsigned()
    }

    pub(crate) fn blob(&self, place: usize) -> Option<&'a [u8]> {
        self.blobs.get(place).copied().flatten()
    }

    pub(crate) fn text(&self, place: usize) -> Option<String> {
        String::from_utf8(self.blob(place)?.to_vec()).ok()
    }
}

/// A value of a row that is never null.
pub(crate) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    place: usize,
) -> Result<T, StoreError> {
    row.try_get(place).map_err(|_| unexpected("a row of another form"))
}
