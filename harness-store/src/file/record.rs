//! The records of a log file, as text.
//!
//! A record is one line, written by one `write` to the end of the file:
//!
//! ```text
//! \n <checksum, 8 hex digits> <kind, one character> <fields> \n
//! ```
//!
//! The newline in front costs a byte and buys that a record stays whole when the one before it was
//! torn: the line of a torn record ends with the newline of its successor, and no newline of its
//! own stands there. So a torn record can always be distinguished from a damaged one.
//!
//! | kind | fields | meaning |
//! |---|---|---|
//! | `H` | version, JSON | the session begins |
//! | `C` | fence, token, owner, deadline | a claim record; the first with a fence wins; one with owner 0 is a release, and has the last message that was read in place of the deadline |
//! | `b` | fence, after, time, entry | a batch of one entry and nothing else |
//! | `m` | fence, after, time, length of the JSON, JSON, entries | any other batch |
//! | `p` | time, JSON | messages |
//! | `k` | time, JSON | messages that a rewritten log keeps: their turn was decided before |
//! | `o` | JSON | what a rewritten log begins with |
//! | `X` | fence | the session is removed |
//! | `V` | fence, own offset, name | the log continues in another file |
//!
//! A batch whose kind is in upper case was written when all before it, back to its claim, had been
//! made durable.

#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use harness::UtcMillis;
use harness::store::{Message, OpenInterrupt, SessionSummary, Token};
use serde::{Deserialize, Serialize};

pub(crate) use write::{Prepared, claim, header, message_text, messages, moved, origin, removed};

/// The format written, and the newest that is read.
pub(crate) const FORMAT: u32 = 1;

/// The most bytes of entries that one record takes.
pub(crate) const MAX_RECORD: u64 = 64 * 1024 * 1024;

/// What a log begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) id: harness::SessionId,
    /// Distinguishes a session from an earlier one with the same id.
    pub(crate) epoch: String,
    /// How often the log was rewritten.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) rewritten: u64,
    /// What the times of batches count from.
    pub(crate) at: u64,
}

/// What a rewritten log takes over from the entries it no longer has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The first entry that is kept.
    pub(crate) first: u64,
    pub(crate) created: UtcMillis,
    pub(crate) updated: UtcMillis,
    pub(crate) summary: SessionSummary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) interrupts: Vec<OpenInterrupt>,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimRecord {
    pub(crate) fence: u64,
    pub(crate) token: Token,
    /// The store that claimed, by the name under which it shows that it lives.
    pub(crate) owner: u64,
    /// When the lease expires, in milliseconds since the machine started; of a release, the last
    /// message that the holder has read.
    pub(crate) until: u64,
}

/// What a batch says beside its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// The lengths of the entries, as they stand in the line; negative for a snapshot.
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lengths: Vec<i64>,
    /// Whether the entries are in base 64, as some hold bytes that would break the line.
    #[serde(rename = "e", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) escaped: bool,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<SessionSummary>,
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) open: Vec<OpenInterrupt>,
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) close: Vec<harness::InterruptId>,
}

/// A batch as it stands in the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BatchRecord<'a> {
    pub(crate) fence: u64,
    pub(crate) after: u64,
    /// Milliseconds since the time of the header.
    pub(crate) at: i64,
    /// Whether all before it, back to its claim, was durable when it was written.
    pub(crate) synced: bool,
    /// `None` if it is one plain entry.
    pub(crate) meta: Option<Cow<'a, Meta>>,
    /// Everything after the time.
    pub(crate) body: &'a [u8],
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record<'a> {
    Header(u32, Option<Header>),
    Claim(ClaimRecord),
    Batch(BatchRecord<'a>),
    Messages { at: u64, messages: Vec<Message>, kept: bool },
    Origin(Box<Origin>),
    Removed { fence: u64 },
    Moved { offset: u64, name: String },
}

impl Record<'_> {
    pub(crate) fn has_snapshot(&self) -> bool {
        match self {
            Self::Batch(BatchRecord { meta: Some(meta), .. }) => {
                meta.lengths.iter().any(|length| *length < 0)
            }
            _ => false,
        }
    }
}

/// A message as it stands in the log: a body that is text stays readable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageText {
    k: String,
    d: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    q: Option<harness::InterruptId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    x: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    t: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    b: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The entries of a batch; `None` if what a sound line holds is none, or not what its lengths say.
