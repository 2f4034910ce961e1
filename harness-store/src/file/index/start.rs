//! Leaving out what comes before the last snapshot.

use harness::store::{Message, Token};

use super::Index;
use crate::file::disk::DiskFile;
use crate::file::record::{self, ClaimRecord, Record};
use crate::file::start::{MAX_MESSAGES, Start, WORTH, boot_id};

impl Index {
    /// The fold of the log before a record with a snapshot, if it pays to start there.
    pub(super) fn start_before(
        &self,
        sum: crc32fast::Hasher,
        offset: u64,
        line: &[u8],
    ) -> Option<Start> {
        let last = self.start.as_ref().map_or(0, |start| start.offset);
        let messages = || self.messages.iter().map(|stored| &stored.message);
        let weight =
            |message: &Message| message.body.len() + message.key.len() + message.digest.len();
        if offset < last + WORTH || messages().map(weight).sum::<usize>() > MAX_MESSAGES {
            return None;
        }
        let (header, claim) = (self.header.as_ref()?, self.claim.as_ref()?);
        Some(Start {
            epoch: header.epoch.clone(),
            rewritten: header.rewritten,
            offset,
            len: line.len() as u64,
            record: crc32fast::hash(line),
            sum: sum.finalize(),
            torn: self.torn,
            named: self.named,
            fence: claim.fence,
            token: claim.token.to_string(),
            owner: claim.owner,
            until: claim.until,
            first: self.first,
            head: self.head,
            created: self.created?,
            updated: self.updated,
            summary: self.summary.clone()?,
            interrupts: self.interrupts.values().cloned().collect(),
            messages: messages().map(record::message_text).collect(),
            boot: None,
        })
    }

    /// Whether the file is the log it was taken from, as far as is known without reading all of it.
    pub(crate) fn started(start: &Start, file: &dyn DiskFile) -> std::io::Result<Option<Self>> {
        let mut bytes = vec![0; harness::id::MAX_SESSION_ID * 6 + 512];
        let read = file.read_at(&mut bytes, 0)?;
        let line = bytes[..read].split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
        let Some(Record::Header(_, Some(header))) =
            record::is_sound(line).then(|| record::parse(line)).flatten()
        else {
            return Ok(None);
        };
        let same = (&*header.epoch, header.rewritten) == (&*start.epoch, start.rewritten);
        let this_boot = start.boot.is_none() || start.boot == boot_id();
        let long = file.stat()?.len >= start.offset.saturating_add(start.len);
        if !same || !this_boot || !long || start.len > 2 * record::MAX_RECORD {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(start.len).unwrap_or(0)];
        let read = file.read_at(&mut bytes, start.offset)?;
        if read < bytes.len() || crc32fast::hash(&bytes) != start.record {
            return Ok(None);
        }
        let messages: Option<Vec<Message>> =
            start.messages.iter().cloned().map(record::message).collect();
        let token = u128::from_str_radix(&start.token, 16).map(Token::from_u128);
        let (Some(messages), Ok(token)) = (messages, token) else { return Ok(None) };
        let mut index = Self {
            end: start.offset,
            sum: crc32fast::Hasher::new_with_initial_len(start.sum, start.offset),
            header: Some(header),
            claim: Some(ClaimRecord {
                fence: start.fence,
                token,
                owner: start.owner,
                until: start.until,
            }),
            claims: vec![(start.fence, token)],
            first: start.first,
            head: start.head,
            created: Some(start.created),
            updated: start.updated,
            summary: Some(start.summary.clone()),
            interrupts: start.interrupts.iter().map(|one| (one.id.clone(), one.clone())).collect(),
            torn: start.torn,
            named: start.named,
            start: Some(start.clone()),
            base: Some(start.head),
            ..Self::default()
        };
        index.send(messages);
        Ok(Some(index))
    }
}
