//! The identity of code: a hash of its syntax tree.
//!
//! The tree is encoded unambiguously: each node as its kind and its parts, each list as its length
//! and its elements, each text with a terminating byte that no text contains. So equal bytes are
//! equal trees.
mod expr;
mod pattern;
mod stmt;
#[cfg(test)]
mod tests;
mod text;

use super::parse::{Stmt, VERSION};

/// Precedes a number of more than one byte.
const LONG: u8 = 254;
/// Precedes the identity of a definition, in place of a statement.
const PART: u8 = 255;
/// The domain of a hash over a syntax tree.
const TREE: &str = " tree ";
/// Ends a text. No byte of UTF-8 has this value.
const END: u8 = 255;

/// The encoded trees.
struct Writer<'s> {
    bytes: Vec<u8>,
    source: &'s str,
    /// Whether strings may contain characters that the tree does not distinguish.
    escapes: bool,
}

impl<'s> Writer<'s> {
    fn new(source: &'s str) -> Self {
        let bytes = Vec::with_capacity(source.len().min(1 << 16) + 64);
        Self { bytes, source, escapes: text::escapes(source) }
    }

    /// The kind of a node, or an enum value.
    fn kind(&mut self, kind: u8) {
        self.bytes.push(kind);
    }

    fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    fn count(&mut self, count: usize) {
        match u8::try_from(count) {
            Ok(count) if count < LONG => self.bytes.push(count),
            _ => {
                self.bytes.push(LONG);
                self.number(count as u64);
            }
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(END);
    }

    fn maybe<T>(&mut self, part: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(part.is_some());
        if let Some(part) = part {
            write(self, part);
        }
    }

    fn list<'a, T: 'a>(&mut self, parts: &'a [T], mut write: impl FnMut(&mut Self, &'a T)) {
        self.count(parts.len());
        for part in parts {
            write(self, part);
        }
    }
}

/// The prefix of the hash: another parser version gives another identity.
fn head(kind: &str) -> impl Iterator<Item = u8> {
    VERSION.bytes().chain(kind.bytes())
}

/// The identity of a source that does not parse: a hash of its text.
pub(super) fn of_text(source: &str) -> [u8; 32] {
    let bytes: Vec<u8> = head(" text ").chain(source.bytes()).collect();
    *blake3::hash(&bytes).as_bytes()
}

/// Computes the identity of a step and of its top-level functions and classes.
pub(super) struct Identity<'s> {
    writer: Writer<'s>,
    definitions: Vec<[u8; 32]>,
}

impl<'s> Identity<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        let mut writer = Writer::new(source);
        writer.bytes.extend(head(TREE));
        Self { writer, definitions: Vec::new() }
    }

    /// Adds the next statement of the step.
    pub(super) fn add(&mut self, statement: &Stmt) {
        if !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            return self.writer.stmt(statement);
        }
        let start = self.writer.bytes.len();
        self.writer.bytes.extend(head(TREE));
        self.writer.stmt(statement);
        let part = *blake3::hash(&self.writer.bytes[start..]).as_bytes();
        self.writer.bytes.truncate(start);
        self.writer.kind(PART);
        self.writer.bytes.extend_from_slice(&part);
        self.definitions.push(part);
    }

    /// The identity of the step, and those of its definitions in order.
    pub(super) fn done(self) -> ([u8; 32], Vec<[u8; 32]>) {
        (*blake3::hash(&self.writer.bytes).as_bytes(), self.definitions)
    }
}
