//! Resource limits of a step.
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// The resource limits of a step and its worker. The defaults suit programs on data that
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
    /// The wall time of a step, including inspecting its values. The worker is killed then.
    /// Default: 30 s.
    pub wall: Duration,
    /// The CPU time of a step on all cores together. Checked ten times a second, on Linux only;
    /// elsewhere only `wall` applies. Default: 60 s.
    pub cpu: Duration,
    /// The address space of the worker in bytes, including the interpreter's own (about 20 MiB).
    /// Default: 4 GiB: packages like scipy and statsmodels map 2 GiB and use a tenth of it.
    pub address_space: u64,
    /// The largest file a step may write, in bytes. Default: 64 MiB.
    pub file_size: u64,
    /// The space that all files in scratch take, in bytes. Checked ten times a second while a step runs,
    /// so a step may exceed it by what it writes meanwhile. Default: 2 GiB.
    pub scratch: u64,
    /// The number of files and directories in scratch, checked like `scratch`. Default: 100,000.
    pub scratch_files: u64,
    /// The file descriptors of the worker, including a few of its own. Default: 64.
    pub open_files: u64,
    /// The threads of the worker, with kernel isolation. Libraries of arrays start one for each core.
    /// Default: 256.
    pub threads: u64,
    /// The bytes kept of what a step prints, for standard output and standard error each. Of the
    /// rest only the count is kept. Default: 1 MiB.
    pub output: u64,
    /// The largest value that is stored, in bytes. A larger value can only be restored by
    /// re-running the step that made it. All values that one step returns for storing have at most
    /// 256 MiB together. Default: 64 MiB.
    pub value: u64,
    /// The time for starting a worker, and for moving values in and out of it. Default: 60 s.
    pub service: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(60),
            address_space: 4096 * MIB,
            file_size: 64 * MIB,
            scratch: 2048 * MIB,
            scratch_files: 100_000,
            open_files: 64,
            threads: 256,
            output: MIB,
            value: 64 * MIB,
            service: Duration::from_secs(60),
        }
    }
}
