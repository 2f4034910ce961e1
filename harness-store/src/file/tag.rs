//! The tag of a session at rest: what its note says that must not be lost, in an attribute of the
//! log itself.
//!
//! To make another file can cost as much as to sync this one, and all who sync wait for it; to set
//! an attribute of a file that was just written costs next to nothing. So a log is tagged as soon as
//! its session comes to rest, and the note, which also goes along where attributes do not and tells
//! lists what they show, is written a moment later behind everybody's back (`notes`). A tag goes
//! away with its file, so it is never that of a log which was removed or rewritten. Where the file
//! system knows no attributes, the note is written at once.
//!
//! Numbers are little-endian: the version (1 byte), the life of the log (16), how often it was
//! rewritten (8), the place up to which it was acknowledged (8), the checksum of all up to there
//! (4), whether that was durable (1), the token of the lease it was tagged under, once that is
//! released, and zeros until then (16), and the CRC-32 of all this (4).

use harness::store::Token;

use super::disk::DiskFile;
use super::index::Mark;
use super::rest::Rest;

const VERSION: u8 = 1;

/// Small enough for the room that file systems leave for attributes in the inode.
const LEN: usize = 58;

/// What is said of a log whose session came to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) mark: Mark,
    /// Whether the log and its name were durable.
    pub(crate) durable: bool,
    /// The token of the lease it was written under, once that is released.
    pub(crate) released: Option<Token>,
}

impl Tag {
    /// What a note says.
    pub(crate) fn of(rest: &Rest) -> Self {
        let released = rest.released.as_deref();
        Self {
            mark: rest.mark(),
            durable: rest.durable,
            released: released
                .and_then(|token| u128::from_str_radix(token, 16).ok())
                .map(Token::from_u128),
        }
    }

    /// What tells more of a log: its tag, unless the note says that it was acknowledged further on. A
    /// loss of power may keep a note and take the tag that was written before it.
    pub(crate) fn later(tag: Option<Self>, note: Option<Self>) -> Option<Self> {
        match (tag, note) {
            (Some(tag), Some(note)) => {
                let (of_tag, of_note) = (&tag.mark, &note.mark);
                let same = (&of_tag.life, of_tag.rewritten) == (&of_note.life, of_note.rewritten);
                Some(if same && of_note.offset > of_tag.offset { note } else { tag })
            }
            (tag, note) => tag.or(note),
        }
    }

    /// The tag of a log; `None` if it has none that is whole.
    pub(crate) fn on(log: &dyn DiskFile) -> Option<Self> {
        Self::parse(&log.tag()?)
    }

    /// Whether the log has it now.
    pub(crate) fn put(&self, log: &dyn DiskFile) -> bool {
        self.bytes().is_some_and(|bytes| log.set_tag(&bytes).is_ok())
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let life = u128::from_str_radix(&self.mark.life, 16).ok()?;
        let mut bytes = Vec::with_capacity(LEN);
        bytes.push(VERSION);
        bytes.extend(life.to_le_bytes());
        bytes.extend(self.mark.rewritten.to_le_bytes());
        bytes.extend(self.mark.offset.to_le_bytes());
        bytes.extend(self.mark.sum.to_le_bytes());
        bytes.push(u8::from(self.durable));
        bytes.extend(self.released.map_or(0, Token::as_u128).to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        Some(bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (said, sum) = bytes.split_last_chunk()?;
        let mut rest = said;
        let version = take::<1>(&mut rest)?;
        let life = u128::from_le_bytes(take(&mut rest)?);
        let mark = Mark {
            life: Token::from_u128(life).to_string(),
            rewritten: u64::from_le_bytes(take(&mut rest)?),
            offset: u64::from_le_bytes(take(&mut rest)?),
            sum: u32::from_le_bytes(take(&mut rest)?),
        };
        let durable = take::<1>(&mut rest)? != [0];
        let released = u128::from_le_bytes(take(&mut rest)?);
        let whole = version == [VERSION]
            && rest.is_empty()
            && crc32fast::hash(said) == u32::from_le_bytes(*sum);
        let released = (released != 0).then(|| Token::from_u128(released));
        whole.then_some(Self { mark, durable, released })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn tag(released: Option<Token>) -> Tag {
        let life = Token::random().to_string();
        let mark = Mark { life, rewritten: 3, offset: 1 << 40, sum: 0xdead_beef };
        Tag { mark, durable: true, released }
    }

    #[test]
    fn a_tag_is_read_as_it_was_written() {
        for released in [None, Some(Token::random())] {
            let tag = tag(released);
            let bytes = tag.bytes().unwrap();
            assert_eq!(bytes.len(), LEN);
            assert_eq!(Tag::parse(&bytes), Some(tag));
        }
    }

    /// Tags as they are on the logs of the first version, where they stay.
    #[test]
    fn a_tag_has_the_bytes_that_it_always_had() {
        let life = "0af7651916cd43dd8448eb211c80319c".to_owned();
        let mark = Mark { life, rewritten: 3, offset: 0x0100_0000_0102, sum: 0xdead_beef };
        let released = Some(Token::from_u128(0xa368_36c3_7064_4792_9b78_d05b_c440_d379));
        let whole = Tag { mark, durable: true, released };
        let mark = Mark { rewritten: 0, offset: 2008, sum: 0x501c_9a33, ..whole.mark.clone() };
        let plain = Tag { mark, durable: false, released: None };
        for (tag, kept) in [
            (
                whole,
                "019c31801c21eb4884dd43cd161965f70a03000000000000000201000000010000efbeadde0179d340c45bd0789b92476470c33668a3cb473b23",
            ),
            (
                plain,
                "019c31801c21eb4884dd43cd161965f70a0000000000000000d807000000000000339a1c5000000000000000000000000000000000003d8f58ae",
            ),
        ] {
            let bytes = tag.bytes().unwrap();
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digits, kept);
            let kept: Vec<u8> = (0..kept.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&kept[at..at + 2], 16).unwrap())
                .collect();
            assert_eq!(Tag::parse(&kept), Some(tag));
        }
    }

    #[test]
    fn a_tag_that_is_not_whole_is_none() {
        let bytes = tag(Some(Token::random())).bytes().unwrap();
        for len in 0..LEN {
            assert_eq!(Tag::parse(&bytes[..len]), None, "{len}");
        }
        for bit in 0..LEN * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Tag::parse(&flipped), None, "bit {bit}");
        }
        assert_eq!(Tag::parse(&[&bytes[..], &[0]].concat()), None);
    }
}
