//! Reading what a log has become longer by, in parts, so that only records take memory.

use std::io;

use harness::store::StoreError;

use super::{Session, State};
use crate::file::disk::DiskFile;
use crate::file::index::{Flaw, Index};

/// How much of a log is read at once.
const CHUNK: usize = 256 * 1024;

/// What the disk gives for what never reached it.
static ZEROS: [u8; CHUNK] = [0; CHUNK];

impl Session {
    pub(in crate::file) fn catch_up(
        &self,
        file: &dyn DiskFile,
        state: &mut State,
        len: u64,
    ) -> Result<Result<(), Flaw>, StoreError> {
        let wrong = |error| self.failed("read", error);
        let mut buffer = Vec::new();
        let mut chunk = CHUNK;
        let begun = state.index.header.is_some();
        while state.index.end < len && state.index.moved.is_none() {
            let left = usize::try_from(len - state.index.end).unwrap_or(usize::MAX);
            buffer.resize(chunk.min(left), 0);
            let read = file.read_at(&mut buffer, state.index.end).map_err(wrong)?;
            let whole = read == left;
            let usable = if whole { read } else { usable(&buffer[..read]) };
            let before = state.index.end;
            if let Err(flaw) = state.index.advance(&buffer[..usable]) {
                return Ok(Err(flaw));
            }
            if !begun && state.index.header.as_ref().is_some_and(|header| header.id != self.id) {
                return Ok(Err(Flaw::Other));
            }
            if whole || read < buffer.len() {
                break;
            }
            if state.index.end > before {
                continue;
            }
            if !begins_with_gap(&buffer) {
                chunk = chunk.saturating_mul(2);
                continue;
            }
            match pass_gap(&mut state.index, file, len).map_err(wrong)? {
                Ok(true) => {}
                Ok(false) => break,
                Err(flaw) => return Ok(Err(flaw)),
            }
        }
        Ok(Ok(()))
    }
}

/// How much of a part of a log can be read: up to its last newline, which is left to the next part
/// if it lacks the byte that shows whose it is.
fn usable(bytes: &[u8]) -> usize {
    let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') else { return 0 };
    if bytes.get(last + 1) == Some(&0) { last + 1 } else { last }
}

/// Whether the line that begins here is no record, however it ends.
fn begins_with_gap(bytes: &[u8]) -> bool {
    let line = bytes.strip_prefix(b"\n").unwrap_or(bytes);
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.windows(2).any(|pair| pair == [0, 0])
}

/// Passes the line that begins where the index ends, however long it is. `false` if it has no end
/// yet.
fn pass_gap(index: &mut Index, file: &dyn DiskFile, len: u64) -> io::Result<Result<bool, Flaw>> {
    let mut buffer = vec![0; CHUNK];
    let mut place = index.end;
    let newline = loop {
        let left = usize::try_from(len - place).unwrap_or(usize::MAX).min(CHUNK);
        let read = file.read_at(&mut buffer[..left], place)?;
        if read == 0 {
            return Ok(Ok(false));
        }
        let bytes = &buffer[..read];
        // The first byte may be the newline that each record begins with.
        let skip = usize::from(place == index.end);
        if *bytes != ZEROS[..read]
            && let Some(at) = bytes[skip..].iter().position(|byte| *byte == b'\n')
        {
            break place + (skip + at) as u64;
        }
        place += read as u64;
    };
    let mut next = [0];
    let last = newline + 1 == len || file.read_at(&mut next, newline + 1)? == 0;
    let end = if last || next[0] == b'\n' || next[0] == 0 { newline + 1 } else { newline };
    while index.end < end {
        let left = usize::try_from(end - index.end).unwrap_or(usize::MAX).min(CHUNK);
        let read = file.read_at(&mut buffer[..left], index.end)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        index.set_aside(&buffer[..read]);
    }
    Ok(index.end_gap().map(|()| true))
}
