//! Lengths as ids.

/// A length as an id. Sources have fewer than 2^30 bytes, hence fewer names than that.
pub(super) fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
