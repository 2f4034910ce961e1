//! What each change does to a session.

use std::collections::btree_map::Entry as Slot;
use std::sync::Arc;

use crate::id::InterruptId;
use crate::llm::Spend;
use crate::step::EffectScope;
use crate::store::Phase;

use super::change::{Adopted, Asked, Change, Entry, Finishing, Opened, Resolved, RunStarted};
use super::children::KnownChild;
use super::end::{End, Settled};
use super::error::{ReplayError, ReplayFault};
use super::interrupts::{AskedInterrupt, NotOpen};
use super::items::{ItemDone, ItemResult, ItemWork, Items, Planned};
use super::timers::{TimerWait, Timers};
use super::{EffectTable, Kept, Parked, Session, Snapshot, StepRef};

impl<P: StepRef> Session<P> {
    /// The session that the first entry of a log opens.
    pub(crate) fn opened(opened: &Opened) -> Self {
        let Opened { format, agent, salt, graph, schema, from, parent, state: _ } = opened;
        let session =
            Self::open(agent.clone(), salt.clone(), graph.clone(), schema.clone(), from.clone());
        Self { format: *format, parent: parent.clone(), ..session }
    }

    /// Moves the session by one entry. The only function that changes a session, live or replayed.
    ///
    /// # Errors
    /// An entry that does not follow on the ones before. Half of it may have been applied then: the
    /// session must not be used any more.
    pub(crate) fn apply(&mut self, entry: &Entry<P>) -> Result<(), ReplayError> {
        self.apply_change(&entry.change, entry.spent.as_ref())
    }

    /// The same for a change that is not written to a log.
    pub(crate) fn apply_change(
        &mut self,
        change: &Change<P>,
        spent: Option<&Spend>,
    ) -> Result<(), ReplayError> {
        self.change(change)?;
        if let Some(spent) = spent {
            self.spent += *spent;
            self.total += *spent;
        }
        Ok(())
    }

    /// The open interrupts that stop waiting when `change` is applied.
    pub(crate) fn closed_by(&self, change: &Change<P>) -> Vec<InterruptId> {
        let leaves = match change {
            Change::Asked(asked) => {
                let new = asked.interrupts.iter();
                let replaced = new.filter_map(|new| {
                    let old = self.asked(new.item, new.key.as_deref())?;
                    let replaced = old.is_open() && old.interrupt.id != new.id;
                    replaced.then(|| old.interrupt.id.clone())
                });
                return replaced.collect();
            }
            Change::Resolved(resolved) => return vec![resolved.id.clone()],
            Change::Committed(_) | Change::Diverted(_) | Change::Finishing(_) => true,
            Change::RunStarted(started) => started.start.is_some(),
            _ => false,
        };
        match leaves {
            true => self.open_interrupts().map(|interrupt| interrupt.id.clone()).collect(),
            false => Vec::new(),
        }
    }

