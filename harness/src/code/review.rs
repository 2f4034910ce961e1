//! The step that asks a person about the program.
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::state::{CodeChange, Coded, Reviewed, program_of};
use crate::context::Context;
use crate::question::Question;
use crate::step::{Cx, Handler, ResultExt as _, StepResult, View};

/// A step that asks a person about the program, made by [`review`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Review(());

/// Asks a person whether the program is right: [`ReviewCode`], which [`Reviewed`] answers. A route reads
/// [`Code::reviewed`](super::Code::reviewed); a comment on a rejected program reaches the model by
/// [`generate`](super::generate()). A change of the program takes the decision back.
#[must_use]
pub fn review() -> Review {
    Review(())
}

/// The question whether a program is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReviewCode {
    /// The whole program, as a script.
    pub script: String,
    /// What the code steps print, one after the other. If it is long, it is cut, and its last line says so.
    pub output: String,
    /// How the first failing code step ended, if one fails.
    pub failure: Option<String>,
}

#[diagnostic::do_not_recommend]
impl Question for ReviewCode {
    const NAME: &'static str = "review_code";
    type Answer = Reviewed;
}

/// The most of the output that a question shows, in bytes.
const SHOWN: usize = 20_000;

/// Ends an output that is cut: a person must not take the part for the whole.
const CUT: &str = "\n[the output continues, and is cut here]\n";

#[async_trait]
impl<C: Context, S: Coded> Handler<C, S> for Review {
    async fn run(&self, state: View<S>, cx: Cx<C>) -> StepResult<S> {
        let code = program_of(&*state);
        let (mut output, mut failure) = (String::new(), None);
        for step in code.program().steps() {
            let Some(execution) = code.ledger().execution(&step.id) else { continue };
            output.push_str(&String::from_utf8_lossy(&execution.stdout.bytes));
            if !execution.ending.is_ok() && failure.is_none() {
                failure = Some(format!("step `{}`: {}", step.id, execution.ending));
            }
        }
        let output = shown(output);
        let script = code.program().to_script().fatal()?;
        let reviewed = cx.ask("review", ReviewCode { script, output, failure }).await?;
        Ok(S::change(S::update(), vec![CodeChange::Reviewed(Some(reviewed))]))
    }
}

fn shown(mut output: String) -> String {
    if output.len() > SHOWN {
        output.truncate(output.floor_char_boundary(SHOWN));
        output.push_str(CUT);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::{CUT, SHOWN, shown};

    #[test]
    fn an_output_that_is_cut_says_so() {
        let whole = "a".repeat(SHOWN);
        assert_eq!(shown(whole.clone()), whole);
        // A character of two bytes that the limit would part.
        let long = format!("{}é and more", "a".repeat(SHOWN - 1));
        assert_eq!(shown(long), format!("{}{CUT}", "a".repeat(SHOWN - 1)));
    }
}