pub(crate) fn entries(line: &[u8]) -> Option<Vec<(Vec<u8>, bool)>> {
    /// As much of [`Meta`] as is asked for here, under the same names.
    #[derive(Deserialize)]
    struct Shape {
        #[serde(rename = "n", default)]
        lengths: Vec<i64>,
        #[serde(rename = "e", default)]
        escaped: bool,
    }
    let (kind, rest) = line.get(8..)?.split_first()?;
    let Fields { meta, payload: mut rest, .. } = fields(*kind, rest)?;
    let Some(meta) = meta else {
        return Some(vec![(rest.to_vec(), false)]);
    };
    let meta: Shape = serde_json::from_slice(meta).ok()?;
    let mut entries = Vec::with_capacity(meta.lengths.len());
    for length in &meta.lengths {
        let snapshot = *length < 0;
        let length = if snapshot { -1 - *length } else { *length };
        let (entry, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = behind;
        let entry = if meta.escaped { BASE64.decode(entry).ok()? } else { entry.to_vec() };
        entries.push((entry, snapshot));
    }
    rest.is_empty().then_some(entries)
}

/// A record without the newlines around it. Where the last never reached the disk, it is missing or
/// a zero; no record has one before it.
pub(crate) fn inner(record: &[u8]) -> &[u8] {
    let line = record.strip_prefix(b"\n").unwrap_or(record);
    line.strip_suffix(b"\n").or_else(|| line.strip_suffix(b"\0")).unwrap_or(line)
}

/// Whether a line, without its newlines, is what was written.
pub(crate) fn is_sound(line: &[u8]) -> bool {
    let Some((sum, body)) = line.split_at_checked(8) else { return false };
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(u32::from(byte - b'0')),
        b'a'..=b'f' => Some(u32::from(byte - b'a') + 10),
        _ => None,
    };
    let sum = sum.iter().try_fold(0, |sum, byte| Some(sum << 4 | digit(byte)?));
    !body.is_empty() && sum == Some(crc32fast::hash(body))
}

/// Reads a sound line. `None` if it is no record that this version writes.
pub(crate) fn parse(line: &[u8]) -> Option<Record<'_>> {
    let (kind, rest) = line.get(8..)?.split_first()?;
    match kind {
        b'H' => {
            let (version, rest) = word(rest)?;
            let version = u32::try_from(decimal(version)?).ok()?;
            let header =
                if version <= FORMAT { Some(serde_json::from_slice(rest).ok()?) } else { None };
            Some(Record::Header(version, header))
        }
        b'C' => {
            let (fence, rest) = word(rest)?;
            let (token, rest) = word(rest)?;
            let (owner, until) = word(rest)?;
            Some(Record::Claim(ClaimRecord {
                fence: decimal(fence)?,
                token: Token::from_u128(u128::from_str_radix(text(token)?, 16).ok()?),
                owner: u64::from_str_radix(text(owner)?, 16).ok()?,
                until: decimal(until)?,
            }))
        }
        b'b' | b'B' | b'm' | b'M' => {
            let Fields { fence, after, at, body, meta, .. } = fields(*kind, rest)?;
            let meta = match meta {
                Some(meta) => Some(Cow::Owned(serde_json::from_slice(meta).ok()?)),
                None => None,
            };
            Some(Record::Batch(BatchRecord {
                fence: decimal(fence)?,
                after: decimal(after)?,
                at: i64::from_str_radix(text(at)?, 36).ok()?,
                synced: kind.is_ascii_uppercase(),
                meta,
                body,
            }))
        }
        b'p' | b'k' => {
            let (at, rest) = word(rest)?;
            let texts: Vec<MessageText> = serde_json::from_slice(rest).ok()?;
            let messages = texts.into_iter().map(message).collect::<Option<_>>()?;
            let at = u64::from_str_radix(text(at)?, 36).ok()?;
            Some(Record::Messages { at, messages, kept: *kind == b'k' })
        }
        b'o' => Some(Record::Origin(serde_json::from_slice(rest).ok()?)),
        b'X' => Some(Record::Removed { fence: decimal(rest)? }),
        b'V' => {
            let (_, rest) = word(rest)?;
            let (offset, name) = word(rest)?;
            Some(Record::Moved { offset: decimal(offset)?, name: text(name)?.to_owned() })
        }
        _ => None,
    }
}

/// What stands behind the kind of a batch.
struct Fields<'a> {
    fence: &'a [u8],
    after: &'a [u8],
    at: &'a [u8],
    /// All behind the time.
    body: &'a [u8],
    /// The JSON in it, if it is not one plain entry.
    meta: Option<&'a [u8]>,
    /// The entries in it.
    payload: &'a [u8],
}

fn fields(kind: u8, rest: &[u8]) -> Option<Fields<'_>> {
    let (fence, rest) = word(rest)?;
    let (after, rest) = word(rest)?;
    let (at, body) = word(rest)?;
    let (meta, payload) = match kind.to_ascii_lowercase() {
        b'b' => (None, body),
        b'm' => {
            let (length, rest) = word(body)?;
            let (meta, payload) = rest.split_at_checked(usize::try_from(decimal(length)?).ok()?)?;
            (Some(meta), payload)
        }
        _ => return None,
    };
    Some(Fields { fence, after, at, body, meta, payload })
}

pub(crate) fn message(text: MessageText) -> Option<Message> {
    let body = match (text.t, text.b) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(coded)) => BASE64.decode(coded).ok()?,
        _ => return None,
    };
    Some(Message { key: text.k, digest: text.d, interrupt: text.q, expiry: text.x, body })
}

/// What stands before the first space, and behind it.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b' ')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn decimal(bytes: &[u8]) -> Option<u64> {
    text(bytes)?.parse().ok()
}
