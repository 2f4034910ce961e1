//! Where a run comes from, as its session keeps it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::observe::{Event, EventKind, Recorder};
use harness::prelude::*;
use harness::session::Change;
use harness::store::{MemoryStore, ReadRequest, SessionStore};
use harness::{Seq, SessionId, Sessions};
use serde_json::{Value, json};
use tracing::span;

use super::rig::{Act, On, Rig, log, run_or_crash};
use crate::sessions::{self as doc, Doc};

/// The traces of a session's runs, as its history and as its stored log have them.
async fn traces(store: &MemoryStore) -> Vec<Value> {
    let page = Sessions::new(store.clone()).history("s", Seq(0), 1_000).await.unwrap();
    let typed = page.entries.into_iter().filter_map(|(_, entry)| match entry.change {
        Change::RunStarted(run) => Some(json!(run.trace)),
        _ => None,
    });
    let typed: Vec<Value> = typed.collect();
    let log = log(store, "s").await;
    let runs = log.iter().filter_map(|entry| entry.get("run"));
    assert_eq!(typed, runs.map(|run| run["trace"].clone()).collect::<Vec<_>>());
    typed
}

/// The trace that each snapshot of a session has.
async fn kept(store: &MemoryStore) -> Vec<Value> {
    let log = log(store, "s").await;
    log.iter()
        .filter_map(|entry| Some(entry.get("snapshot")?["session"]["trace"].clone()))
        .collect()
}

#[tokio::test]
async fn each_run_of_a_session_records_its_origin() {
    let store = MemoryStore::new();
    let agent = doc::agent("a", &store);
    let first = [("traceparent", "00-1-2-01"), ("tracestate", "a=b \"c\"")];
    let asks = agent.run(Doc::update().lines(["ask".into()]), ()).session("s").trace(first);
    let Outcome::Interrupted(waiting) = asks.await.unwrap() else { panic!("it asks") };
    let yes = Answers::json(waiting.questions[0].id.clone(), json!(true));
    let answered = agent.resume("s", yes, ()).trace([("traceparent", "00-3-4-01")]);
    answered.await.unwrap().ended().unwrap();
    agent.run(Doc::update(), ()).session("s").await.unwrap();
    assert_eq!(
        traces(&store).await,
        [
            json!({"traceparent": "00-1-2-01", "tracestate": "a=b \"c\""}),
            json!({"traceparent": "00-3-4-01"}),
            Value::Null,
        ]
    );
}

/// The events of a run's start and of its commits.
fn starts(seen: &Recorder) -> Vec<Value> {
    let events = seen.events();
    let starts = events.iter().filter(|it| matches!(it.kind, EventKind::RunStarted { .. }));
    let starts = starts.map(|event| json!(event));
    let starts = starts.map(|it| json!([it["resumed"], it["cause"], it["trace"]])).collect();
    seen.clear();
    starts
}

#[tokio::test]
async fn the_first_event_of_a_run_has_its_cause_and_its_trace() {
    let (store, seen) = (MemoryStore::new(), Recorder::default());
    let agent = doc::agent("a", &store).observe(seen.clone());
    let asks = agent.run(Doc::update().lines(["ask".into()]), ()).session("s");
    let Outcome::Interrupted(waiting) = asks.trace([("t", "1")]).await.unwrap() else { panic!() };
    assert_eq!(starts(&seen), [json!([false, "start", {"t": "1"}])]);
    let yes = Answers::json(waiting.questions[0].id.clone(), json!(true));
    agent.resume("s", yes, ()).await.unwrap().ended().unwrap();
    let answered = |it: &&Event| matches!(it.kind, EventKind::Answered { expired: false, .. });
    assert_eq!(seen.events().iter().filter(answered).count(), 1);
    // It has none of its own.
    assert_eq!(starts(&seen), [json!([true, "answer", {"t": "1"}])]);

    doc::run(&agent, "f", "fail").await;
    seen.clear();
    agent.resume("f", Answers::none(), ()).await.unwrap();
    assert_eq!(starts(&seen), [json!([true, "resume", null])]);
}

