//! Following a log: each entry moves what was [`Saved`] on by one.

use std::collections::BTreeMap;

use crate::llm::Spend;
use crate::state::{Op, fold_owned};
use crate::step::EffectScope;
use crate::store::{InboxSeq, OpenInterrupt, Phase, SessionSummary};

use super::entry::{
    Adopted, Asked, Entry, EntryKind, Finishing, HowEnded, HowSettled, Opened, Resolution,
    Resolved, RunStarted, Settled,
};
use super::error::{ReplayError, ReplayFault};
use super::saved::{
    Mark, Saved, SavedCursor, SavedFinishing, SavedMemory, SavedParked, SavedQuestion,
};

impl Saved {
    /// What the first entry of a log, or the first that is kept of it, says.
    ///
    /// # Errors
    /// An entry at which no log begins.
    pub(crate) fn begin(entry: Entry) -> Result<Self, ReplayError> {
        let mut saved = match entry.kind {
            EntryKind::Opened(opened) => Self::opened(*opened),
            EntryKind::Snapshot(snapshot) => *snapshot.0,
            other => {
                let found = other.name().to_owned();
                return Err(ReplayFault::NoBeginning { found }.into());
            }
        };
        saved.charge(entry.spent);
        Ok(saved)
    }

    /// Moves on by one entry, whose values are moved, not cloned.
    ///
    /// # Errors
    /// An entry that does not follow on the ones before. What was saved is then lost: half of the
    /// entry may be in it.
    pub(crate) fn apply(&mut self, entry: Entry) -> Result<(), ReplayError> {
        let entered = self.cursor.position.0 > 0;
        match entry.kind {
            EntryKind::Opened(_) => return Err(ReplayFault::SecondBeginning.into()),
            EntryKind::Reserved(reserved) => {
                return Err(ReplayFault::Reserved { kind: reserved.kind }.into());
            }
            EntryKind::Adopted(adopted) => self.adopt(*adopted),
            EntryKind::RunStarted(started) if entered || started.start.is_some() => {
                self.start(*started)?;
            }
            EntryKind::Recovered(recovered) => {
                self.run = Some(recovered.run);
                self.recovered = self.recovered.saturating_add(1);
                // The attempt that was cut short is one.
                self.cursor.attempt = self.cursor.attempt.saturating_add(1);
                self.go();
            }
            EntryKind::Snapshot(snapshot) => self.check(*snapshot.0)?,
            // Everything else happens at a position.
            other if !entered => {
                let found = other.name().to_owned();
                return Err(ReplayFault::NotEntered { found }.into());
            }
            EntryKind::Committed(committed) => {
                self.fold(committed.ops)?;
                self.cursor.steps += 1;
                self.leave();
                if let Some(next) = committed.next {
                    self.cursor.enter(next);
                }
            }
            EntryKind::Attempt(attempt) => {
                self.cursor.attempt = attempt.n;
                self.cursor.retries = self.cursor.retries.saturating_add(1);
            }
            EntryKind::Intent(intent) => {
                self.marks(intent.scope).insert(intent.key, Mark::Intent);
            }
            EntryKind::Effect(effect) => {
                self.marks(effect.scope).insert(effect.key, Mark::Done(effect.value));
            }
            EntryKind::Asked(asked) => self.ask(asked),
            EntryKind::Resolved(resolved) => self.resolve(*resolved)?,
            EntryKind::Diverted(diverted) => {
                self.cursor.steps += 1;
                self.leave();
                self.cursor.enter(diverted.next);
                self.cursor.failure = Some(Box::new(diverted.failure));
            }
            EntryKind::Finishing(finishing) => self.finish(*finishing),
            EntryKind::Settled(settled) => self.settle(settled),
            EntryKind::RunStarted(_) => {
                return Err(ReplayFault::NotEntered { found: "run".to_owned() }.into());
            }
        }
        self.charge(entry.spent);
        Ok(())
    }

    /// What a store keeps beside the log.
    pub(crate) fn facts(&self) -> SessionSummary {
        // Only a session that waits for nothing else needs somebody because a question expired.
        let due = match self.phase {
            Phase::Interrupted => {
                self.open().filter_map(|question| question.interrupt.expires_at).min()
            }
            _ => None,
        };
        SessionSummary {
            agent: self.agent.clone(),
            phase: self.phase,
            step: self.cursor.step.to_string(),
            due,
            inbox: self.mail,
        }
    }

