//! The scripts, and the names that the server knows them by.

use std::sync::LazyLock;

use sha1_smol::Sha1;

/// A script, and whether it writes.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) text: String,
    pub(crate) hash: String,
    pub(crate) writes: bool,
}

impl Script {
    fn new(flags: &str, parts: &[&str]) -> Self {
        // With a first line of this form a script is refused as a whole, if it is: when the memory of
        // the server is full, on a replica, or while the last dump of it has failed.
        let first = format!("#!lua{flags}\n");
        let text = parts.iter().fold(first, |text, part| text + part);
        let hash = Sha1::from(&text).digest().to_string();
        Self { text, hash, writes: flags != READS }
    }
}

const READS: &str = " flags=no-writes";
/// Makes room, or takes none: it is accepted when the memory of the server is full.
const ALWAYS: &str = " flags=allow-oom";

const COMMON: &str = include_str!("scripts/common.lua");
const SUMS: &str = include_str!("scripts/sums.lua");
const INDEX: &str = include_str!("scripts/index.lua");
const DUE: &str = include_str!("scripts/due.lua");
const LEASE: &str = include_str!("scripts/lease.lua");

macro_rules! scripts {
    ($($name:ident: $flags:expr, [$($part:expr),*];)*) => {
        $(pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new($flags, &[$($part),*]));)*
    };
}

scripts! {
    OPEN: "", [include_str!("scripts/open.lua")];
    CLAIM: "", [COMMON, SUMS, INDEX, DUE, LEASE, include_str!("scripts/claim.lua")];
    CLAIM_DUE: "", [COMMON, SUMS, INDEX, DUE, LEASE, include_str!("scripts/claim_due.lua")];
    RENEW: ALWAYS, [COMMON, DUE, include_str!("scripts/renew.lua")];
    RELEASE: ALWAYS, [COMMON, DUE, include_str!("scripts/release.lua")];
    APPEND: "", [COMMON, INDEX, DUE, include_str!("scripts/append.lua")];
    SEND: "", [COMMON, SUMS, DUE, include_str!("scripts/send.lua")];
    READ: READS, [COMMON, SUMS, include_str!("scripts/read.lua")];
    LIST: READS, [COMMON, include_str!("scripts/list.lua")];
    REMOVE: ALWAYS, [COMMON, SUMS, INDEX, include_str!("scripts/remove.lua")];
}
