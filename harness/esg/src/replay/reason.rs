//! Why a step runs.
use std::fmt;

use crate::model::{Entity, List};
use crate::trace::Changed;

/// Why a step ran, or would. Prints as the end of a sentence: `clean ran: its code was edited`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It never ran.
    New,
    /// Its code is not what ran last.
    Edited,
    /// What it reads is not what it read.
    Inputs(Vec<Entity>),
    /// What it reads shares other objects than it did.
    Aliases(Vec<Entity>),
    /// It may read what another step will change.
    May(Vec<Entity>),
    /// It made something that is needed and has no stored form.
    Rebuilt,
    /// It was asked for.
    Invalidated,
    /// It ran in another kind of worker.
    Worker,
    /// It was killed, or there was no memory for it.
    Accident,
    /// The program touches what is not tracked, so all of it runs.
    Untracked,
}

impl From<Changed> for Reason {
    fn from(changed: Changed) -> Self {
        if changed.inputs.is_empty() {
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
                write!(f, "{} shares other objects than it did", List(entities))
            }
            Self::May(entities) => write!(f, "it may read {}, which may change", List(entities)),
            Self::Rebuilt => f.write_str("it makes something that is needed and can not be stored"),
            Self::Invalidated => f.write_str("it was asked for"),
            Self::Worker => f.write_str("it ran in another kind of worker"),
            Self::Accident => f.write_str("it was ended from outside when it ran last"),
            Self::Untracked => f.write_str("the program touches what is not tracked"),
        }
    }
}
