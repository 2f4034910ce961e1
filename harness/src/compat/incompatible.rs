//! The differences between a session and a loop.

use std::error::Error;
use std::fmt;

use crate::session::StepKind;
use crate::text::shown;

/// Which changes of a loop are accepted when it resumes a session of an earlier version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compatibility {
    /// Changes that the session does not depend on: new fields, new steps and other edges between
    /// steps are adopted, and recorded.
    #[default]
    Compatible,
    /// No change: only sessions of exactly the same loop and state.
    Strict,
}

/// A session that this loop cannot resume, with every difference.
///
/// Nothing ran and nothing was written: the version that wrote the session can still resume it.
#[derive(Debug)]
pub struct Incompatible {
    pub(super) differences: Vec<Difference>,
    pub(super) source: Option<Box<dyn Error + Send + Sync>>,
}

/// A difference between a stored session and a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The session rests at a step that the loop does not have.
    StepGone {
        /// The step.
        step: String,
        /// A step of the loop that has nearly the same name.
        near: Option<String>,
    },
    /// The session rests at a step that has another kind now.
    StepKindChanged {
        /// The step.
        step: String,
        /// The stored kind.
        saved: StepKind,
        /// The kind in the loop.
        now: StepKind,
    },
    /// The state has lost a field.
    FieldRemoved {
        /// The field, as stored.
        field: String,
    },
    /// A field of the state has another type.
    FieldTypeChanged {
        /// The field, as stored.
        field: String,
        /// The stored type.
        saved: String,
        /// The type in the program.
        now: String,
    },
    /// The state has another version, and no migration reads it.
    VersionUnknown {
        /// The stored version.
        saved: u32,
        /// The version in the program.
        now: u32,
    },
    /// The stored state does not decode as this version, or its migration failed.
    StateUnreadable,
    /// An interrupt that is open, or whose answer is not applied yet, has another type of answer now.
    AnswerSchemaChanged {
        /// The question's name.
        question: String,
    },
    /// The steps or the edges between them have changed. Only [`Compatibility::Strict`] rejects it.
    WiringChanged,
    /// A field of the state is new. Only [`Compatibility::Strict`] rejects it.
    FieldAdded {
        /// The field, as stored.
        field: String,
    },
    /// A field of the state has another reducer. Only [`Compatibility::Strict`] rejects it.
    ReducerChanged {
        /// The field, as stored.
        field: String,
    },
    /// The state has another version, and a migration reads it. Only [`Compatibility::Strict`]
    /// rejects it.
    VersionChanged {
        /// The stored version.
        saved: u32,
        /// The version in the program.
        now: u32,
    },
}

impl Incompatible {
    /// The differences.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Whether the step at which the session rests is gone, or has another kind.
    #[must_use]
    pub fn is_step(&self) -> bool {
        self.differences.iter().any(|difference| {
            matches!(difference, Difference::StepGone { .. } | Difference::StepKindChanged { .. })
        })
    }

    /// Whether the state cannot be read.
    #[must_use]
    pub fn is_state(&self) -> bool {
        self.differences.iter().any(|difference| {
            matches!(
                difference,
                Difference::FieldRemoved { .. }
                    | Difference::FieldTypeChanged { .. }
                    | Difference::VersionUnknown { .. }
                    | Difference::StateUnreadable
            )
        })
    }
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the session is incompatible with this version of the loop")?;
        for (place, difference) in self.differences.iter().enumerate() {
            f.write_str(if place == 0 { ": " } else { "; " })?;
            difference.fmt(f)?;
        }
        Ok(())
    }
}

impl Error for Incompatible {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StepGone { step, near } => {
                write!(f, "its step `{}` is gone", shown(step))?;
                match near {
                    Some(near) => {
                        write!(
                            f,
                            " (if `{}` is its new name, declare the old name as an alias)",
                            shown(near)
                        )
                    }
                    None => f.write_str(" (keep the step while sessions rest there)"),
                }
            }
            Self::StepKindChanged { step, saved, now } => write!(
                f,
                "its step `{}` was {} and is {} (give the changed step another name)",
                shown(step),
                named(*saved),
                named(*now),
            ),
            Self::FieldRemoved { field } => write!(
                f,
                "field `{}` of the state is gone (give the state a new version, and a migration)",
                shown(field)
            ),
            Self::FieldTypeChanged { field, saved, now } => write!(
                f,
                "field `{}` of the state was `{}` and is `{}` (give the state a new version, and a \
                 migration)",
                shown(field),
                shown(saved),
                shown(now),
            ),
            Self::VersionUnknown { saved, now } if saved > now => write!(
                f,
                "its state has version {saved}, newer than {now} of this program (resume it with the \
                 newer program)"
            ),
            Self::VersionUnknown { saved, now } => write!(
                f,
                "its state has version {saved}, and no migration leads to {now} (declare \
                 `migrate = ..` for version {})",
                now.saturating_sub(1)
            ),
            Self::StateUnreadable => f.write_str(
                "its state does not decode as this version (give the state a new version, and a \
                 migration)",
            ),
            Self::AnswerSchemaChanged { question } => write!(
                f,
                "the answer to the question `{}` has another type (give the changed question another \
                 name)",
                shown(question)
            ),
            Self::WiringChanged => f.write_str("the steps or the edges between them have changed"),
            Self::FieldAdded { field } => {
                write!(f, "field `{}` of the state is new", shown(field))
            }
            Self::ReducerChanged { field } => {
                write!(f, "field `{}` of the state has another reducer", shown(field))
            }
            Self::VersionChanged { saved, now } => {
                write!(f, "its state has version {saved}, and the loop's has {now}")
            }
        }
    }
}

fn named(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Run => "a step with a body",
        StepKind::Decide => "a decision",
        StepKind::Gate => "a gate",
        StepKind::Each => "a step with items",
        StepKind::Off => "switched off",
    }
}
