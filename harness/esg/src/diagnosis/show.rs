//! Diagnoses as text.
use std::fmt;

use super::{Cause, Diagnosis, Evidence, Where, Why};
use crate::text::shown;

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} fails: {}", self.failing, shown(&self.error()))?;
        if let Some(raised) = &self.raised {
            write!(f, "\n  raised by: {raised}")?;
        }
        if let Some(root) = &self.root {
            write!(f, "\n  root cause: {root}")?;
        }
        for evidence in &self.evidence {
            write!(f, "\n  {evidence}")?;
        }
        if !self.affected.is_empty() {
            write!(f, "\n  affected: {}", self.affected.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}", self.step)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        match self.text.trim() {
            "" => Ok(()),
            text => write!(f, " (`{}`)", shown(text)),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, which ", self.at)?;
        match &self.why {
            Why::Wrote { name } => write!(f, "wrote `{}`", shown(name)),
            Why::Deleted { name } => write!(f, "deleted `{}`", shown(name)),
            Why::BoundBefore { name, version } => {
                write!(f, "bound `{}` in its version {version}", shown(name))
            }
            Why::BindsLater { name } => write!(f, "binds `{}` later", shown(name)),
            Why::Defines { function } => write!(f, "defines `{}`", shown(function)),
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { name, by, type_name, repr, .. } => {
                write!(f, "`{}`", shown(name))?;
                if let Some(type_name) = type_name {
                    write!(f, " is a {}", shown(type_name))?;
                }
                if let Some(by) = by {
                    write!(f, ", written by {by}")?;
                }
                match repr {
                    Some(repr) => write!(f, ": {}", shown(repr)),
                    None => Ok(()),
                }
            }
            Self::Near { missing, known } => {
                let known: Vec<_> = known.iter().map(|name| format!("`{}`", shown(name))).collect();
                write!(f, "there is no `{}`; there is {}", shown(missing), known.join(", "))
            }
        }
    }
}