#[test]
fn a_run_that_recovers_its_session_says_so() {
    let memory = MemoryStore::new();
    let rig = Rig::nth(&memory, On::Append, 2, Act::HangBefore);
    let agent = |rig: &Rig| doc::harness().agent("a", ()).store(rig.clone());
    let crashed = run_or_crash(&rig, |rig| agent(rig).run(Doc::update(), ()).session("s"));
    assert!(crashed.is_none());
    let (rig, seen) = (Rig::new(memory), Recorder::default());
    let again =
        run_or_crash(&rig, |rig| agent(rig).resume("s", Answers::none(), ()).observe(seen.clone()));
    again.unwrap().ended().unwrap();
    assert_eq!(starts(&seen), [json!([true, "crash", null])]);
}

#[tokio::test]
async fn the_event_of_a_commit_has_the_seq_and_the_size_of_its_entry() {
    let (store, seen) = (MemoryStore::new(), Recorder::default());
    doc::run(&doc::agent("a", &store).observe(seen.clone()), "s", "long").await;
    let id = SessionId::new("s").unwrap();
    let page = store.read(&id, ReadRequest::from(Seq(1)).limit(u64::MAX)).await.unwrap().unwrap();
    let sizes: BTreeMap<_, _> =
        page.entries.iter().map(|entry| (entry.seq, entry.bytes.len() as u64)).collect();
    let events = seen.events();
    let commits: Vec<_> =
        events.iter().filter(|it| matches!(it.kind, EventKind::Committed { .. })).collect();
    assert!(commits.len() > 10);
    for event in commits {
        assert_eq!(event.bytes, Some(sizes[&event.seq.unwrap()]), "{event}");
    }
}

#[tokio::test]
async fn a_trace_is_in_the_snapshot_that_a_pruned_log_begins_with() {
    let store = MemoryStore::new();
    let (agent, sessions) = (doc::agent("a", &store), Sessions::new(store.clone()));
    let trace = json!({"traceparent": "00-1-2-01"});
    let long = Doc::update().lines(["long".into()]);
    agent.run(long, ()).session("s").trace([("traceparent", "00-1-2-01")]).await.unwrap();
    let snapshots = kept(&store).await;
    assert!(snapshots.len() > 1 && snapshots.iter().all(|kept| *kept == trace), "{snapshots:?}");

    let first = sessions.prune("s", Seq(u64::MAX)).await.unwrap();
    let id = SessionId::new("s").unwrap();
    let page = store.read(&id, ReadRequest::from(first).limit(u64::MAX)).await.unwrap().unwrap();
    let left = page.entries.iter().map(|entry| serde_json::from_slice(&entry.bytes).unwrap());
    let left: Vec<Value> = left.collect();
    assert!(left.iter().all(|entry| entry.get("run").is_none()), "the run was not pruned");
    assert_eq!(left[0]["snapshot"]["session"]["trace"], trace);
}

/// Counts warnings.
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() == tracing::Level::WARN {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_trace_that_is_too_long_is_omitted_with_a_warning() {
    // What is around the value in `{"t":"..."}`.
    let around = json!({"t": ""}).to_string().len();
    for (bytes, fits) in [(1024, true), (1025, false), (100_000, false)] {
        let store = MemoryStore::new();
        let agent = doc::agent("a", &store);
        let value = "x".repeat(bytes - around);
        let request = agent.run(Doc::update(), ()).session("s");
        let warned = Arc::new(AtomicUsize::new(0));
        let request = tracing::subscriber::with_default(Warnings(Arc::clone(&warned)), || {
            request.trace([("t", value.clone())])
        });
        assert_eq!(warned.load(Ordering::SeqCst), usize::from(!fits), "{bytes}");
        // The run itself is not affected.
        request.await.unwrap().ended().unwrap();
        let trace = if fits { json!({"t": value}) } else { Value::Null };
        assert_eq!(traces(&store).await, [trace], "{bytes}");
    }
}