    /// The questions that wait for an answer.
    pub(crate) fn open(&self) -> impl Iterator<Item = &SavedQuestion> {
        self.questions.iter().filter(|question| question.resolution.is_none())
    }

    /// The same as a store knows them.
    pub(crate) fn open_questions(&self) -> Vec<OpenInterrupt> {
        self.open()
            .map(|SavedQuestion { interrupt, .. }| OpenInterrupt {
                id: interrupt.id.clone(),
                since: interrupt.asked_at,
                expires: interrupt.expires_at,
            })
            .collect()
    }

    fn opened(opened: Opened) -> Self {
        let Opened { format, agent, salt, graph, schema, state, from } = opened;
        Self {
            format,
            agent,
            salt,
            graph,
            schema,
            from,
            state,
            phase: Phase::Running,
            cursor: SavedCursor::not_entered(),
            questions: Vec::new(),
            memory: SavedMemory::default(),
            session_effects: BTreeMap::new(),
            parked: None,
            turn: 0,
            run: None,
            input: None,
            spent: Spend::default(),
            total: Spend::default(),
            active_ms: 0,
            settled: None,
            recovered: 0,
            mail: InboxSeq::default(),
            trace: None,
        }
    }

    fn charge(&mut self, spent: Option<Spend>) {
        if let Some(spent) = spent {
            self.spent += spent;
            self.total += spent;
        }
    }

    fn fold(&mut self, ops: Vec<Op>) -> Result<(), ReplayError> {
        fold_owned(&mut self.state, ops).map_err(|error| ReplayFault::Fold(error).into())
    }

    fn marks(&mut self, scope: EffectScope) -> &mut BTreeMap<String, Mark> {
        match scope {
            EffectScope::Position => &mut self.memory.effects,
            EffectScope::Session => &mut self.session_effects,
        }
    }

    /// A run is at work.
    fn go(&mut self) {
        self.phase = Phase::Running;
        self.settled = None;
    }

    /// What belongs to the position ends with it.
    fn leave(&mut self) {
        self.questions.clear();
        if !self.memory.effects.is_empty() {
            self.memory.effects.clear();
        }
        self.recovered = 0;
    }

    fn adopt(&mut self, adopted: Adopted) {
        let Adopted { graph, schema, state, step, renamed } = adopted;
        if let Some(graph) = graph {
            self.graph = graph;
        }
        if let Some(schema) = schema {
            self.schema = schema;
        }
        if let Some(state) = state {
            self.state = state;
        }
        if !renamed.is_empty() {
            self.cursor.rename(&renamed);
            if let Some(parked) = &mut self.parked {
                parked.cursor.rename(&renamed);
            }
        }
        if let Some(step) = step {
            self.cursor.step = step;
        }
    }

    fn start(&mut self, started: RunStarted) -> Result<(), ReplayError> {
        let RunStarted { run, start, ops, input, mail, trace } = started;
        self.fold(ops)?;
        self.run = Some(run);
        self.mail = self.mail.max(mail);
        match start {
            Some(start) => {
                self.turn = self.turn.saturating_add(1);
                self.input = input;
                self.leave();
                self.cursor.restart(start);
                self.parked = None;
                self.spent = Spend::default();
                self.active_ms = 0;
                self.trace = trace;
            }
            None => {
                self.cursor.retries = 0;
                // Who goes on without a trace of their own goes on with the turn's.
                self.trace = trace.or(self.trace.take());
            }
        }
        self.go();
        Ok(())
    }

    fn ask(&mut self, asked: Asked) {
        let new = asked.questions;
        // Another question under a key takes the place of the one before.
        self.questions.retain(|old| {
            old.resolution != Some(Resolution::Withdrawn)
                && !new.iter().any(|new| new.key == old.interrupt.key)
        });
        let new = new.into_iter().map(|interrupt| SavedQuestion { interrupt, resolution: None });
        self.questions.extend(new);
        self.cursor.retries = 0;
    }

