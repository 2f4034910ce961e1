//! Why a step runs.
use std::fmt;

use crate::model::{Entity, List};
use crate::trace::Changed;

/// Why a step ran, or would run. Displays as the end of a sentence: `clean ran: its code was
/// edited`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It never ran.
    New,
    /// Its code differs from what ran last.
    Edited,
    /// What it reads changed.
    Inputs(Vec<Entity>),
    /// What it reads shares different objects.
    Aliases(Vec<Entity>),
    /// It may read what another step will change.
    May(Vec<Entity>),
    /// It made an unserializable value that is needed.
    Rebuilt,
    /// It was invalidated.
    Invalidated,
    /// It last ran in another kind of worker.
    Worker,
    /// Its last run was killed, ran out of memory, or waited beyond its time limit.
    Accident,
    /// An untracked operation before it changed, or it has one itself and anything before it changed.
    Untracked,
}

impl From<Changed> for Reason {
    fn from(changed: Changed) -> Self {
        if changed.elsewhere {
            Self::Untracked
        } else if changed.inputs.is_empty() {
            Self::Aliases(changed.aliases)
        } else {
            Self::Inputs(changed.inputs)
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("it never ran"),
            Self::Edited => f.write_str("its code was edited"),
            Self::Inputs(entities) => write!(f, "it reads {}, which changed", List(entities)),
            Self::Aliases(entities) => {
                write!(f, "{} shares different objects", List(entities))
            }
            Self::May(entities) => write!(f, "it may read {}, which may change", List(entities)),
            Self::Rebuilt => f.write_str("it makes an unserializable value that is needed"),
            Self::Invalidated => f.write_str("it was invalidated"),
            Self::Worker => f.write_str("it last ran in another kind of worker"),
            Self::Accident => {
                f.write_str("its last run was killed, ran out of memory or waited for too long")
            }
            Self::Untracked => f.write_str("what untracked operations depend on or leave changed"),
        }
    }
}
