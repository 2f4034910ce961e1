//! What a step may use up.
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// What a step, and the worker it runs in, may use up. The defaults suit programs on data that
/// fits in memory a few times over.
///
/// ```
/// use std::time::Duration;
/// use harness_esg::Limits;
///
/// let short = Limits { wall: Duration::from_secs(2), ..Limits::default() };
/// assert_eq!(short.output, 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a step may take, looking at its values included. The worker is ended then.
    /// Default: 30 s.
    pub wall: Duration,
    /// How much processor time a step may take on all cores together. Read ten times a second, and
    /// on Linux only; elsewhere `wall` alone holds. Default: 60 s.
    pub cpu: Duration,
    /// Bytes of address space of the worker, the interpreter's own (about 20 MiB) included.
    /// Default: 2 GiB.
    pub address_space: u64,
    /// Bytes of the largest file a step may write. Default: 64 MiB.
    pub file_size: u64,
    /// How many descriptors the worker may hold, a handful of its own included. Default: 64.
    pub open_files: u64,
    /// Bytes kept of what a step prints, for standard output and standard error each; of the rest
    /// only the number is kept. Default: 1 MiB.
    pub output: u64,
    /// Bytes of the largest value that is stored; a larger one can only be had by running what
    /// made it. What one step gives back to be stored has at most 256 MiB in all. Default: 64 MiB.
    pub value: u64,
    /// How long starting a worker, and moving values in and out of it, may take. Default: 60 s.
    pub service: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(60),
            address_space: 2048 * MIB,
            file_size: 64 * MIB,
            open_files: 64,
            output: MIB,
            value: 64 * MIB,
            service: Duration::from_secs(60),
        }
    }
}