    fn change(&mut self, change: &Change<P>) -> Result<(), ReplayError> {
        let entered = self.cursor.is_entered();
        match change {
            Change::Opened(_) => return Err(ReplayFault::SecondBeginning.into()),
            Change::Reserved(reserved) => {
                return Err(ReplayFault::Reserved { kind: reserved.kind.clone() }.into());
            }
            Change::Adopted(adopted) => self.adopt(adopted),
            Change::RunStarted(started) if entered || started.start.is_some() => {
                self.start(started);
            }
            Change::Recovered(recovered) => {
                self.run = Some(recovered.run.clone());
                self.recovered = self.recovered.saturating_add(1);
                // The attempt that was interrupted by the crash is one.
                self.cursor.attempt = self.cursor.attempt.saturating_add(1);
                self.effects_mut().for_each(|effects| effects.leave(recovered.former));
                self.work_on();
            }
            // It changes the state alone.
            Change::Edited(_) => {}
            Change::Snapshot(snapshot) => self.compare(snapshot)?,
            // Everything else happens at a position.
            other if !entered => {
                return Err(ReplayFault::NotEntered { found: other.name().to_owned() }.into());
            }
            Change::Committed(committed) => {
                self.cursor.steps += 1;
                self.leave();
                if let Some(next) = &committed.next {
                    self.cursor.enter(next);
                }
            }
            Change::Attempt(tried) => match tried.item {
                None => {
                    self.timers.wait_for_none();
                    self.effects.children_mut().for_each(KnownChild::attempt_failed);
                    self.cursor.attempt = tried.n;
                    self.cursor.retries = self.cursor.retries.saturating_add(1);
                }
                Some(index) => {
                    let work = self.work_of(index, change)?;
                    work.timers.wait_for_none();
                    work.effects.children_mut().for_each(KnownChild::attempt_failed);
                    work.attempt = tried.n;
                    work.retries = work.retries.saturating_add(1);
                }
            },
            Change::Intent(intent) => {
                self.effects_of(intent.item, intent.scope, change)?.intend(&intent.key);
            }
            Change::NotDone(intent) => {
                self.effects_of(intent.item, intent.scope, change)?.forget_intent(&intent.key);
            }
            Change::Effect(done) => {
                let effects = self.effects_of(done.item, done.scope, change)?;
                effects.record(&done.key, done.value.clone());
            }
            Change::Asked(asked) => self.ask(asked, change)?,
            Change::Resolved(resolved) => self.resolve(resolved)?,
            Change::Timer(wait) => self.wait(wait, change)?,
            Change::Child(at) => {
                self.effects_of(at.item, EffectScope::Position, change)?.child_at(at);
            }
            Change::ChildDone(done) => {
                let effects = self.effects_of(done.item, EffectScope::Position, change)?;
                if !effects.child_done(done) {
                    return Err(ReplayFault::UnknownChild { key: done.key.clone() }.into());
                }
            }
            Change::Planned(planned) => self.plan(planned)?,
            Change::Item(done) => self.item(done, change)?,
            Change::Diverted(diverted) => {
                self.cursor.steps += 1;
                self.leave();
                self.cursor.enter(&diverted.next);
                self.cursor.failure = Some(diverted.failure.clone());
            }
            Change::Finishing(finishing) => self.finish(finishing),
            Change::Settled(settled) => self.settle(settled),
            Change::RunStarted(_) => {
                return Err(ReplayFault::NotEntered { found: "run".to_owned() }.into());
            }
        }
        Ok(())
    }

    /// A run is at work.
    fn work_on(&mut self) {
        self.phase = Phase::Running;
        self.settled = None;
    }

    /// What belongs to the position ends with it.
    fn leave(&mut self) {
        self.interrupts.clear();
        if !self.effects.is_empty() {
            self.effects = EffectTable::default();
        }
        if !self.timers.is_empty() {
            self.timers = Timers::default();
        }
        self.items = None;
        self.recovered = 0;
    }

    fn work_of(&mut self, index: u32, change: &Change<P>) -> Result<&mut ItemWork, ReplayError> {
        let items = self.items_planned(index, change)?;
        if items.done.contains_key(&index) {
            return Err(no_such_item(index, change));
        }
        Ok(items.work.entry(index).or_default())
    }

    /// The items, of which this must be one.
    fn items_planned(&mut self, index: u32, change: &Change<P>) -> Result<&mut Items, ReplayError> {
        let items = self.items.as_deref_mut();
        let items = items.filter(|items| (index as usize) < items.planned.len());
        items.ok_or_else(|| no_such_item(index, change))
    }

    fn effects_of(
        &mut self,
        item: Option<u32>,
        scope: EffectScope,
        change: &Change<P>,
    ) -> Result<&mut EffectTable, ReplayError> {
        Ok(match (scope, item) {
            (EffectScope::Session, _) => &mut self.session_effects,
            (EffectScope::Position, None) => &mut self.effects,
            (EffectScope::Position, Some(index)) => &mut self.work_of(index, change)?.effects,
        })
    }

    /// All effects that are known of.
    fn effects_mut(&mut self) -> impl Iterator<Item = &mut EffectTable> {
        let parked = self.parked.as_deref_mut();
        let (parked, parked_items) =
            parked.map(|it| (&mut it.effects, it.items.as_deref_mut())).unzip();
        let items = [self.items.as_deref_mut(), parked_items.flatten()];
        let works = items.into_iter().flatten().flat_map(|items| items.work.values_mut());
        [&mut self.effects, &mut self.session_effects]
            .into_iter()
            .chain(parked)
            .chain(works.map(|work| &mut work.effects))
    }

    fn adopt(&mut self, adopted: &Adopted<P>) {
        let Adopted { graph, schema, state: _, renamed } = adopted;
        if let Some(graph) = graph {
            self.graph = graph.clone();
        }
        if let Some(schema) = schema {
            self.schema = schema.clone();
        }
        if !renamed.is_empty() {
            self.cursor.rename(renamed);
            if let Some(parked) = &mut self.parked {
                parked.cursor.rename(renamed);
            }
        }
        // Steps that the loop no longer has are not counted any more.
        let graph = Arc::clone(&self.graph);
        self.cursor.visits.retain(|step| step.is_in(&graph));
        if let Some(parked) = &mut self.parked {
            parked.cursor.visits.retain(|step| step.is_in(&graph));
        }
    }

