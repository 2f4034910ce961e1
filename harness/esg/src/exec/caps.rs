//! What a worker can do.
use super::trust::Isolation;

/// What an [`Executor`](super::Executor) can do. A graph refuses what its executor cannot.
///
/// ```
/// use harness_esg::Caps;
///
/// // A language inside the host's process, without files.
/// let caps = Caps::new(None).files(false);
/// assert!(caps.restores && !caps.files);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caps {
    /// What isolates steps from the machine; `None` if they run in the host's process.
    pub isolation: Option<Isolation>,
    /// Whether it loads stored values, into any worker of its kind. Without this, every value is made
    /// again by its steps.
    pub restores: bool,
    /// Whether it tracks and restores files in scratch.
    pub files: bool,
    /// Whether a [`KillHandle`](super::KillHandle) ends a running step.
    pub interrupts: bool,
    /// Whether it starts a [twin](super::Executor::twin) for comparisons.
    pub twins: bool,
}

impl Caps {
    /// Everything, with this isolation.
    #[must_use]
    pub const fn new(isolation: Option<Isolation>) -> Self {
        Self { isolation, restores: true, files: true, interrupts: true, twins: true }
    }

    /// Sets whether it loads stored values.
    #[must_use]
    pub const fn restores(mut self, restores: bool) -> Self {
        self.restores = restores;
        self
    }

    /// Sets whether it tracks and restores files.
    #[must_use]
    pub const fn files(mut self, files: bool) -> Self {
        self.files = files;
        self
    }

    /// Sets whether a running step can be killed.
    #[must_use]
    pub const fn interrupts(mut self, interrupts: bool) -> Self {
        self.interrupts = interrupts;
        self
    }

    /// Sets whether it starts twins.
    #[must_use]
    pub const fn twins(mut self, twins: bool) -> Self {
        self.twins = twins;
        self
    }
}
