//! What a run writes into its session's log, and how it goes on from what letters say.

use std::collections::HashSet;
use std::sync::Arc;

use crate::context::Context;
use crate::graph::Wiring;
use crate::journal::{Broken, InputLetter, LetterBody, Tell, Unread, When, taken_key};
use crate::log::{
    Asked, Committed, Diverted, Entry, EntryKind, Finishing as FinishingEntry, Resolved,
    RunStarted, check_ops, decode_state,
};
use crate::session::{Commit, Ending};
use crate::state::{Op, Ops, State, encode};
use crate::step::{Failure, FailureKind, StepError};
use crate::store::InboxSeq;

use super::advance::{Left, STEPS_PER_TURN, Undone, failed, undone};
use super::answers::Taken;
use super::driver::Driver;
use super::settle::How;
use super::transition::{Happened, Transition, transition};

/// What becomes of an entry that was laid up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Staged {
    /// It is one with what follows.
    Stays,
    /// It is to be appended.
    Due,
}

/// What a run lays up for its log.
pub(crate) struct Durable {
    /// Records what reducers do.
    pub(super) ops: Ops,
    /// What the reducers did in the step that is done.
    done: Vec<Op>,
    /// Entries that are appended together with those that follow.
    staged: Vec<Entry>,
    tells: Vec<Tell>,
    /// The session is given back.
    pub(super) over: bool,
    /// Counts steps that never waited.
    in_a_row: u32,
    /// Another run has settled in this turn, or in one before that has not ended: it may have passed
    /// over inputs.
    resumed: bool,
}

impl Durable {
    pub(super) fn new(resumed: bool) -> Box<Self> {
        Box::new(Self {
            ops: Ops::on(),
            done: Vec::new(),
            staged: Vec::new(),
            tells: Vec::new(),
            over: false,
            in_a_row: 0,
            resumed,
        })
    }
}

impl Broken {
    /// What it means to the step, or the run, that could not be recorded.
    pub(crate) fn to_error(&self) -> StepError {
        let (kind, message) = match self {
            Self::LeaseLost => (
                FailureKind::LeaseLost,
                "the run lost its lease of the session: another run may have it (nothing was \
                 recorded since; resume the session to go on with it)"
                    .to_owned(),
            ),
            Self::Store(error) => (FailureKind::Store, error.to_string()),
            Self::NotReplayable { field } => (
                FailureKind::NotReplayable,
                format!(
                    "what the reducer of `{field}` says it did does not add up to the field's \
                     value (correct the operations it returns, or have it return none)"
                ),
            ),
            Self::Unsound(why) => {
                (FailureKind::NotReplayable, format!("the step could not be recorded: {why}"))
            }
        };
        StepError::of(kind, false, message)
    }
}

impl<C: Context, S: State> Driver<C, S> {
    /// Takes what the reducers did in the step that is done. If JSON cannot hold it, the state is
    /// as it was before the step.
    pub(super) async fn take_ops(&mut self) -> Result<(), StepError> {
        let Err(why) = self.take_ops_now() else { return Ok(()) };
        self.restore_state().await?;
        Err(StepError::of(FailureKind::Encode, false, why))
    }

    /// The same, but that the state stays as it is. Says why JSON cannot hold it.
    #[inline]
    fn take_ops_now(&mut self) -> Result<(), String> {
        let Some(durable) = &mut self.durable else { return Ok(()) };
        let ops = durable.ops.take().map_err(|error| error.to_string())?;
        check_ops(&ops).map_err(|error| error.to_string())?;
        durable.done = ops;
        Ok(())
    }

    /// Goes back to the state that the log adds up to.
    pub(super) async fn restore_state(&mut self) -> Result<(), StepError> {
        let Some(journal) = &self.core.journal else { return Ok(()) };
        if let Some(durable) = &mut self.durable {
            durable.ops = Ops::on();
        }
        let state = journal.saved(|saved| decode_state::<S>(&saved.state)).await;
        let state = state
            .map_err(|error| StepError::of(FailureKind::NotReplayable, false, error.to_string()))?;
        self.session.state = Arc::new(state);
        Ok(())
    }

