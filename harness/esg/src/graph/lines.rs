//! The lines of a journal, plain or encrypted.
//!
//! A line is 16 hex digits of the BLAKE3 hash of the rest, a space, the rest, a newline. In a plain
//! journal the rest is a record as JSON. An encrypted one begins with a line that names the journal; the
//! rest of the others is the encrypted record in base64, bound to that name and to the number of the line.
//! A hash is that of encrypted bytes then, and shows nothing of the record.
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;

use crate::cipher::{Cipher, CipherError};
use crate::error::EsgError;
use crate::ledger::{JournalError, Record};

/// Begins the first line of an encrypted journal. No JSON begins so.
const ENCRYPTED: &[u8] = b"encrypted ";
/// The version of the format, before the name of the journal.
const FIRST: &[u8] = b"encrypted 1 ";

/// Writes the lines of one journal.
#[derive(Debug, Default)]
pub(super) struct Lines {
    encryption: Option<Encryption>,
}

#[derive(Debug)]
struct Encryption {
    cipher: Arc<dyn Cipher>,
    /// Random: no line of another journal decrypts here.
    name: Vec<u8>,
    /// The number of the next record.
    next: u64,
}

impl Lines {
    /// The lines of a new journal.
    pub(super) fn new(cipher: Option<Arc<dyn Cipher>>) -> Self {
        let name = || uuid::Uuid::new_v4().simple().to_string().into_bytes();
        let encryption = cipher.map(|cipher| Encryption { cipher, name: name(), next: 0 });
        Self { encryption }
    }

    /// The same for a journal that takes the place of this one.
    pub(super) fn replaced(&self) -> Self {
        Self::new(self.encryption.as_ref().map(|encryption| Arc::clone(&encryption.cipher)))
    }

    /// With what a new journal begins.
    pub(super) fn beginning(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        if let Some(Encryption { name, .. }) = &self.encryption {
            line(&mut lines, &[FIRST, name].concat());
        }
        lines
    }

    /// The next records as lines. They count once they are [written](Self::wrote).
    pub(super) fn of(&self, records: &[Record], path: &str) -> Result<Vec<u8>, JournalError> {
        let mut lines = Vec::new();
        for (at, record) in (0..).zip(records) {
            let json = serde_json::to_vec(record).map_err(|error| {
                JournalError::new(format!("failed to encode a record for `{path}`"))
                    .with_source(error)
            })?;
            match &self.encryption {
                None => line(&mut lines, &json),
                Some(encryption) => {
                    let place = encryption.place(encryption.next + at);
                    let encrypted = encryption.cipher.encrypt(&place, &json);
                    line(&mut lines, BASE64.encode(encrypted).as_bytes());
                }
            }
        }
        Ok(lines)
    }

    /// Counts records that are in the journal.
    pub(super) fn wrote(&mut self, records: usize) {
        if let Some(encryption) = &mut self.encryption {
            encryption.next += records as u64;
        }
    }

    /// Reads a journal that is not empty: its records, and its size in bytes without an incomplete
    /// last line.
    pub(super) fn read(
        text: &[u8],
        cipher: Option<Arc<dyn Cipher>>,
        path: &str,
    ) -> Result<(Self, Vec<Record>, usize), EsgError> {
        let mut lines = Self::new(cipher);
        let (mut records, mut at) = (Vec::new(), 0);
        while let Some(length) = text[at..].iter().position(|&byte| byte == b'\n') {
            let damaged = || EsgError::damaged(path, at);
            let rest = checked(&text[at..at + length]).ok_or_else(damaged)?;
            let begins = at == 0 && rest.starts_with(ENCRYPTED);
            match &mut lines.encryption {
                None if begins => return Err(EsgError::encrypted(path)),
                None => records.push(serde_json::from_slice(rest).map_err(|_| damaged())?),
                Some(encryption) if begins => {
                    encryption.name = rest.strip_prefix(FIRST).ok_or_else(damaged)?.to_vec();
                }
                Some(_) if at == 0 => return Err(EsgError::cipher(path, CipherError::Plain)),
                Some(encryption) => {
                    let encrypted = BASE64.decode(rest).map_err(|_| damaged())?;
                    let place = encryption.place(encryption.next);
                    let json = match encryption.cipher.decrypt(&place, &encrypted) {
                        Ok(json) => json,
                        Err(error) if error.is_of_key() => {
                            return Err(EsgError::cipher(path, error));
                        }
                        Err(_) => return Err(damaged()),
                    };
                    records.push(serde_json::from_slice(&json).map_err(|_| damaged())?);
                    encryption.next += 1;
                }
            }
            at += length + 1;
        }
        Ok((lines, records, at))
    }
}

impl Encryption {
    /// The place of a record.
    fn place(&self, number: u64) -> Vec<u8> {
        [b"journal ", self.name.as_slice(), b" ", &number.to_le_bytes()].concat()
    }
}

fn line(lines: &mut Vec<u8>, rest: &[u8]) {
    lines.extend_from_slice(digest(rest).as_bytes());
    lines.push(b' ');
    lines.extend_from_slice(rest);
    lines.push(b'\n');
}

/// The rest of a line, if it has its hash.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (head, rest) = line.split_at_checked(17)?;
    (head[16] == b' ' && head[..16] == *digest(rest).as_bytes()).then_some(rest)
}

fn digest(rest: &[u8]) -> String {
    blake3::hash(rest).to_hex()[..16].to_owned()
}
