use std::sync::Arc;

use crate::state::State;
use crate::step::Failure;

use super::{Finishing, Half, Question, Session};

/// One step's result as one value, which a session takes whole: what it changes besides the state,
/// whose update the reducers have folded in before.
#[derive(Debug)]
pub(crate) enum Commit {
    /// The step is done; the loop goes on, or has ended.
    Done { branch: Option<usize>, next: Option<usize> },
    /// Questions wait at this position.
    Asked { questions: Vec<Question> },
    /// The step failed; an error step takes over.
    Diverted { failure: Arc<Failure>, next: usize },
    /// The turn ends by way of `.finally(..)`.
    Finishing { finishing: Box<Finishing>, next: usize },
}

impl<S: State> Session<S> {
    /// Moves the session on.
    pub(crate) fn record(&mut self, commit: Commit) {
        match commit {
            Commit::Done { next, .. } => self.done(next),
            Commit::Asked { mut questions } => {
                // Another question under a key takes the place of the one before.
                self.questions.retain(|old| {
                    !questions.iter().any(|new| new.interrupt.key == old.interrupt.key)
                });
                self.questions.append(&mut questions);
                self.cursor.retries = 0;
            }
            Commit::Diverted { failure, next } => {
                self.cursor.steps += 1;
                self.leave();
                self.cursor.enter(next);
                self.cursor.failure = Some(failure);
            }
            Commit::Finishing { finishing, next } => {
                self.leave();
                self.cursor.enter(next);
                if let super::Ending::Failed(failure) = &finishing.ending {
                    self.cursor.failure = Some(Arc::clone(failure));
                }
                self.cursor.finishing = Some(finishing);
            }
        }
    }

    /// The step is done; the loop goes on with `next`, or has ended.
    #[inline]
    pub(crate) fn done(&mut self, next: Option<usize>) {
        self.cursor.steps += 1;
        self.leave();
        match next {
            Some(next) => self.cursor.enter(next),
            None => self.cursor.half = Half::First,
        }
    }

    /// What belongs to the position ends with it.
    #[inline]
    fn leave(&mut self) {
        if !self.questions.is_empty() {
            self.questions.clear();
        }
    }
}
