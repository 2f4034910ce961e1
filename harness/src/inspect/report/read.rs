//! Reading a log into a report.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::id::Seq;
use crate::inspect::{Kind, Sessions, SessionsError, Status};
use crate::llm::Spend;
use crate::session::{Change, End, Entry, ItemResult, Replay, ReplayError, Resolution};
use crate::step::Failure;
use crate::store::{Phase, ReadFrom, ReadRequest};

use super::changes::Changes;
use super::entries::describe;
use super::items::items_of;
#[cfg(feature = "code")]
use super::program::Replays;
use super::{
    AfterFailure, FailureReport, MAX_TIMELINE, QuestionReport, Report, Spot, StepReport,
    TimelineEntry, Transition,
};

/// Reads the log of the session of `status`.
pub(super) async fn read(sessions: &Sessions, status: Status) -> Result<Report, SessionsError> {
    let session = status.session.clone();
    let broken = |cause| Kind::Replay { session: session.clone(), cause };
    let mut reader = Reader::default();
    // Entries from before the first snapshot that is kept replay to nothing.
    let mut orphans = (status.first > Seq(1)).then_some(0);
    let mut from = status.first;
    loop {
        let request = ReadRequest::entries(ReadFrom::Seq(from));
        let page = sessions.page(&session, request).await?;
        for stored in page.entries {
            let entry = Entry::decode(&stored.bytes)
                .map_err(|error| broken(ReplayError::from(error).at(stored.seq)))?;
            if let (Some(skipped), false) = (&mut orphans, begins(&entry.change)) {
                *skipped += 1;
                continue;
            }
            reader.omitted += orphans.take().unwrap_or(0);
            reader.push(stored.seq, entry, stored.bytes.len()).map_err(broken)?;
        }
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    reader.omitted += status.first.0.saturating_sub(1);
    reader.finish(status).map_err(|cause| broken(cause).into())
}

fn begins(change: &Change) -> bool {
    matches!(change, Change::Opened(_) | Change::Snapshot(_))
}

#[derive(Default)]
struct Reader {
    replay: Replay,
    last: Option<UtcMillis>,
    path: Vec<Arc<str>>,
    figures: HashMap<Arc<str>, Figures>,
    transitions: Vec<Transition>,
    /// The place of each of them.
    places: HashMap<(Spot, Spot), usize>,
    timeline: std::collections::VecDeque<TimelineEntry>,
    omitted: u64,
    questions: Vec<QuestionReport>,
    failures: Vec<FailureReport>,
    #[cfg(feature = "code")]
    replays: Replays,
}

#[derive(Clone, Copy, Default)]
struct Figures {
    visits: u64,
    retries: u64,
    active: Duration,
    spent: Spend,
}

impl Reader {
    fn push(&mut self, seq: Seq, entry: Entry, bytes: usize) -> Result<(), ReplayError> {
        let recorded = self.replay.recorded();
        let step: Arc<str> =
            recorded.map_or_else(|| "".into(), |it| Arc::clone(&it.session.cursor.step));
        let runs = recorded.is_some_and(|it| it.session.phase == Phase::Running);
        let changes =
            recorded.map_or_else(Changes::default, |it| Changes::of(&entry.change, &it.state));
        let since = |last: UtcMillis| Duration::from_millis(entry.at.0.saturating_sub(last.0));
        let active = self.last.filter(|_| runs).map(since);
        self.last = Some(entry.at);
        if !step.is_empty() {
            let figures = self.figures.entry(Arc::clone(&step)).or_default();
            figures.active += active.unwrap_or_default();
            figures.spent += entry.spent.unwrap_or_default();
        }
        let words = self.words(&entry);
        self.follow(seq, &step, &entry.change);
        let is_snapshot = matches!(entry.change, Change::Snapshot(_));
        let line = TimelineEntry {
            seq,
            at: entry.at,
            kind: entry.change.name().to_owned(),
            step,
            words,
            active,
            spent: entry.spent.filter(|spent| *spent != Spend::default()),
            changes: changes.kept,
            more_changes: changes.more,
        };
        self.replay.push_entry(seq, entry, bytes)?;
        // A snapshot repeats what the entries before it say.
        if !is_snapshot || self.timeline.is_empty() {
            self.timeline.push_back(line);
        }
        if self.timeline.len() > MAX_TIMELINE {
            self.timeline.pop_front();
            self.omitted += 1;
        }
        Ok(())
    }

    fn words(&mut self, entry: &Entry) -> String {
        #[cfg(feature = "code")]
        if let Some(recorded) = self.replay.recorded()
            && let Some(words) = self.replays.describe(&entry.change, &recorded.state)
        {
            return words;
        }
        describe(entry)
    }

    fn follow(&mut self, seq: Seq, step: &Arc<str>, change: &Change) {
        let here = || Spot::Step(Arc::clone(step));
        match change {
            Change::RunStarted(run) => {
                if let Some(start) = &run.start {
                    self.enter(Spot::Start, start, false);
                }
            }
            Change::Committed(commit) => match &commit.next {
                Some(next) => self.enter(here(), next, false),
                None => self.pass(here(), Spot::End, false),
            },
            Change::Diverted(it) => {
                self.enter(here(), &it.next, true);
                self.failed(seq, &it.failure, AfterFailure::Diverted(Arc::clone(&it.next)));
            }
            Change::Finishing(it) => {
                self.enter(Spot::End, &it.next, false);
                if let End::Failed { failure } = &it.end {
                    self.failed(seq, failure, AfterFailure::TurnFailed);
                }
            }
            Change::Attempt(it) => {
                self.figures.entry(Arc::clone(step)).or_default().retries += 1;
                self.failed(seq, &it.failure, AfterFailure::Retried);
            }
            Change::Item(it) => {
                if let ItemResult::Failed(failure) = &it.result {
                    self.failed(seq, failure, AfterFailure::ItemFailed);
                }
            }
            Change::Settled(it) => {
                let known =
                    |failure: &Arc<Failure>| self.failures.iter().any(|it| it.failure == *failure);
                if let End::Failed { failure } = &it.end
                    && !known(failure)
                {
                    self.failed(seq, failure, AfterFailure::TurnFailed);
                }
                if let Some(failure) = &it.finally_failure {
                    self.failed(seq, failure, AfterFailure::LastStepsFailed);
                }
            }
            Change::Asked(asked) => {
                for interrupt in &asked.interrupts {
                    let (interrupt, resolved) = (interrupt.clone(), None);
                    self.questions.push(QuestionReport { seq, interrupt, resolved, open: false });
                }
            }
            Change::Resolved(it) => {
                let mut asked = self.questions.iter_mut().rev();
                if let Some(asked) = asked.find(|asked| asked.interrupt.id == it.id) {
                    let resolution: &Resolution = &it.resolution;
                    asked.resolved = Some((seq, resolution.clone()));
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, from: Spot, next: &Arc<str>, on_error: bool) {
        self.pass(from, Spot::Step(Arc::clone(next)), on_error);
        self.figures.entry(Arc::clone(next)).or_default().visits += 1;
        self.path.push(Arc::clone(next));
    }

    fn pass(&mut self, from: Spot, to: Spot, on_error: bool) {
        let place = *self.places.entry((from.clone(), to.clone())).or_insert_with(|| {
            self.transitions.push(Transition { from, to, times: 0, on_error });
            self.transitions.len() - 1
        });
        self.transitions[place].times += 1;
    }

    fn failed(&mut self, seq: Seq, failure: &Arc<Failure>, then: AfterFailure) {
        self.failures.push(FailureReport { seq, failure: Arc::clone(failure), then });
    }

    fn finish(self, status: Status) -> Result<Report, ReplayError> {
        let recorded = self.replay.finish()?;
        let graph = &recorded.session.graph;
        let mut steps: Vec<StepReport> = Vec::new();
        let mut known = std::collections::HashSet::new();
        let declared = graph.steps.keys().map(|name| Arc::<str>::from(&**name));
        let current = Arc::clone(&recorded.session.cursor.step);
        let visited = self.path.iter().cloned().chain([current]).filter(|name| !name.is_empty());
        for name in visited.chain(declared) {
            if !known.insert(Arc::clone(&name)) {
                continue;
            }
            let Figures { visits, retries, active, spent } =
                self.figures.get(&name).copied().unwrap_or_default();
            let kind = graph.steps.get(&*name).copied();
            steps.push(StepReport { name, kind, visits, retries, active, spent });
        }
        let mut questions = self.questions;
        for asked in &mut questions {
            asked.open = status.questions.iter().any(|open| open.id == asked.interrupt.id);
        }
        let (items, more_items) = items_of(&recorded.session);
        Ok(Report {
            items,
            more_items,
            harness: graph.name.clone(),
            steps,
            transitions: self.transitions,
            path: self.path,
            timeline: self.timeline.into(),
            omitted: self.omitted,
            questions,
            failures: self.failures,
            state: recorded.state,
            status,
        })
    }
}
