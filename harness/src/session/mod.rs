//! The life of one state: where its loop stands, what waits, what must not happen twice.
//!
//! A session moves only by [`Commit`]s: a step's result is one value, recorded whole or not at all.
//! Without a store it lives in memory, owned by its run and then by the run's outcome; with one, it
//! is restored from its log.

mod commit;
mod cursor;
mod memory;
mod restore;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::graph::Wiring;
use crate::id::{InterruptId, SessionId};
use crate::llm::Spend;
use crate::log::Salt;
use crate::state::State;
use crate::step::{Answer, Asked, Check, Interrupt};

pub(crate) use commit::Commit;
pub(crate) use cursor::{Cursor, Ending, Finishing, Half};
pub(crate) use memory::Memory;

/// A session at rest, or in the hands of the run that advances it.
pub(crate) struct Session<S> {
    pub(crate) id: SessionId,
    /// Made when the first question is asked.
    pub(crate) salt: Option<Salt>,
    pub(crate) state: Arc<S>,
    pub(crate) cursor: Cursor,
    pub(crate) questions: Vec<Question>,
    /// None while there is nothing to remember, as in most sessions.
    pub(crate) memory: Option<Box<Memory>>,
    /// Where to go on after `.finally(..)` has run for a turn that is not over.
    pub(crate) parked: Option<Box<Parked>>,
    /// What this turn has spent, if that is anything.
    pub(crate) spent: Option<Box<Spend>>,
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
    /// Nobody answered it in time.
    pub(crate) expired: bool,
}

impl Question {
    /// Whether it still waits.
    pub(crate) fn is_open(&self) -> bool {
        self.answer.is_none() && !self.expired
    }

    /// Whether its time is over.
    pub(crate) fn is_overdue(&self, now: UtcMillis) -> bool {
        self.is_open() && self.interrupt.expires_at.is_some_and(|at| at <= now)
    }

    /// Tells a step that asks again what came of an inline question.
    pub(crate) fn hand_over(&self, memory: &mut Memory) {
        let Some(key) = &self.interrupt.key else { return };
        match &self.answer {
            Some(answer) => {
                let answered = (self.interrupt.clone(), answer.clone());
                memory.answers.insert(key.clone(), answered);
            }
            None if self.expired => {
                memory.expired.insert(key.clone(), self.interrupt.clone());
            }
            None => {}
        }
    }
}

impl<S> Session<S> {
    /// What this turn has spent.
    pub(crate) fn spent(&self) -> Spend {
        self.spent.as_deref().copied().unwrap_or_default()
    }

    /// Adds what was remembered elsewhere.
    pub(crate) fn remember(&mut self, late: Memory) {
        match &mut self.memory {
            Some(memory) => memory.extend(late),
            None => self.memory = Some(Box::new(late)),
        }
    }

    /// Forgets what belongs to a position that is left.
    fn forget_position(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.leave();
        }
    }
}

impl<S: State> Session<S> {
    /// A session before its first step.
    pub(crate) fn new(id: SessionId, state: S, wiring: &Wiring) -> Self {
        Self {
            id,
            salt: None,
            state: Arc::new(state),
            cursor: Cursor::start(wiring),
            questions: Vec::new(),
            memory: None,
            parked: None,
            spent: None,
            active: Duration::ZERO,
        }
    }

    /// Takes a session's place while it is elsewhere.
    pub(crate) fn absent(session: &Self) -> Self {
        Self {
            id: session.id.clone(),
            salt: None,
            state: Arc::clone(&session.state),
            cursor: Cursor::default(),
            questions: Vec::new(),
            memory: None,
            parked: None,
            spent: None,
            active: Duration::ZERO,
        }
    }

    /// The questions that nobody has answered yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.is_open())
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
            self.forget_position();
            self.cursor = parked.cursor;
            self.cursor.last = last;
            self.questions = parked.questions;
            self.remember(parked.memory);
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
        for question in &self.questions {
            question.hand_over(self.memory.get_or_insert_default());
            if question.interrupt.key.is_none() {
                self.cursor.half = match question.expired {
                    true => Half::Expired,
                    false => Half::Answer,
                };
            }
        }
    }

    /// Names a question that is asked at the position at work.
    pub(crate) fn interrupt_id(&mut self, key: Option<&str>, asked: &Asked) -> InterruptId {
        let salt = self.salt.get_or_insert_with(Salt::random);
        let Cursor { position, attempt, .. } = self.cursor;
        let Asked { name, question, answer_schema, .. } = asked;
        salt.interrupt_id(position, attempt, key, name, question, answer_schema)
    }
}