    fn start(&mut self, started: &RunStarted<P>) {
        let RunStarted { run, start, ops: _, input, input_digest, inbox, trace } = started;
        self.run = Some(run.clone());
        self.inbox = self.inbox.max(*inbox);
        match start {
            Some(start) => {
                self.turn = self.turn.saturating_add(1);
                self.input = input.clone();
                self.input_digest = input_digest.clone();
                self.leave();
                self.cursor.restart(start);
                self.parked = None;
                self.spent = Spend::default();
                self.active_ms = 0;
                self.trace = trace.clone();
            }
            None => {
                self.cursor.retries = 0;
                let failed = self.settled.as_ref().is_some_and(|it| it.end.failure().is_some());
                if failed && let Some(items) = &mut self.items {
                    items.done.retain(|_, result| matches!(result, ItemResult::Done(_)));
                }
                for work in self.items.iter_mut().flat_map(|items| items.work.values_mut()) {
                    work.retries = 0;
                }
                // A run that resumes looks at the children again.
                for child in self.effects_mut().flat_map(EffectTable::children_mut) {
                    child.waits = false;
                    if failed {
                        child.attempt_failed();
                    }
                }
                // A run without a trace of its own continues the turn's.
                if trace.is_some() {
                    self.trace = trace.clone();
                }
            }
        }
        self.work_on();
    }

    fn ask(&mut self, asked: &Asked, change: &Change<P>) -> Result<(), ReplayError> {
        let new = &asked.interrupts;
        new.iter().for_each(|new| self.interrupts.ask(new.clone()));
        // The attempts that asked are over. At a breakpoint none was made.
        if new.iter().any(|interrupt| interrupt.item.is_none() && !interrupt.is_breakpoint()) {
            self.cursor.retries = 0;
            self.cursor.attempt = self.cursor.attempt.saturating_add(1);
        }
        let mut items: Vec<u32> = new.iter().filter_map(|interrupt| interrupt.item).collect();
        items.dedup();
        for index in items {
            let work = self.work_of(index, change)?;
            work.retries = 0;
            work.attempt = work.attempt.saturating_add(1);
        }
        Ok(())
    }

    fn wait(&mut self, wait: &TimerWait, change: &Change<P>) -> Result<(), ReplayError> {
        let (timers, effects, attempt, retries) = match wait.item {
            None => {
                let cursor = &mut self.cursor;
                (&mut self.timers, &mut self.effects, &mut cursor.attempt, &mut cursor.retries)
            }
            Some(index) => {
                let work = self.work_of(index, change)?;
                (&mut work.timers, &mut work.effects, &mut work.attempt, &mut work.retries)
            }
        };
        timers.wait(&wait.timers);
        effects.wait_for_children(&wait.children);
        // The attempt that waits is over; it may have asked as well, and be counted.
        *attempt = (*attempt).max(wait.n);
        *retries = 0;
        Ok(())
    }

    fn resolve(&mut self, resolved: &Resolved) -> Result<(), ReplayError> {
        let Resolved { id, resolution, inbox } = resolved;
        let resolved = self.interrupts.resolve(id, resolution.clone());
        resolved.map_err(|not_open| match not_open {
            NotOpen::Unknown => ReplayFault::UnknownInterrupt { id: id.to_string() },
            NotOpen::Resolved => ReplayFault::ResolvedTwice { id: id.to_string() },
        })?;
        self.inbox = self.inbox.max(*inbox);
        // What has all its answers continues, whatever timers it waits for as well.
        let item = self.interrupts.get(id).and_then(|asked| asked.interrupt.item);
        if !self.interrupts.of_item(item).any(AskedInterrupt::is_open) {
            let waited = match item {
                None => Some((&mut self.timers, &mut self.effects)),
                Some(index) => {
                    let work = self.items.as_mut().and_then(|items| items.work.get_mut(&index));
                    work.map(|work| (&mut work.timers, &mut work.effects))
                }
            };
            if let Some((timers, effects)) = waited {
                timers.wait_for_none();
                effects.wait_for_children(&[]);
            }
        }
        Ok(())
    }

    fn plan(&mut self, planned: &Planned) -> Result<(), ReplayError> {
        if self.items.is_some() {
            return Err(ReplayFault::PlannedTwice.into());
        }
        let items = Items { planned: planned.items.clone(), ..Items::default() };
        self.items = Some(Box::new(items));
        self.timers.wait_for_none();
        Ok(())
    }

