//! Sessions that a version of the program began whose states were others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::Seq;
use harness::inspect::SessionsError;
use harness::prelude::*;
use harness::session::Change;
use harness::store::Phase;
use serde_json::json;

use crate::rig::{copy_store, open, sessions};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct V1 {
    #[state(reduce = append)]
    talk: Vec<String>,
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[state(version = 2, migrate = v2_from_v1)]
struct V2 {
    #[state(reduce = append)]
    lines: Vec<String>,
    name: String,
}

fn v2_from_v1(old: V1) -> Result<V2, String> {
    Ok(V2 { lines: old.talk, name: "someone".to_owned() })
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[state(version = 3, migrate = from_v2, migrate = from_v1)]
struct V3 {
    #[state(reduce = append)]
    lines: Vec<Line>,
    count: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Line {
    by: String,
    text: String,
}

fn from_v2(old: V2) -> Result<V3, String> {
    let lines = old.lines.into_iter().map(|text| Line { by: old.name.clone(), text });
    let lines: Vec<Line> = lines.collect();
    if lines.len() > 5 {
        return Err("so much was never said".to_owned());
    }
    Ok(V3 { count: lines.len(), lines })
}

fn from_v1(old: V1) -> Result<V2, String> {
    v2_from_v1(old)
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    One,
    Two,
    Three,
}

/// The old program, which reports when its second step is at work.
fn old(at_work: impl Fn() + Clone + Send + Sync + 'static) -> Harness<(), V1> {
    let line = |text: &str| V1::update().talk([text.to_owned()]);
    Harness::<(), V1>::builder("talk")
        .start(Step::One)
        .steps(move |define, step| match step {
            Step::One => define.run(move |_, _| async move { Ok(line("one")) }).then(Step::Two),
            Step::Two => define.run(move |_, _| async move { Ok(line("two")) }).then(Step::Three),
            Step::Three => {
                let at_work = at_work.clone();
                let work = move |_, _| {
                    at_work();
                    async move { Ok(line("three")) }
                };
                define.run(work).end()
            }
        })
        .build()
        .unwrap()
}

fn new() -> Harness<(), V3> {
    let line = |text: &str| {
        let line = Line { by: "new".to_owned(), text: text.to_owned() };
        V3::update().lines([line])
    };
    Harness::<(), V3>::builder("talk")
        .start(Step::One)
        .steps(move |define, step| match step {
            Step::One => define.run(move |_, _| async move { Ok(line("one")) }).then(Step::Two),
            Step::Two => define.run(move |_, _| async move { Ok(line("two")) }).then(Step::Three),
            Step::Three => define
                .run(move |state: View<V3>, _| async move {
                    Ok(line("three").count(state.lines.len() + 1))
                })
                .end(),
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_session_of_the_first_version_continues_in_the_third() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (dir.path().to_owned(), copy.path().to_owned());
    let killed = move || copy_store(&from, &to);
    let agent = old(killed).agent("a", ()).store(open(dir.path()).await);
    agent.run(V1::update().talk(["hi".to_owned()]), ()).session("s").await.unwrap();

    // The process is gone, with a tail of the old version behind the beginning.
    let store = open(copy.path()).await;
    let look = sessions(&store);
    let status = look.status("s").await.unwrap();
    assert_eq!((status.phase, &*status.step, status.holder), (Phase::Running, "Three", None));
    let before = look.history("s", Seq(0), 100).await.unwrap().entries;
    let tail = status.head;
    let old_json = json!({"talk": ["hi", "one", "two"]});
    assert_eq!(look.state("s").await.unwrap(), old_json);

    // Looking with the new type writes nothing.
    let agent = new().agent("a", ()).store(store.clone());
    let migrated = agent.state_at("s", tail).await.unwrap();
    assert_eq!((migrated.count, &*migrated.lines[0].by), (3, "someone"));
    assert_eq!(look.status("s").await.unwrap().head, tail);

    let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    let said: Vec<_> = ended.state.lines.iter().map(|line| (&*line.by, &*line.text)).collect();
    let someone = ["hi", "one", "two"].map(|text| ("someone", text));
    assert_eq!((&said[..3], said[3], ended.state.count), (&someone[..], ("new", "three"), 4));

    drop(agent);
    let store = open(copy.path()).await;
    let look = sessions(&store);
    let after = look.history("s", Seq(0), 100).await.unwrap().entries;
    // The old entries are as they were, and the adoption stands before whatever runs.
    assert_eq!(after[..before.len()], before[..]);
    let Change::Adopted(_) = &after[before.len()].1.change else {
        // A run that takes over says so first.
        let Change::Adopted(_) = &after[before.len() + 1].1.change else { panic!("{after:?}") };
        assert!(matches!(after[before.len()].1.change, Change::Recovered(_)));
        return check(&look, &store, tail, old_json, &ended.state).await;
    };
    check(&look, &store, tail, old_json, &ended.state).await;
}

async fn check(
    look: &harness::Sessions,
    store: &harness_store::FileStore,
    tail: Seq,
    old_json: serde_json::Value,
    ended: &V3,
) {
    assert_eq!(look.state_at("s", tail).await.unwrap(), old_json);
    assert_eq!(look.state_at("s", Seq(1)).await.unwrap(), json!({"talk": []}));
    let agent = new().agent("a", ()).store(store.clone());
    let head = look.status("s").await.unwrap().head;
    assert_eq!(agent.state_at("s", head).await.unwrap(), *ended);
    assert_eq!(agent.state_at("s", tail).await.unwrap().count, 3);
    // The old program does not know what to do with it, and says so before it runs a step.
    let agent = old(|| panic!("it runs")).agent("a", ()).store(store.clone());
    let error = agent.run(V1::update(), ()).session("s").await.unwrap_err();
    assert!(error.incompatible().is_some(), "{error}");
    let error: SessionsError = agent.state_at("s", head).await.unwrap_err();
    assert!(error.incompatible().is_some(), "{error}");
    assert_eq!(look.status("s").await.unwrap().holder, None);
    // And the new one still continues.
    let agent = new().agent("a", ()).store(store.clone());
    let more = agent.run(V3::update(), ()).session("s").await.unwrap().ended().unwrap();
    assert_eq!(more.state.lines.len(), 7);
}

#[tokio::test]
async fn a_migration_that_refuses_leaves_the_session_as_it_was() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (dir.path().to_owned(), copy.path().to_owned());
    let once = Arc::new(AtomicBool::new(false));
    let killed = move || {
        if !once.swap(true, Ordering::SeqCst) {
            copy_store(&from, &to);
        }
    };
    let agent = old(killed).agent("a", ()).store(open(dir.path()).await);
    let much = ["1", "2", "3", "4"].map(str::to_owned);
    agent.run(V1::update().talk(much), ()).session("s").await.unwrap();
    let store = open(copy.path()).await;
    let look = sessions(&store);
    let before = look.history("s", Seq(0), 100).await.unwrap().entries;
    let agent = new().agent("a", ()).store(store.clone());
    for _ in 0..7 {
        let error = agent.resume("s", Answers::none(), ()).await.unwrap_err();
        let why = error.incompatible().unwrap();
        assert!(format!("{why:?} {why:#}").contains("never said") || !why.differences().is_empty());
    }
    assert_eq!(look.history("s", Seq(0), 100).await.unwrap().entries, before);
    // The old program continues.
    let agent = old(|| {}).agent("a", ()).store(store);
    let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.talk.len(), 7);
}
