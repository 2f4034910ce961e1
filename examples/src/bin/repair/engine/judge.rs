//! What a run says about a repair.
use harness::esg::diagnosis::Fault;
use serde::{Deserialize, Serialize};

use super::fault::{Ending, Ran};

/// What a run says about a repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// It ran to its end and, as far as that is known, printed what it should.
    Fixed,
    /// It ran to its end but printed something else.
    WrongOutput {
        /// What it should print.
        expected: String,
        /// What it printed.
        got: String,
    },
    /// It did not run to its end.
    StillFailing(Ending),
}

impl Verdict {
    /// Judges a run by the output expected of it.
    pub(crate) fn of(ran: &Ran, expected: Option<&str>) -> Verdict {
        match (&ran.ending, expected) {
            (Ending::Ok, Some(expected)) if expected != ran.stdout => {
                Verdict::WrongOutput { expected: expected.to_owned(), got: ran.stdout.clone() }
            }
            (Ending::Ok, _) => Verdict::Fixed,
            (ending, _) => Verdict::StillFailing(ending.clone()),
        }
    }
}

/// Whether a repair of `before` helped: not if the same fault is back, and not if a program that could
/// be parsed no longer can. If it did not, the next proposal for `before` is worth a try.
pub(crate) fn progressed(before: &Fault, after: &Ending) -> bool {
    let Ending::Raised(after) = after else {
        return true;
    };
    let place = |fault: &Fault| match &fault.facts.syntax {
        Some(syntax) => Some(syntax.column),
        None => fault.frames.last().and_then(|frame| frame.column),
    };
    let about = |fault: &Fault| (fault.kind.clone(), fault.message.clone(), fault.line());
    let same = about(before) == about(after) && place(before) == place(after);
    let broken = before.facts.syntax.is_none() && after.facts.syntax.is_some();
    !same && !broken
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use harness::esg::diagnosis::{Frame, Syntax};

    use super::*;

    fn fault() -> Fault {
        let frame = Frame { line: 4, ..Frame::default() };
        Fault { kind: "NameError".into(), frames: vec![frame], ..Fault::default() }
    }

    #[test]
    fn only_the_expected_output_is_a_success() {
        let mut ran = Ran {
            ending: Ending::Ok,
            stdout: "1\n".into(),
            stderr: String::new(),
            elapsed: Duration::ZERO,
        };
        assert_eq!(Verdict::of(&ran, None), Verdict::Fixed);
        assert_eq!(Verdict::of(&ran, Some("1\n")), Verdict::Fixed);
        let wrong = Verdict::WrongOutput { expected: "1".into(), got: "1\n".into() };
        assert_eq!(Verdict::of(&ran, Some("1")), wrong);
        ran.ending = Ending::Exited(3);
        assert_eq!(Verdict::of(&ran, Some("1\n")), Verdict::StillFailing(Ending::Exited(3)));
    }

    #[test]
    fn the_same_fault_again_is_no_progress() {
        let before = fault();
        assert!(progressed(&before, &Ending::Ok));
        assert!(!progressed(&before, &Ending::Raised(Box::new(before.clone()))));
        let mut other = before.clone();
        other.message = "another".into();
        assert!(progressed(&before, &Ending::Raised(Box::new(other.clone()))));
        other.facts.syntax = Some(Syntax::default());
        assert!(!progressed(&before, &Ending::Raised(Box::new(other))));
    }
}
