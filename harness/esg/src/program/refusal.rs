//! Why a patch is refused.
use std::fmt;

use crate::text::shown;

/// Why a patch is refused, in terms of the program, so that a model or a person can correct it. The
/// program has not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The text that an edit replaces is not in the step.
    #[error(
        "edit {edit} of step `{}`: what it replaces is not there{}{}", shown(.step),
        missed(.missing, .nearest), if *.done { " (the step already has the new text)" } else { "" }
    )]
    NoMatch {
        /// The step.
        step: String,
        /// Which edit of the step, or which hunk of its diff, from 1.
        edit: usize,
        /// The first line of the text that no line of the step equals. If each of them is there,
        /// they are not there in this order.
        missing: Option<String>,
        /// The most similar lines of the step, with their numbers.
        nearest: Vec<(usize, String)>,
        /// Whether the new text is there already.
        done: bool,
    },
    /// The text that an edit replaces is in the step more than once.
    #[error(
        "edit {edit} of step `{}`: what it replaces is there more than once, at lines {} (add lines \
         around it until it is there once)", shown(.step), Numbers(.at)
    )]
    Ambiguous {
        /// The step.
        step: String,
        /// Which edit of the step, or which hunk of its diff, from 1.
        edit: usize,
        /// The lines at which it is: the first few.
        at: Vec<usize>,
    },
    /// Two edits change the same lines.
    #[error(
        "edits {} and {} of step `{}` both change line {line} (make one edit of them)", .edits.0, .edits.1, shown(.step)
    )]
    Overlap {
        /// The step.
        step: String,
        /// Which edits of the step, or hunks of its diff, from 1.
        edits: (usize, usize),
        /// The line.
        line: usize,
    },
    /// The step would not parse.
    #[error(
        "with this patch step `{}` does not parse: line {line}: {message}: `{}`", shown(.step), shown(.text)
    )]
    DoesNotParse {
        /// The step.
        step: String,
        /// The line of the new source, from 1.
        line: usize,
        /// What the parser expected.
        message: String,
        /// That line.
        text: String,
    },
    /// The step has no function or class of that name.
    #[error("step `{}` defines no `{}`{}", shown(.step), shown(.path), defined(.near))]
    UnknownSymbol {
        /// The step.
        step: String,
        /// The name.
        path: String,
        /// The most similar one.
        near: Option<String>,
    },
    /// The new source of a function or class is something else.
    #[error(
        "the new source of `{}` in step `{}` {why} (give its whole definition, and nothing else)",
        shown(.path), shown(.step)
    )]
    NotTheSymbol {
        /// The step.
        step: String,
        /// The name.
        path: String,
        /// What it is instead.
        why: String,
    },
    /// A diff cannot be read, or an edit has nothing to find.
    #[error("edit {edit} of step `{}` cannot be read: {why}", shown(.step))]
    Malformed {
        /// The step.
        step: String,
        /// Which edit of the step, or which hunk of its diff, from 1.
        edit: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The step would be the same.
    #[error("the patch changes nothing in step `{}`", shown(.step))]
    NoChange {
        /// The step.
        step: String,
    },
    /// The patch has no edits.
    #[error("the patch has no edits")]
    Empty,
}

/// Numbers in a list: `3, 8 and 12`.
struct Numbers<'a>(&'a [usize]);

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, number) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(if at + 1 == self.0.len() { " and " } else { ", " })?;
            }
            write!(f, "{number}")?;
        }
        Ok(())
    }
}

fn missed(missing: &Option<String>, nearest: &[(usize, String)]) -> String {
    let mut text = match missing {
        Some(line) => format!(": no line is `{}`", shown(line.trim())),
        None => ": its lines are not there in this order".to_owned(),
    };
    for (at, (number, line)) in nearest.iter().enumerate() {
        text.push_str(if at == 0 { " (the nearest: " } else { "; " });
        text.push_str(&format!("line {number}: `{}`", shown(line.trim())));
    }
    if !nearest.is_empty() {
        text.push(')');
    }
    text
}

fn defined(near: &Option<String>) -> String {
    match near {
        Some(near) => format!(" (did you mean `{}`?)", shown(near)),
        None => " (replace the whole step, or use a search/replace edit)".to_owned(),
    }
}
