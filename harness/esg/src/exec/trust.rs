//! How far the code of a program is trusted, and what isolates it.
use std::fmt;

/// The origin of the steps' code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Code by others, such as a model. Needs [`Isolation::Kernel`].
    #[default]
    Untrusted,
    /// Your own code: it may do whatever you may do on this machine.
    Mine,
}

/// What isolates a step from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// A process: its own process group, a cleared environment, limits, a scratch directory. This
    /// contains crashes and loops. Malicious code can do everything that the user can do, including
    /// killing the host.
    Process,
    /// The kernel denies it files, network and other processes.
    Kernel,
}

/// A resource that the kernel can deny to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layer {
    /// Files outside the scratch directory.
    Files,
    /// The network.
    Network,
    /// Starting processes, and sending signals to others.
    Processes,
}

impl Layer {
    /// Every layer.
    pub const ALL: &'static [Self] = &[Self::Files, Self::Network, Self::Processes];
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Network => "network",
            Self::Processes => "processes",
        })
    }
}
