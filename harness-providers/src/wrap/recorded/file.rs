//! The file of a recording: lines of JSON. The first names the model.

use super::RecordedError;
use harness::llm::{Caps, ModelId, Reply, Spend};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The version of the file.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Head {
    harness_recording: u32,
    model: ModelId,
    caps: Caps,
}

#[derive(Serialize, Deserialize)]
struct Line {
    request: Value,
    reply: Reply,
    spend: Spend,
}

/// The lines of a file, and the file if it is written.
pub(super) struct Recording {
    lines: Vec<(usize, Line)>,
    by_key: HashMap<[u8; 32], usize>,
    /// The number of the next line.
    next: usize,
    file: Option<File>,
}

impl Recording {
    pub(super) fn to_read(path: &Path) -> Result<(Self, ModelId, Caps), RecordedError> {
        let bytes = std::fs::read(path).map_err(file_error(path))?;
        let (recording, head, _) = Self::of(path, &bytes)?;
        match head {
            Some(head) => Ok((recording, head.model, head.caps)),
            None => {
                Err(file_error(path)(io::Error::new(io::ErrorKind::InvalidData, "it is empty")))
            }
        }
    }

    pub(super) fn to_write(path: &Path, id: &ModelId, caps: Caps) -> Result<Self, RecordedError> {
        let bad = file_error(path);
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).to_owned();
        let mut file = options.open(path).map_err(&bad)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => RecordedError::InUse { path: path.to_owned() },
            TryLockError::Error(error) => bad(error),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(&bad)?;
        let (mut recording, head, whole) = Self::of(path, &bytes)?;
        // What was not completed is replaced.
        file.set_len(whole as u64).map_err(&bad)?;
        file.seek(SeekFrom::End(0)).map_err(&bad)?;
        if bytes[..whole].last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(&bad)?;
        }
        match head {
            Some(head) if head.model != *id => {
                return Err(RecordedError::OtherModel {
                    path: path.to_owned(),
                    recorded: head.model,
                    model: id.clone(),
                });
            }
            Some(_) => {}
            None => {
                let head = Head { harness_recording: VERSION, model: id.clone(), caps };
                append(&mut file, &head).map_err(&bad)?;
                recording.next += 1;
            }
        }
        recording.file = Some(file);
        Ok(recording)
    }

    /// Reads the lines, and the length of those that were completed.
    fn of(path: &Path, bytes: &[u8]) -> Result<(Self, Option<Head>, usize), RecordedError> {
        // Each line was completed by its end, of which an editor may leave out the last.
        let ended = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let is_whole = match ended {
            0 => serde_json::from_slice::<Head>(bytes).is_ok(),
            _ => serde_json::from_slice::<Line>(&bytes[ended..]).is_ok(),
        };
        let whole = if is_whole { bytes.len() } else { ended };
        let mut recording = Self { lines: Vec::new(), by_key: HashMap::new(), next: 1, file: None };
        let mut head = None;
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            let number = recording.next;
            recording.next += 1;
            let bad = |cause| RecordedError::Line { path: path.to_owned(), line: number, cause };
            if number == 1 {
                let read: Head = serde_json::from_slice(line).map_err(bad)?;
                if read.harness_recording != VERSION {
                    let other = format!("it has version {}", read.harness_recording);
                    return Err(file_error(path)(io::Error::new(
                        io::ErrorKind::Unsupported,
                        other,
                    )));
                }
                head = Some(read);
                continue;
            }
            let mut line: Line = serde_json::from_slice(line).map_err(bad)?;
            line.request.sort_all_objects();
            recording.insert(super::digest(&line.request), number, line);
        }
        Ok((recording, head, whole))
    }

    fn insert(&mut self, key: [u8; 32], number: usize, line: Line) {
        self.by_key.insert(key, self.lines.len());
        self.lines.push((number, line));
    }

    pub(super) fn find(&self, key: &[u8; 32]) -> Option<(Reply, Spend)> {
        let (_, line) = self.lines.get(*self.by_key.get(key)?)?;
        Some((line.reply.clone(), line.spend))
    }

    /// The requests, each with the number of its line.
    pub(super) fn requests(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.lines.iter().map(|(number, line)| (*number, &line.request))
    }

    /// Keeps a reply. Returns the one that was recorded first.
    pub(super) fn keep(
        &mut self,
        key: [u8; 32],
        request: Value,
        reply: Reply,
        spend: Spend,
    ) -> io::Result<Reply> {
        if let Some((first, _)) = self.find(&key) {
            return Ok(first);
        }
        let line = Line { request, reply, spend };
        if let Some(file) = &mut self.file {
            append(file, &line)?;
        }
        let reply = line.reply.clone();
        self.insert(key, self.next, line);
        self.next += 1;
        Ok(reply)
    }
}

/// Appends a line in one write, so that a kill leaves at most one line that is not completed.
fn append(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    let before = file.stream_position()?;
    let written = file.write_all(&bytes);
    if written.is_err() {
        // The next line must not follow half a line.
        file.set_len(before)?;
        file.seek(SeekFrom::Start(before))?;
    }
    written
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> RecordedError {
    move |cause| RecordedError::File { path: path.to_owned(), cause }
}
