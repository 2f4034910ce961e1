//! The identity of code: a hash over its syntax tree.

use std::hash::{Hash, Hasher};

use super::parse::{Stmt, VERSION, ast};

/// Stands before a number that takes more than a byte.
const LONG: u8 = 254;
/// Stands before the identity of a definition, where a statement would begin.
const PART: u8 = 255;

/// Writes what a tree hashes into one buffer, so that blake3 is fed once.
#[derive(Default)]
struct Buffer(Vec<u8>);

impl Hasher for Buffer {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn write_u8(&mut self, value: u8) {
        self.0.push(value);
    }

    // The same bytes on every machine, and few: these are lengths and the kinds of nodes.
    fn write_usize(&mut self, value: usize) {
        match u8::try_from(value) {
            Ok(value) if value < LONG => self.0.push(value),
            _ => {
                self.0.push(LONG);
                self.0.extend_from_slice(&(value as u64).to_le_bytes());
            }
        }
    }

    fn write_isize(&mut self, value: isize) {
        self.write_usize(value.cast_unsigned());
    }

    fn write_u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn write_u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
}

fn digest(kind: &str, bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(VERSION.as_bytes());
    hasher.update(kind.as_bytes());
    hasher.update(bytes);
    *hasher.finalize().as_bytes()
}

/// The identity of a source that does not parse: its text.
pub(super) fn of_text(source: &str) -> [u8; 32] {
    digest(" text ", source.as_bytes())
}

/// The identity of a step, and those of the functions and classes at its top, in their order.
pub(super) fn of_tree(body: &[Stmt]) -> ([u8; 32], Vec<[u8; 32]>) {
    let mut buffer = Buffer(Vec::with_capacity(256));
    let mut definitions = Vec::new();
    for statement in body {
        let start = buffer.0.len();
        ast::comparable::ComparableStmt::from(statement).hash(&mut buffer);
        if matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            let part = digest(" tree ", &buffer.0[start..]);
            buffer.0.truncate(start);
            buffer.0.push(PART);
            buffer.0.extend_from_slice(&part);
            definitions.push(part);
        }
    }
    (digest(" tree ", &buffer.0), definitions)
}