    fn item(&mut self, done: &ItemDone, change: &Change<P>) -> Result<(), ReplayError> {
        let items = self.items_planned(done.index, change)?;
        let Slot::Vacant(open) = items.done.entry(done.index) else {
            return Err(no_such_item(done.index, change));
        };
        open.insert(done.result.clone());
        match &done.result {
            ItemResult::Done(_) => {
                items.work.remove(&done.index);
                self.interrupts.remove_item(done.index);
            }
            // What it did and asked stays: a resume may try it again.
            ItemResult::Failed(failure) => {
                let work = items.work.entry(done.index).or_default();
                work.attempt = work.attempt.max(failure.attempts);
                work.timers.wait_for_none();
                work.effects.wait_for_children(&[]);
            }
        }
        // The runs that crash here make progress.
        self.recovered = 0;
        Ok(())
    }

    fn finish(&mut self, finishing: &Finishing<P>) {
        let Finishing { end, next, active_ms } = finishing;
        let failure = end.failure().cloned();
        if !matches!(end, End::Ended { .. }) {
            self.cursor.count_attempts(failure.as_ref());
            self.parked = Some(Box::new(Parked {
                cursor: self.cursor.clone(),
                interrupts: std::mem::take(&mut self.interrupts),
                effects: std::mem::take(&mut self.effects),
                timers: std::mem::take(&mut self.timers),
                items: self.items.take(),
            }));
        }
        self.active_ms = self.active_ms.max(*active_ms);
        self.leave();
        self.cursor.enter(next);
        self.cursor.failure = failure;
        self.cursor.finishing = Some(Kept { end: end.clone(), since: self.cursor.steps });
    }

    fn settle(&mut self, settled: &Settled) {
        self.active_ms = self.active_ms.max(settled.active_ms);
        self.phase = match &settled.end {
            End::Ended { .. } => Phase::Ended,
            End::Failed { .. } => Phase::Failed,
            End::Exhausted { .. } => Phase::Exhausted,
            End::Interrupted => Phase::Interrupted,
            End::Waiting { .. } => Phase::Waiting,
            End::Stopped | End::Cancelled => Phase::Stopped,
        };
        if settled.end.is_of_turn() {
            self.cursor.finishing = None;
            self.cursor.count_attempts(settled.end.failure());
        }
        if self.cursor.finishing.is_none() {
            self.unpark();
        }
        self.recovered = 0;
        self.cursor.attempt = self.cursor.attempt.max(settled.attempt);
        self.settled = Some(Box::new(settled.clone()));
    }

    /// Goes back to where the turn failed or was exhausted, before its last steps.
    fn unpark(&mut self) {
        if let Some(parked) = self.parked.take() {
            let Parked { cursor, interrupts, effects, timers, items } = *parked;
            self.leave();
            self.cursor = super::Cursor { last: self.cursor.last, ..cursor };
            self.interrupts = interrupts;
            self.effects = effects;
            self.timers = timers;
            self.items = items;
        }
    }

    /// Applies a snapshot: it must say what the changes before it come to.
    fn compare(&mut self, snapshot: &Snapshot<P>) -> Result<(), ReplayError> {
        let found = &snapshot.session;
        if let Some(field) = self.difference(found) {
            return Err(ReplayFault::NotReplayable { field: field.to_owned() }.into());
        }
        *self = found.clone();
        Ok(())
    }

    /// Whether the session is a fork whose log has only begun: it is what its snapshot says.
    pub(super) fn is_unwritten_fork(&self) -> bool {
        self.from.is_some() && self.turn == 0 && self.run.is_none()
    }

    /// The first field in which another session differs.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        macro_rules! first_of {
            ($($field:ident),*) => {
                $(if self.$field != other.$field {
                    return Some(stringify!($field));
                })*
            };
        }
        first_of!(agent, salt, from, parent);
        if self.is_unwritten_fork() {
            return None;
        }
        first_of!(
            format,
            graph,
            schema,
            phase,
            cursor,
            interrupts,
            effects,
            timers,
            session_effects,
            items,
            parked,
            turn,
            run,
            input,
            input_digest,
            spent,
            total,
            active_ms,
            settled,
            recovered,
            trace
        );
        // Messages that were passed over are counted in no entry.
        (self.inbox > other.inbox).then_some("inbox")
    }
}

/// No item has this index that is not done.
fn no_such_item<P: Ord>(index: u32, change: &Change<P>) -> ReplayError {
    ReplayFault::NoSuchItem { found: change.name().to_owned(), index }.into()
}

#[cfg(test)]
mod tests;
