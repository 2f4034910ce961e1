//! One harness with one script, on each store and on the engine: the same states, events and effects.

use harness::inspect::Phase;
use harness::observe::Recorder;
use harness::prelude::*;
use harness::store::SessionStore;
use harness::{Seq, Sessions};
use harness_store::MemoryStore;
use harness_store::restate::RestateService;

use crate::orders::{Order, Send, World, agent, effects, expected, slots};
use crate::place::{Addresses, name, run};

/// What came of the script.
#[derive(Debug, PartialEq)]
struct Came {
    /// The states, as JSON: where it asks, and at the end.
    states: Vec<serde_json::Value>,
    /// The kinds of the entries of the log.
    entries: Vec<String>,
    /// The phases that the session rests in.
    phases: Vec<Phase>,
    /// What an observer sees.
    events: Vec<String>,
    effects: Vec<String>,
}

/// The kinds of what happened, in order.
async fn entries(sessions: &Sessions, session: &str) -> Vec<String> {
    let page = sessions.history(session, Seq(0), 1000).await.unwrap();
    assert_eq!(page.first, Seq(1));
    let kind = |entry: &harness::session::Entry| {
        let json = serde_json::to_value(entry).unwrap();
        let of = json.as_object().unwrap().keys().find(|key| !["t", "u"].contains(&key.as_str()));
        of.unwrap().clone()
    };
    page.entries.iter().map(|(_, entry)| kind(entry)).collect()
}

fn world(dir: &tempfile::TempDir) -> World {
    World::new(dir.path().join("effects"))
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

async fn on_a_store(store: impl SessionStore + Clone) -> Came {
    let dir = tempfile::tempdir().unwrap();
    let (world, session) = (world(&dir), name("order"));
    let (seen, sessions) = (Recorder::default(), Sessions::new(store.clone()));
    let agent = agent("shop").store(store).observe(seen.clone());
    let run = agent.run(Order::update(), slots(&world)).session(&session).input_id("in-1");
    let Outcome::Interrupted(waiting) = run.await.unwrap() else { panic!() };
    let mut phases = vec![sessions.status(&session).await.unwrap().phase];
    let mut states = vec![sessions.state(&session).await.unwrap()];
    let yes = waiting.pending::<Send>().unwrap().answer(true).by("sam");
    let ended = agent.resume(&*session, yes, slots(&world)).await.unwrap().ended().unwrap();
    assert_eq!(ended.state, expected());
    phases.push(sessions.status(&session).await.unwrap().phase);
    states.push(sessions.state(&session).await.unwrap());
    let entries = entries(&sessions, &session).await;
    let events = seen.lines();
    Came { states, entries, phases, events, effects: sorted(world.lines()) }
}

async fn on_the_engine() -> Came {
    let dir = tempfile::tempdir().unwrap();
    let (world, session) = (world(&dir), name("order"));
    let seen = Recorder::default();
    let agent = agent(&name("shop")).observe(seen.clone());
    let server = Addresses::shared();
    let store = server.sessions(&agent);
    let sessions = Sessions::new(store.clone());
    let its = world.clone();
    let service = RestateService::new().serve(&agent, move |_| {
        let slots = slots(&its);
        async move { Ok(slots) }
    });
    let _running = run(service, &store).await;
    let asked = store.run(&session, "in-1", &Order::update()).await.unwrap();
    let mut phases = vec![asked.phase];
    let mut states = vec![sessions.state(&session).await.unwrap()];
    let interrupt = asked.interrupts[0].clone();
    let ended = store.answer(&session, interrupt, true.into(), Some("sam")).await.unwrap();
    phases.push(ended.phase);
    states.push(sessions.state(&session).await.unwrap());
    let entries = entries(&sessions, &session).await;
    let events = seen.lines();
    Came { states, entries, phases, events, effects: sorted(world.lines()) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_harness_does_the_same_on_every_store_and_on_the_engine() {
    let expected_here = on_a_store(MemoryStore::new()).await;
    assert_eq!(expected_here.effects, effects());
    assert_eq!(expected_here.phases, [Phase::Interrupted, Phase::Ended]);
    let dir = tempfile::tempdir().unwrap();
    let files = harness_store::FileStore::open(dir.path().join("files")).await.unwrap();
    assert_eq!(on_a_store(files).await, expected_here);
    #[cfg(feature = "sqlite")]
    {
        let sqlite = harness_store::SqliteStore::open(dir.path().join("s.db")).await.unwrap();
        assert_eq!(on_a_store(sqlite).await, expected_here);
    }
    #[cfg(feature = "postgres")]
    {
        let url = std::env::var("HARNESS_POSTGRES_URL").expect("`HARNESS_POSTGRES_URL` is not set");
        let schema = name("restate").replace('-', "_");
        let options = harness_store::PostgresStoreOptions::new().schema(schema);
        let postgres = options.connect(&url).await.unwrap();
        assert_eq!(on_a_store(postgres).await, expected_here);
    }
    assert_eq!(on_the_engine().await, expected_here);
}
