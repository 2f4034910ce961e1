//! Files of notes: cut, damaged, copied and written by many.
#![allow(clippy::unwrap_used)]
