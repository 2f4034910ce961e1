//! How far the code of a program is trusted, and what is between it and the machine.
use std::fmt;

/// Whose code the steps are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Anybody's: a model's, a stranger's. Needs [`Isolation::Kernel`].
    #[default]
    Untrusted,
    /// Yours: it may do whatever you may do on this machine.
    Mine,
}

/// What is between a step and the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// A process of its own: its own process group, a cleared environment, limits, a scratch
    /// directory. A step that crashes or loops harms nobody; one that means harm can do all that
    /// the user may do, ending the host included.
    Process,
    /// The kernel keeps files, network and other processes from it.
    Kernel,
}

/// Something that the kernel keeps a step from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layer {
    /// Files outside the scratch directory.
    Files,
    /// The network.
    Network,
    /// Starting processes, and signals to others.
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
