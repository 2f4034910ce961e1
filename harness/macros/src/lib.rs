//! Derives of the `harness` crate.
