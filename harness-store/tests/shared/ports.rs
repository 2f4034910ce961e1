//! Ports for servers that tests start.

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;

/// Below the ports that systems give to connections. One of these would take the port of a server that has not
/// started yet, or that is started again.
const FIRST: u16 = 10_000;
const PORTS: u64 = 22_000;

/// A port that is free, chosen at random so that no two tests choose the same one.
pub(crate) fn free_port() -> u16 {
    std::iter::repeat_with(|| RandomState::new().hash_one(()) % PORTS)
        .map(|at| FIRST + u16::try_from(at).unwrap())
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}