    fn resolve(&mut self, resolved: Resolved) -> Result<(), ReplayError> {
        let Resolved { id, resolution, mail } = resolved;
        let question = self.questions.iter_mut().find(|question| question.interrupt.id == id);
        match question {
            None => Err(ReplayFault::UnknownQuestion { id: id.to_string() }.into()),
            Some(SavedQuestion { resolution: Some(_), .. }) => {
                Err(ReplayFault::ResolvedTwice { id: id.to_string() }.into())
            }
            Some(question) => {
                question.resolution = Some(resolution);
                self.mail = self.mail.max(mail);
                Ok(())
            }
        }
    }

    fn finish(&mut self, finishing: Finishing) {
        let Finishing { ending, next, active_ms } = finishing;
        let failure = match &ending {
            HowEnded::Failed { failure } => Some(failure.clone()),
            HowEnded::Ended { .. } | HowEnded::Exhausted { .. } => None,
        };
        if !matches!(ending, HowEnded::Ended { .. }) {
            self.cursor.count_attempts(failure.as_deref());
            self.parked = Some(Box::new(SavedParked {
                cursor: self.cursor.clone(),
                questions: std::mem::take(&mut self.questions),
                memory: std::mem::take(&mut self.memory),
            }));
        }
        self.active_ms = self.active_ms.max(active_ms);
        self.leave();
        self.cursor.enter(next);
        self.cursor.failure = failure;
        self.cursor.finishing = Some(SavedFinishing { ending, since: self.cursor.steps });
    }

    fn settle(&mut self, settled: Box<Settled>) {
        self.active_ms = self.active_ms.max(settled.active_ms);
        self.phase = match &settled.how {
            HowSettled::Turn(HowEnded::Ended { .. }) => Phase::Ended,
            HowSettled::Turn(HowEnded::Failed { .. }) => Phase::Failed,
            HowSettled::Turn(HowEnded::Exhausted { .. }) => Phase::Exhausted,
            HowSettled::Interrupted => Phase::Interrupted,
            HowSettled::Stopped | HowSettled::Cancelled => Phase::Stopped,
        };
        if let HowSettled::Turn(ending) = &settled.how {
            self.cursor.finishing = None;
            if let HowEnded::Failed { failure } = ending {
                self.cursor.count_attempts(Some(failure));
            }
        }
        if self.cursor.finishing.is_none() {
            self.unpark();
        }
        self.recovered = 0;
        self.cursor.attempt = self.cursor.attempt.max(settled.attempt);
        self.settled = Some(settled);
    }

    /// Goes back to where the turn failed or was exhausted, before its last steps.
    fn unpark(&mut self) {
        if let Some(parked) = self.parked.take() {
            let SavedParked { cursor, questions, memory } = *parked;
            self.leave();
            self.cursor = SavedCursor { last: self.cursor.last, ..cursor };
            self.questions = questions;
            self.memory = memory;
        }
    }

    /// Takes a snapshot for what it says it is: the sum of what came before.
    fn check(&mut self, snapshot: Self) -> Result<(), ReplayError> {
        if let Some(field) = self.difference(&snapshot) {
            return Err(ReplayFault::NotReplayable { field }.into());
        }
        *self = snapshot;
        Ok(())
    }

    /// The first thing in which a snapshot differs.
    fn difference(&self, other: &Self) -> Option<String> {
        macro_rules! first_of {
            ($($field:ident),*) => {
                $(if self.$field != other.$field {
                    return Some(stringify!($field).to_owned());
                })*
            };
        }
        first_of!(agent, salt, from);
        // A fork begins with what it was forked from.
        if self.from.is_some() && self.turn == 0 && self.run.is_none() {
            return None;
        }
        if let Some(field) = self.schema.difference(&self.state, &other.state) {
            return Some(field.to_owned());
        }
        if self.state != other.state && !(self.state.is_object() && other.state.is_object()) {
            return Some("state".to_owned());
        }
        first_of!(
            format,
            graph,
            schema,
            phase,
            cursor,
            questions,
            memory,
            session_effects,
            parked,
            turn,
            run,
            input,
            spent,
            total,
            active_ms,
            settled,
            recovered,
            trace
        );
        // Letters that were passed over are counted in no entry.
        (self.mail > other.mail).then(|| "mail".to_owned())
    }
}

#[cfg(test)]
mod tests;
