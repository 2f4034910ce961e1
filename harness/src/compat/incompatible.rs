//! In what a session and a loop differ.

use std::error::Error;
use std::fmt;

use crate::session::StepKind;
use crate::text::shown;

/// What a loop takes over of the sessions that an older version of it left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compatibility {
    /// Whatever still means the same: new fields, new steps and other ways between steps are taken
    /// over, and recorded.
    #[default]
    Compatible,
    /// Only sessions of exactly the same loop and state.
    Strict,
}

/// A session that this loop cannot go on with: every difference at once.
///
/// Nothing was run, and nothing was written: the version that left the session can go on with it.
#[derive(Debug)]
pub struct Incompatible {
    pub(super) differences: Vec<Difference>,
    pub(super) source: Option<Box<dyn Error + Send + Sync>>,
}

/// One thing in which a saved session and a loop differ.
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
    /// The session rests at a step that is of another kind now.
    StepKindChanged {
        /// The step.
        step: String,
        /// What it was.
        saved: StepKind,
        /// What it is.
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
        /// The type it had.
        saved: String,
        /// The type it has.
        now: String,
    },
    /// The state was saved by another version, from which there is no way.
    VersionUnknown {
        /// That version.
        saved: u32,
        /// The version of the state now.
        now: u32,
    },
    /// The saved state could not be read as the state of this version, or not be converted to it.
    StateUnreadable,
    /// A question that waits, or whose answer waits, takes another answer now.
    AnswerSchemaChanged {
        /// The question's name.
        question: String,
    },
    /// The steps or the ways between them have changed. Only [`Fit::Strict`] minds.
    WiringChanged,
    /// A field of the state is new. Only [`Fit::Strict`] minds.
    FieldAdded {
        /// The field, as stored.
        field: String,
    },
    /// A field of the state folds updates in by another reducer. Only [`Fit::Strict`] minds.
    ReducerChanged {
        /// The field, as stored.
        field: String,
    },
    /// The state has another version, to which there is a way. Only [`Fit::Strict`] minds.
    VersionChanged {
        /// The version it was saved by.
        saved: u32,
        /// The version now.
        now: u32,
    },
}

impl Incompatible {
    /// The differences.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Whether the step that the session rests at is gone, or another kind of step.
    #[must_use]
    pub fn is_step(&self) -> bool {
        self.differences.iter().any(|difference| {
            matches!(difference, Difference::StepGone { .. } | Difference::StepKindChanged { .. })
        })
    }

    /// Whether the state no longer fits.
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
        f.write_str("the session was saved by another version of the loop")?;
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
                write!(f, "it rests at step `{}`, which is gone", shown(step))?;
                match near {
                    Some(near) => {
                        write!(
                            f,
                            " (if it is `{}` now, declare the old name as an alias)",
                            shown(near)
                        )
                    }
                    None => f.write_str(" (keep the step until no session rests there)"),
                }
            }
            Self::StepKindChanged { step, saved, now } => write!(
                f,
                "it rests at step `{}`, which was {} and is {} (give the changed step another name)",
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
                "its state has version {saved}, and this program knows only {now} (let the newer \
                 program go on with it)"
            ),
            Self::VersionUnknown { saved, now } => write!(
                f,
                "its state has version {saved}, from which no migration leads to {now} (declare \
                 `migrate = ..`, which reads version {})",
                now.saturating_sub(1)
            ),
            Self::StateUnreadable => f.write_str(
                "its state cannot be brought to this version (give the state a new version, and a \
                 migration that takes it)",
            ),
            Self::AnswerSchemaChanged { question } => write!(
                f,
                "the question `{}` waits for an answer of another form (give the changed question \
                 another name)",
                shown(question)
            ),
            Self::WiringChanged => f.write_str("the steps or the ways between them have changed"),
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