    /// Records one step's result, then tells of it. Says how the run settles if it cannot be
    /// recorded.
    pub(super) async fn commit(&mut self, wiring: &Wiring, commit: Commit) -> Option<How> {
        match self.stage_commit(wiring, commit) {
            Staged::Stays => None,
            Staged::Due => self.write(When::Mode).await,
        }
    }

    /// Lays up one step's result, and takes it over into the session.
    fn stage_commit(&mut self, wiring: &Wiring, commit: Commit) -> Staged {
        let Some(durable) = &mut self.durable else {
            self.commit_now(wiring, commit);
            return Staged::Stays;
        };
        let name = |step: usize| Arc::clone(&wiring.nodes[step].name);
        // These are one with what follows: the end of the turn, the settling, or the last steps.
        let stays = matches!(commit, Commit::Done { next: None, .. } | Commit::Asked { .. });
        let kind = match &commit {
            Commit::Done { next, .. } => EntryKind::Committed(Committed {
                next: next.map(name),
                ops: std::mem::take(&mut durable.done),
            }),
            Commit::Asked { questions } => EntryKind::Asked(Asked {
                questions: questions.iter().map(|asked| asked.interrupt.clone()).collect(),
            }),
            Commit::Diverted { failure, next } => EntryKind::Diverted(Box::new(Diverted {
                failure: (**failure).clone(),
                next: name(*next),
            })),
            Commit::Finishing { finishing, next } => {
                let active = u64::try_from(self.session.active.as_millis()).unwrap_or(u64::MAX);
                EntryKind::Finishing(Box::new(FinishingEntry {
                    ending: finishing.ending.to_saved(),
                    next: name(*next),
                    active_ms: active,
                }))
            }
        };
        let place = self.session.cursor.place();
        let entry = self.core.entry(kind);
        durable.staged.push(entry);
        if !self.core.fanout.is_silent() {
            for event in super::perform::commit_events(wiring, place.step(), &commit) {
                let core = Arc::clone(&self.core);
                durable.tells.push(Box::new(move |seq| core.publish_stored(place, seq, event)));
            }
        }
        self.record_now(commit);
        if stays { Staged::Stays } else { Staged::Due }
    }

    /// Records a step that was done at its first poll. Says how the run settles if it cannot be
    /// recorded, and gives back what takes more than a commit.
    pub(super) async fn record_done(
        &mut self,
        wiring: &Wiring,
        branch: Option<usize>,
    ) -> Result<Option<How>, Undone> {
        let happened = Happened::Done { branch };
        let Transition::Enter { step } = transition(wiring, &self.session.cursor, happened) else {
            return Err(undone(happened, Left::default()));
        };
        if let Err(why) = self.take_ops_now() {
            Box::pin(self.restore_state()).await.map_err(failed)?;
            return Err(failed(StepError::of(FailureKind::Encode, false, why)));
        }
        let how = match self.stage_commit(wiring, Commit::Done { branch, next: Some(step) }) {
            Staged::Stays => None,
            Staged::Due => self.write(When::Mode).await,
        };
        if let Some(durable) = &mut self.durable {
            durable.in_a_row += 1;
            if durable.in_a_row.is_multiple_of(STEPS_PER_TURN) {
                tokio::task::yield_now().await;
            }
        }
        Ok(how)
    }

    /// Appends what is staged.
    async fn write(&mut self, when: When) -> Option<How> {
        let (Some(durable), Some(journal)) = (&mut self.durable, &self.core.journal) else {
            return None;
        };
        let wrote = match journal.write_from(&mut durable.staged, when, &mut durable.tells).await {
            // What few steps need is boxed, so that it costs the others nothing.
            Ok(receipt) if receipt.snapshot_due => match encode(&*self.session.state) {
                Ok(live) => Box::pin(journal.snapshot(live, &S::schema())).await,
                Err(error) => Err(Broken::Unsound(error.to_string())),
            },
            Ok(_) => Ok(()),
            Err(broken) => Err(broken),
        };
        wrote.err().map(|broken| self.cut(&broken))
    }

    /// Nothing more can be recorded.
    pub(super) fn cut(&self, broken: &Broken) -> How {
        let cursor = &self.session.cursor;
        let step = &self.program.graph.wiring.nodes[cursor.step].name;
        let failure = Failure::new(&broken.to_error(), step, cursor.position, cursor.attempt);
        How::Cut(Arc::new(failure))
    }

