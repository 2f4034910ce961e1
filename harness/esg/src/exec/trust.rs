//! How far the code of a program is trusted, and what isolates it.
use std::path::{Path, PathBuf};

/// The origin of the steps' code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Code by others, such as a model. Runs with [`Isolation::Kernel`], or not at all.
    #[default]
    Untrusted,
    /// Your own code: it may do whatever you may do on this machine. Runs with
    /// [`Isolation::Process`], unless you ask for more.
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
    /// The kernel denies it files, network, other processes and rare system calls, and it is not root:
    /// every [`Layer`](crate::Layer). Linux only.
    Kernel,
}

/// The files outside of scratch that steps may read. The host reads them too, to find out whether
/// they changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Readable {
    /// None: a step that read one runs again in every replay.
    #[default]
    Nothing,
    /// These, and what is below them.
    Below(Vec<PathBuf>),
    /// Whatever the user may read.
    Everything,
}

impl Readable {
    /// Whether the path may be read.
    #[must_use]
    pub fn allows(&self, path: &Path) -> bool {
        match self {
            Self::Nothing => false,
            // A link below one of them may lead elsewhere.
            Self::Below(roots) => {
                real(path).is_some_and(|path| roots.iter().any(|root| path.starts_with(root)))
            }
            Self::Everything => true,
        }
    }
}

/// The path without links, of a file that may be missing.
fn real(path: &Path) -> Option<PathBuf> {
    let beside = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(beside)
}
