//! What must hold whatever was killed when.

use std::collections::{BTreeMap, BTreeSet};

use harness::session::{Change, Entry, Replay};
use harness::store::{MemoryStore, ReadRequest, SessionStore};
use harness::{Seq, SessionId, Sessions};
use serde_json::Value;

use crate::drive::{Driver, name};
use crate::loops::KINDS;
use crate::outside::{Outside, Trace};

/// A log as it stands.
pub struct Log {
    pub entries: Vec<(Seq, Entry)>,
    /// The state they replay to, after each.
    pub states: Vec<Value>,
    pub head: u64,
}

impl Log {
    /// Reads a log from its first entry on. `None` if there is none.
    pub async fn read(store: &impl SessionStore, session: &str) -> Option<Self> {
        let id = SessionId::new(session).unwrap();
        let page = store.read(&id, ReadRequest::from(Seq(1)).limit(u64::MAX)).await;
        let page = page.unwrap_or_else(|error| panic!("{session}: {error}"))?;
        let mut replay = Replay::default();
        let mut log = Self { entries: Vec::new(), states: Vec::new(), head: page.head.0 };
        for (at, stored) in page.entries.iter().enumerate() {
            assert_eq!(stored.seq.0, at as u64 + 1, "{session} has a gap");
            let taken = replay.push(stored.seq, &stored.bytes);
            taken.unwrap_or_else(|error| panic!("{session}: {error}"));
            log.entries.push((stored.seq, Entry::decode(&stored.bytes).unwrap()));
            log.states.push(replay.state().unwrap().clone());
        }
        assert_eq!(log.head, log.entries.len() as u64, "{session} ends elsewhere");
        Some(log)
    }

    /// The keys of the effects that are recorded.
    pub fn effects(&self) -> Vec<String> {
        let key = |(_, entry): &(Seq, Entry)| match &entry.change {
            Change::Effect(effect) => Some(effect.key.clone()),
            _ => None,
        };
        self.entries.iter().filter_map(key).collect()
    }

    /// The states the session went through, leaving out what cannot be known after a crash.
    pub fn steps(&self) -> Vec<Value> {
        let mut steps: Vec<Value> = Vec::new();
        for state in &self.states {
            let mut state = state.clone();
            state.as_object_mut().unwrap().remove("doubts");
            if steps.last() != Some(&state) {
                steps.push(state);
            }
        }
        steps
    }

    /// How many turns have come to their end.
    pub fn turns(&self) -> usize {
        self.count(|kind| matches!(kind, Change::Committed(done) if done.next.is_none()))
    }

    fn count(&self, what: impl Fn(&Change) -> bool) -> usize {
        self.entries.iter().filter(|(_, entry)| what(&entry.change)).count()
    }
}

/// The states of sessions of each kind that nothing disturbed.
pub async fn undisturbed(scratch: &Outside) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for number in 0..KINDS {
        let store = MemoryStore::new();
        let notify = |line: String| assert!(!line.starts_with('!'), "{line}");
        Driver::new(store.clone(), scratch.clone(), notify, None).drive(number, None).await;
        all.push(Log::read(&store, &name(number)).await.unwrap().steps());
    }
    all
}

/// What was found in sessions that are at their end.
#[derive(Debug, Default)]
pub struct Found {
    pub commits: usize,
    pub snapshots: usize,
    pub takeovers: usize,
    pub in_doubt: usize,
    pub twice: usize,
}

/// Looks through a session that has come to its end.
pub async fn ended(
    store: &impl SessionStore,
    sessions: &Sessions,
    number: u64,
    acknowledged: &BTreeSet<u64>,
    undisturbed: &[Vec<Value>],
    found: &mut Found,
) {
    let name = name(number);
    let log = Log::read(store, &name).await.unwrap_or_else(|| panic!("{name} is gone"));
    for seq in acknowledged {
        assert!(*seq <= log.head, "{name}: {seq} was acknowledged, and {} is the last", log.head);
    }
    // From the last snapshot on it replays to the same as from the beginning.
    for seq in acknowledged.iter().step_by(7).chain([&log.head]) {
        let state = sessions.state_at(&name, Seq(*seq)).await.unwrap();
        assert_eq!(state, log.states[*seq as usize - 1], "{name} at {seq}");
    }
    let expected = &undisturbed[(number % KINDS) as usize];
    let steps = log.steps();
    for (at, (found, expected)) in steps.iter().zip(expected).enumerate() {
        assert_eq!(found["lines"], expected["lines"], "{name} behind step {at}");
        assert_eq!(found, expected, "{name} behind step {at}");
    }
    assert_eq!(steps.len(), expected.len(), "{name} has taken other steps");
    let mut effects = log.effects();
    effects.retain(|key| !key.starts_with("in-doubt/"));
    let once: BTreeSet<_> = effects.iter().cloned().collect();
    assert_eq!(effects.len(), once.len(), "{name} has recorded an effect twice: {effects:?}");
    let doubts = log.count(|kind| matches!(kind, Change::Diverted(_)));
    let noted = log.states.last().unwrap()["doubts"].as_array().unwrap().len();
    assert_eq!(doubts, noted, "{name} has lost a doubt");
    assert!(doubts == 0 || number.is_multiple_of(KINDS), "{name} was not to fail in doubt");
    let asked = log.count(|kind| match kind {
        Change::Asked(asked) => asked.interrupts.iter().any(|it| it.name == "effect_in_doubt"),
        _ => false,
    });
    found.commits += log.count(|kind| matches!(kind, Change::Committed(_)));
    found.snapshots += log.count(|kind| matches!(kind, Change::Snapshot(_)));
    found.takeovers += log.count(|kind| matches!(kind, Change::Recovered(_)));
    found.in_doubt += doubts + asked;
}

/// Looks through what all effects have left outside.
pub fn traces(traces: &[Trace], found: &mut Found) {
    let mut all: BTreeMap<(&str, &str), Vec<&Trace>> = BTreeMap::new();
    for trace in traces {
        all.entry((&trace.session, &trace.key)).or_default().push(trace);
    }
    for ((session, key), traces) in all {
        let begun: Vec<u32> =
            traces.iter().filter(|trace| trace.begins).map(|trace| trace.process).collect();
        let ended = traces.iter().filter(|trace| !trace.begins).count();
        let processes: BTreeSet<_> = begun.iter().collect();
        assert_eq!(begun.len(), processes.len(), "{session} {key}: twice in one process");
        assert!(
            traces.iter().all(|trace| trace.op == traces[0].op),
            "{session} {key}: under two ids, {traces:?}"
        );
        match &*traces[0].kind {
            "fail" | "ask" => assert_eq!(begun.len(), 1, "{session} {key}: {traces:?}"),
            "probe" => assert_eq!(ended, 1, "{session} {key}: {traces:?}"),
            _ => assert!(ended >= 1, "{session} {key}: {traces:?}"),
        }
        found.twice += usize::from(begun.len() > 1);
    }
}
