//! Why nothing can be launched.
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The launcher cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no launcher.
    #[error(
        "found no launcher (begin `main` with `harness_esg_launcher::enter()`, or install one: \
         `cargo install harness-esg-launcher`)"
    )]
    NotFound,
    /// The launcher failed to start.
    #[error("failed to start the launcher {}", path.display())]
    Start {
        /// The launcher.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The launcher does not answer.
    #[error("the launcher {} does not say what it can do: {said}", path.display())]
    Mute {
        /// The launcher.
        path: PathBuf,
        /// What it wrote to standard error.
        said: String,
    },
    /// A path in the sandbox is not UTF-8.
    #[error("{} is not UTF-8, and a sandbox takes no other paths", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
}
