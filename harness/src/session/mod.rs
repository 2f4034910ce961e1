//! The life of one state: where its loop stands, what waits, what must not happen twice.
//!
//! A session moves only by [`Commit`]s: a step's result is one value, recorded whole or not at all.
//! Today a session lives in memory, owned by its run and then by the run's outcome.

mod commit;
mod cursor;
mod memory;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::graph::Wiring;
use crate::id::SessionId;
use crate::llm::Spend;
use crate::state::State;
use crate::step::{Answer, Check, Interrupt};

pub(crate) use commit::Commit;
pub(crate) use cursor::{Cursor, Ending, Finishing, Half};
pub(crate) use memory::{Memory, interrupt_id};

/// A session at rest, or in the hands of the run that advances it.
pub(crate) struct Session<S> {
    pub(crate) id: SessionId,
    pub(crate) state: Arc<S>,
    pub(crate) cursor: Cursor,
    pub(crate) questions: Vec<Question>,
    pub(crate) memory: Memory,
    /// Where to go on after `.finally(..)` has run for a turn that is not over.
    pub(crate) parked: Option<Box<Parked>>,
    /// What this turn has spent.
    pub(crate) spent: Spend,
    /// How long this turn has run, waiting not counted.
    pub(crate) active: Duration,
}

/// A place to come back to.
#[derive(Debug)]
pub(crate) struct Parked {
    cursor: Cursor,
    questions: Vec<Question>,
    memory: Memory,
}

/// A question that waits, and its answer once it has come.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) interrupt: Interrupt,
    pub(crate) check: Check,
    pub(crate) answer: Option<Answer>,
}

impl<S: State> Session<S> {
    /// A session before its first step.
    pub(crate) fn new(id: SessionId, state: S, wiring: &Wiring) -> Self {
        Self {
            id,
            state: Arc::new(state),
            cursor: Cursor::start(wiring),
            questions: Vec::new(),
            memory: Memory::default(),
            parked: None,
            spent: Spend::default(),
            active: Duration::ZERO,
        }
    }

    /// Takes a session's place while it is elsewhere.
    pub(crate) fn absent(id: SessionId) -> Self {
        Self {
            id,
            state: Arc::new(S::default()),
            cursor: Cursor::default(),
            questions: Vec::new(),
            memory: Memory::default(),
            parked: None,
            spent: Spend::default(),
            active: Duration::ZERO,
        }
    }

    /// The questions that nobody has answered yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.answer.is_none())
    }

    /// Keeps the place where a turn failed or was exhausted, while `.finally(..)` runs.
    pub(crate) fn park(&mut self, memory: Memory) {
        let questions = std::mem::take(&mut self.questions);
        self.parked = Some(Box::new(Parked { cursor: self.cursor.clone(), questions, memory }));
    }

    /// Goes back to where the turn failed or was exhausted.
    pub(crate) fn unpark(&mut self) {
        if let Some(parked) = self.parked.take() {
            let last = self.cursor.last;
            // The last step of `.finally(..)` may have failed, and left its effects behind.
            self.memory.leave();
            self.cursor = parked.cursor;
            self.cursor.last = last;
            self.questions = parked.questions;
            self.memory.extend(parked.memory);
        }
    }

    /// The gate's question and its answer, for the second half of the gate.
    pub(crate) fn gate_answer(&self) -> Option<(Value, Answer)> {
        let gate = self.questions.iter().find(|question| question.interrupt.key.is_none())?;
        Some((gate.interrupt.question.clone(), gate.answer.clone()?))
    }

    /// Once every question is answered: hands the answers to the step that waits for them. The
    /// questions stay until the position is left, so that the same answer again is taken as read.
    pub(crate) fn take_answers(&mut self) {
        for Question { interrupt, answer, .. } in &self.questions {
            match (&interrupt.key, answer) {
                (Some(key), Some(answer)) => {
                    let answered = (interrupt.question.clone(), answer.clone());
                    self.memory.answers.insert(key.clone(), answered);
                }
                _ => self.cursor.half = Half::Answer,
            }
        }
    }
}