    /// Writes an entry of its own.
    pub(super) async fn write_entry(&mut self, kind: EntryKind) -> Option<How> {
        let entry = self.core.entry(kind);
        self.durable.as_mut()?.staged.push(entry);
        self.write(When::Mode).await
    }

    /// Records how the run settles. What cannot be recorded settles it otherwise, with the state
    /// that the store has.
    pub(super) async fn settle_durably(&mut self, mut how: How) -> How {
        let Some(journal) = &self.core.journal else { return how };
        if !matches!(how, How::Cut(_)) && !journal.holds().await {
            how = self.cut(&Broken::LeaseLost);
        }
        if self.lost {
            let restored = self.restore_state().await;
            self.lost = restored.is_err();
            if let (Err(error), How::Turn(Ending::Ended { .. }, _)) = (restored, &how) {
                // An end is told with its state.
                how = self.cut(&Broken::Unsound(error.to_string()));
            }
        }
        if let Some(settled) = how.to_settled(self.session.active, &self.session.cursor) {
            let entry = self.core.entry(EntryKind::Settled(Box::new(settled)));
            if let Some(durable) = &mut self.durable {
                durable.staged.push(entry);
            }
            if let Some(cut) = self.write(When::Now).await {
                how = cut;
            }
        }
        if let (How::Cut(_), Some(journal)) = (&how, &self.core.journal) {
            journal.give_up().await;
            let stored = journal.stored().await;
            let state = stored.and_then(|saved| decode_state::<S>(&saved.state).ok());
            self.lost = state.is_none();
            self.session.state = Arc::new(state.unwrap_or_default());
            journal.release().await;
        }
        how
    }

    /// After the run has settled: gives the session back, unless letters say how it goes on.
    pub(super) async fn goes_on(&mut self, how: &How) -> bool {
        let core = Arc::clone(&self.core);
        let Some(journal) = &core.journal else { return false };
        loop {
            let Ok(unread) = journal.unread().await else { break };
            let resumed = self.durable.as_ref().is_some_and(|durable| durable.resumed);
            if (resumed || !unread.is_empty()) && self.take_letters(how, unread).await {
                return true;
            }
            // Whoever posted while this run held the session was told that it would see to it.
            if !journal.release().await || !journal.reclaim(Arc::new(core.brakes.clone())).await {
                break;
            }
        }
        false
    }

    /// Takes letters into the log. Says whether there is something to do now.
    async fn take_letters(&mut self, how: &How, unread: Vec<Unread>) -> bool {
        let last = unread.last().map_or(InboxSeq(0), |letter| letter.mail);
        match how {
            How::Interrupted => {
                let taken = self.take_resolutions(unread);
                if !taken.is_empty() {
                    let open = self.session.open().next().is_some();
                    if open {
                        let Some(settled) =
                            how.to_settled(self.session.active, &self.session.cursor)
                        else {
                            return false;
                        };
                        let entry = self.core.entry(EntryKind::Settled(Box::new(settled)));
                        self.stage([entry]);
                    }
                    let written = self.write(When::Now).await.is_none();
                    if written && !open {
                        self.taken = Some(taken);
                        if let Some(durable) = &mut self.durable {
                            durable.resumed = true;
                        }
                        self.take_up();
                        return true;
                    }
                }
            }
            How::Turn(Ending::Ended { .. }, _) => match self.take_input(unread).await {
                Some(true) => return true,
                Some(false) => {}
                None => return false,
            },
            _ => {}
        }
        if let Some(journal) = &self.core.journal {
            journal.passed_over(last).await;
        }
        false
    }

