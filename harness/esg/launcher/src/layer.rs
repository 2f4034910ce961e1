//! What a sandbox protects, and what of it a machine has.
use std::fmt;

use serde::{Deserialize, Serialize};

/// What the kernel denies to a program in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layer {
    /// Files outside of what it may read and write, and their attributes.
    Files,
    /// The network, and sockets of other processes.
    Network,
    /// Starting processes, and acting on others: signals, priorities, shared memory.
    Processes,
    /// System calls that programs rarely need: mounts, tracing, keys, `io_uring`, loading of modules.
    System,
    /// The rights of root, if the host is root: the program runs as a user without rights, whose number
    /// no other process has.
    User,
}

impl Layer {
    /// Every layer.
    pub const ALL: &'static [Self] =
        &[Self::Files, Self::Network, Self::Processes, Self::System, Self::User];
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Network => "network",
            Self::Processes => "processes",
            Self::System => "system calls",
            Self::User => "user",
        })
    }
}

/// What this machine has of one layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The layer.
    pub layer: Layer,
    /// What of the kernel provides it. The more, the stronger: each of them suffices by itself for most
    /// of the layer.
    pub by: Vec<String>,
    /// Why the layer is missing. `None` if it is there.
    pub missing: Option<String>,
}

impl Status {
    /// A layer, what provides it, and why it is missing, if it is.
    #[must_use]
    pub fn new(layer: Layer, by: Vec<String>, missing: Option<String>) -> Self {
        Self { layer, by, missing }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.missing {
            None => write!(f, "{}: {}", self.layer, self.by.join(", ")),
            Some(why) => write!(f, "{}: missing ({why})", self.layer),
        }
    }
}

/// What this machine has of each layer: what a launcher found when it applied them to itself.
///
/// Printed, it is one line for each layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers(Vec<Status>);

impl Layers {
    /// These layers. Those not named count as missing.
    #[must_use]
    pub fn new(status: Vec<Status>) -> Self {
        Self(status)
    }

    /// Each layer.
    pub fn iter(&self) -> impl Iterator<Item = &Status> {
        self.0.iter()
    }

    /// The missing layers.
    #[must_use]
    pub fn missing(&self) -> Vec<Status> {
        let unknown = |layer| Status::new(layer, Vec::new(), Some("not applied".to_owned()));
        let found = |layer| self.0.iter().find(|status| status.layer == layer).cloned();
        let all = Layer::ALL.iter().map(|&layer| found(layer).unwrap_or_else(|| unknown(layer)));
        all.filter(|status| status.missing.is_some()).collect()
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, status) in self.0.iter().enumerate() {
            write!(f, "{}{status}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
