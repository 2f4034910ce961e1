//! What a script has answered: an array whose first element names the answer.

use harness::store::{StoreError, Token};
use redis::Value;

use super::error::{emptied, unexpected};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply<'a>(pub(crate) &'a [Value]);

impl<'a> Reply<'a> {
    pub(crate) fn new(value: &'a Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(parts) if !parts.is_empty() => Ok(Self(parts)),
            _ => Err(unexpected("no list")),
        }
    }

    /// The name of the answer.
    pub(crate) fn name(self) -> &'a str {
        self.bytes(0).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    pub(crate) fn bytes(self, place: usize) -> Option<&'a [u8]> {
        match self.0.get(place)? {
            Value::BulkString(bytes) => Some(bytes),
            Value::SimpleString(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    pub(crate) fn text(self, place: usize) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(place)?).ok()
    }

    pub(crate) fn number(self, place: usize) -> Option<u64> {
        match self.0.get(place)? {
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => self.text(place)?.parse().ok(),
        }
    }

    /// A number that is never missing.
    pub(crate) fn count(self, place: usize) -> Result<u64, StoreError> {
        self.number(place).ok_or_else(|| unexpected("a list without one of its numbers"))
    }

    pub(crate) fn list(self, place: usize) -> Result<&'a [Value], StoreError> {
        match self.0.get(place) {
            Some(Value::Array(parts)) => Ok(parts),
            _ => Err(unexpected("a list without one of its parts")),
        }
    }

    /// What it means that a script has answered something else than it should.
    pub(crate) fn unexpected(self, what: &str) -> StoreError {
        if self.name() == "format" { emptied() } else { unexpected(what) }
    }

    /// The token of a lease.
    pub(crate) fn token(self, place: usize) -> Option<Token> {
        u128::from_str_radix(self.text(place)?, 16).ok().map(Token::from_u128)
    }
}
