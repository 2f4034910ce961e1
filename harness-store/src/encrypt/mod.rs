//! A store whose bytes are encrypted before another store keeps them.
//!
//! `key` has the keys, `cipher` encrypts bytes for one place and decrypts them there, and `store` does
//! so with the entries and messages of a store.
//!
//! The same bytes for the same place are encrypted to the same bytes, because a store recognizes a
//! batch that is sent again by its bytes. So the nonce is not random: it is a MAC of the place and the
//! bytes. Two different inputs have different nonces, as with a random nonce of 192 bits; the same
//! input twice shows that it is the same, which its place shows already.

mod cipher;
#[cfg(feature = "code")]
mod code;
mod key;
mod store;

#[cfg(test)]
mod tests;

pub use key::{Key, KeyError, Keys};
pub use store::Encrypted;
