//! The worker's own program, which goes to the interpreter when it starts.

/// The bootstrap, passed on the command line: it takes the rest from the first message.
pub(super) const BOOT: &str = "";

/// The modules, in the order in which they run.
pub(super) const MODULES: &[(&str, &str)] = &[];
