//! Between a session at work and what its log says of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::graph::{Exit, Wiring};
use crate::id::SessionId;
use crate::log::{
    HowEnded, Mark, Resolution, Saved, SavedCursor, SavedFinishing, SavedMemory, SavedQuestion,
};
use crate::state::State;
use crate::step::Answer;
use crate::store::Phase;

use super::{Cursor, Ending, Finishing, Half, Memory, Parked, Question, Session};

impl<S: State> Session<S> {
    /// A session as its log has it. `None` if it rests at a step that the loop does not have.
    pub(crate) fn restore(id: SessionId, saved: &Saved, state: S, wiring: &Wiring) -> Option<Self> {
        let mut memory = memory(&saved.memory);
        for (key, mark) in &saved.session_effects {
            match mark {
                Mark::Done(value) => {
                    memory.session_effects.insert(key.clone(), value.clone());
                }
                Mark::Intent => {
                    memory.session_intents.insert(key.clone());
                }
            }
        }
        let parked = match &saved.parked {
            Some(parked) => {
                let mut kept = memory_of(&parked.memory, &parked.questions);
                kept.session_effects.clear();
                Some(Box::new(Parked {
                    cursor: self::cursor(&parked.cursor, wiring)?,
                    questions: questions(&parked.questions),
                    memory: kept,
                }))
            }
            None => None,
        };
        let mut cursor = match self::cursor(&saved.cursor, wiring) {
            Some(cursor) => cursor,
            // The next turn begins at the start, wherever the last one ended.
            None if saved.phase == Phase::Ended => Cursor::start_behind(wiring, saved.cursor.last),
            None => return None,
        };
        cursor.unsure = saved.recovered;
        Some(Self {
            id,
            salt: Some(saved.salt.clone()),
            state: Arc::new(state),
            cursor,
            questions: questions(&saved.questions),
            memory: Some(Box::new(memory)),
            parked,
            spent: Some(Box::new(saved.spent)),
            active: Duration::from_millis(saved.active_ms),
        })
    }

    /// Starts the next turn: everything that belongs to a turn begins anew.
    pub(crate) fn begin_turn(&mut self, wiring: &Wiring) {
        let last = self.cursor.last;
        self.cursor = Cursor::start_behind(wiring, last);
        self.questions.clear();
        self.forget_position();
        self.parked = None;
        self.spent = None;
        self.active = Duration::ZERO;
    }

    /// Notes what became of a question. False if the session does not ask it.
    pub(crate) fn resolve(&mut self, id: &crate::id::InterruptId, resolution: &Resolution) -> bool {
        let asked = self.questions.iter_mut().find(|asked| asked.interrupt.id == *id);
        let Some(asked) = asked else { return false };
        (asked.answer, asked.expired) = fate(&asked.interrupt.id, resolution);
        true
    }
}

/// The answer a question got, and whether it got none in time.
fn fate(id: &crate::id::InterruptId, resolution: &Resolution) -> (Option<Answer>, bool) {
    match resolution {
        Resolution::Answered { value, by, at, .. } => {
            let answer = Answer {
                id: id.clone(),
                name: None,
                value: Ok(value.clone()),
                by: by.clone(),
                at: *at,
            };
            (Some(answer), false)
        }
        Resolution::Expired | Resolution::Withdrawn => (None, true),
    }
}

fn questions(saved: &[SavedQuestion]) -> Vec<Question> {
    saved
        .iter()
        .map(|question| {
            let resolution = question.resolution.as_ref();
            let (answer, expired) =
                resolution.map(|it| fate(&question.interrupt.id, it)).unwrap_or_default();
            // What is answered here was checked before it was posted.
            Question { interrupt: question.interrupt.clone(), check: |_| Ok(()), answer, expired }
        })
        .collect()
}

fn memory(saved: &SavedMemory) -> Memory {
    let mut memory = Memory::default();
    for (key, mark) in &saved.effects {
        match mark {
            Mark::Done(value) => {
                memory.effects.insert(key.clone(), value.clone());
            }
            Mark::Intent => {
                memory.intents.insert(key.clone());
            }
        }
    }
    memory
}

/// What belongs to a position that is parked: its effects, and the answers its step got.
fn memory_of(saved: &SavedMemory, asked: &[SavedQuestion]) -> Memory {
    let mut memory = memory(saved);
    for question in questions(asked) {
        question.hand_over(&mut memory);
    }
    memory
}

fn cursor(saved: &SavedCursor, wiring: &Wiring) -> Option<Cursor> {
    let index = |name: &str| {
        wiring.nodes.iter().position(|node| {
            *node.name == *name || node.aliases.iter().any(|alias| **alias == *name)
        })
    };
    let mut cursor = Cursor::start(wiring);
    cursor.step = index(&saved.step)?;
    cursor.position = saved.position;
    cursor.last = saved.last;
    cursor.half = Half::First;
    cursor.attempt = saved.attempt;
    cursor.retries = saved.retries;
    cursor.steps = saved.steps;
    let visits: &BTreeMap<Arc<str>, u32> = &saved.visits;
    for count in &mut cursor.visits {
        *count = 0;
    }
    for (name, times) in visits {
        if let Some(count) = index(name).and_then(|step| cursor.visits.get_mut(step)) {
            *count = *times;
        }
    }
    cursor.failure = saved.failure.as_deref().cloned().map(Arc::new);
    cursor.finishing = saved.finishing.as_ref().map(|SavedFinishing { ending, since }| {
        Box::new(Finishing { ending: Ending::restore(ending, wiring), since: *since })
    });
    Some(cursor)
}

impl Ending {
    /// An end as the log tells it.
    pub(crate) fn restore(saved: &HowEnded, wiring: &Wiring) -> Self {
        match saved {
            HowEnded::Ended { by: None } => Self::plain(),
            HowEnded::Ended { by: Some((of, said)) } => {
                // Names that live as long as the program are found in the loop.
                let found = wiring.nodes.iter().find_map(|node| match &node.exit {
                    Exit::Route { signals, branches } if signals == of => branches
                        .iter()
                        .find(|branch| branch.signal == said)
                        .map(|branch| (*signals, branch.signal)),
                    _ => None,
                });
                let (signals, signal) = found.unzip();
                Self::Ended { signals, signal }
            }
            HowEnded::Failed { failure } => Self::Failed(Arc::new((**failure).clone())),
            HowEnded::Exhausted { limit } => Self::Exhausted(*limit),
        }
    }

    /// The end as the log tells it.
    pub(crate) fn to_saved(&self) -> HowEnded {
        match self {
            Self::Ended { signals, signal } => HowEnded::Ended {
                by: signals.zip(*signal).map(|(of, said)| (of.to_owned(), said.to_owned())),
            },
            Self::Failed(failure) => HowEnded::Failed { failure: Box::new((**failure).clone()) },
            Self::Exhausted(limit) => HowEnded::Exhausted { limit: *limit },
        }
    }
}