    /// Begins the next turn with the first input that waits. `None` if it is not known whether one
    /// does.
    async fn take_input(&mut self, unread: Vec<Unread>) -> Option<bool> {
        let core = Arc::clone(&self.core);
        let journal = core.journal.as_ref()?;
        // Inputs that came before the turn could take them were passed over.
        let resumed = self.durable.as_ref().is_some_and(|durable| durable.resumed);
        let letters = if resumed { journal.letters().await.ok()? } else { unread };
        let current = journal.saved(|saved| saved.input.clone()).await;
        let taken: HashSet<String> = letters
            .iter()
            .filter(|letter| matches!(letter.body, Some(LetterBody::Taken)))
            .map(|letter| letter.key.clone())
            .collect();
        for letter in letters {
            let Some(LetterBody::Input(input)) = letter.body else { continue };
            if current.as_ref() == Some(&letter.key) || taken.contains(&taken_key(&letter.key)) {
                continue;
            }
            if let Some(current) = &current {
                journal.note_taken(current).await.ok()?;
            }
            if self.begin_turn(letter.key, letter.mail, input).await {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Stages what became of questions.
    fn take_resolutions(&mut self, unread: Vec<Unread>) -> Vec<Taken> {
        let resolved = resolutions(unread);
        let mut taken = Vec::new();
        let mut entries = Vec::new();
        for resolved in resolved {
            let open = self.session.open().any(|asked| asked.interrupt.id == resolved.id);
            if open && self.session.resolve(&resolved.id, &resolved.resolution) {
                taken.push((resolved.id.clone(), resolved.resolution.by()));
                entries.push(EntryKind::Resolved(Box::new(resolved)));
            }
        }
        if !entries.is_empty() {
            let run = RunStarted::resumed(self.core.ids.run.clone());
            entries.insert(0, EntryKind::RunStarted(Box::new(run)));
            let entries: Vec<Entry> =
                entries.into_iter().map(|kind| self.core.entry(kind)).collect();
            self.stage(entries);
        }
        taken
    }

    /// Begins the next turn with an input that came as a letter. One that nobody can read is left.
    async fn begin_turn(&mut self, key: String, mail: InboxSeq, input: InputLetter) -> bool {
        let Ok(update) = serde_json::from_value::<S::Update>(input.update) else {
            tracing::warn!(session = %self.session.id, %key, "an input that is no update is left");
            return false;
        };
        let mut state = (*self.session.state).clone();
        let Ok(ops) = super::turn::reduce(&mut state, update) else {
            tracing::warn!(session = %self.session.id, %key, "an input that cannot be reduced is left");
            return false;
        };
        let program = Arc::clone(&self.program);
        let wiring = &*program.graph.wiring;
        let start = Arc::clone(&wiring.nodes[wiring.start].name);
        let run = RunStarted::turn(self.core.ids.run.clone(), start, ops, Some(key), mail);
        let entry = self.core.entry(EntryKind::RunStarted(Box::new(run)));
        self.stage([entry]);
        if self.write(When::Kept).await.is_some() {
            return false;
        }
        self.session.state = Arc::new(state);
        self.session.begin_turn(wiring);
        self.taken = Some(Vec::new());
        self.take_up();
        true
    }

    /// Inputs that came before this run are looked for once its turn has ended.
    pub(crate) fn look_back(&mut self) {
        if let Some(durable) = &mut self.durable {
            durable.resumed = true;
        }
    }

    fn stage(&mut self, entries: impl IntoIterator<Item = Entry>) {
        if let Some(durable) = &mut self.durable {
            durable.staged.extend(entries);
        }
    }

    /// A run that is dropped records that it was cancelled, once its effects are.
    pub(super) fn settle_behind(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        if durable.over {
            return;
        }
        durable.over = true;
        let core = Arc::clone(&self.core);
        let settled = How::Cancelled.to_settled(self.session.active, &self.session.cursor);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            core.effects_done().await;
            let Some(journal) = &core.journal else { return };
            // It may have settled already, unheard.
            let running = journal.saved(|saved| saved.settled.is_none()).await;
            if let Some(settled) = settled
                && running
                && !journal.is_lost()
            {
                let entry = core.entry(EntryKind::Settled(Box::new(settled)));
                // A store that fails here leaves a session that looks like a crashed one.
                let _ = journal.write(vec![entry], When::Now, Vec::new()).await;
            }
            journal.release().await;
        });
    }
}

/// What letters say became of questions: of several about one, the first.
pub(crate) fn resolutions(unread: Vec<Unread>) -> Vec<Resolved> {
    let mut resolved: Vec<Resolved> = Vec::new();
    for letter in unread {
        let (Some(id), Some(body)) = (letter.question, letter.body) else { continue };
        if let Some(resolution) = body.resolution()
            && !resolved.iter().any(|earlier| earlier.id == id)
        {
            resolved.push(Resolved { id, resolution, mail: letter.mail });
        }
    }
    resolved
}
