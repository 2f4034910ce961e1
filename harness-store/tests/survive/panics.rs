//! Code of the program that panics where it turns states into JSON and back.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use harness::FailureKind;
use harness::prelude::*;
use harness::store::{InboxSeq, SessionStore as _};
use harness_store::FileStore;
use serde::{Deserializer, Serializer};
use serde_json::to_value;

use crate::rig::{agent, answer, ask, open, sessions, whole};

/// Panics when it is written or read, if it says so.
#[derive(Clone, Debug, Default, PartialEq)]
struct Mine(String);

impl Serialize for Mine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(self.0 != "write", "a mine");
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Mine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        assert!(text != "read", "a mine");
        Ok(Self(text))
    }
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Field {
    #[state(reduce = append)]
    lines: Vec<String>,
    mine: Mine,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Ask {
    mine: Mine,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Lay,
    Ask,
}

/// Lays a mine once, and then asks.
fn field(mine: &'static str, question: &'static str) -> Harness<(), Field> {
    Harness::<(), Field>::builder("field")
        .start(Step::Lay)
        .steps(move |define, step| match step {
            Step::Lay => define
                .run(move |_, _| async move {
                    let update = Field::update().lines(["laid".to_owned()]);
                    Ok(update.mine(Mine(mine.to_owned())))
                })
                .then(Step::Ask),
            Step::Ask => define
                .ask(move |_, _| async move { Ok(Ask { mine: Mine(question.to_owned()) }) })
                .answer(|_, _, _| async move { Ok(Field::update().lines(["done".to_owned()])) })
                .end(),
        })
        .build()
        .unwrap()
}

/// The lease was given back, and the store serves this session and others.
async fn is_well(store: &FileStore, session: &str) {
    let id = harness::SessionId::new(session).unwrap();
    let long = std::time::Duration::from_secs(600);
    let claimed = store.claim(&id, long).await.unwrap();
    store.release(&claimed.lease, InboxSeq(0)).await.unwrap();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let other = format!("another than {session}: {}", COUNT.fetch_add(1, Ordering::SeqCst));
    ask(store, &other, 1, 1).await;
    assert_eq!(answer(store, &other).await, whole(1, 1));
    assert_eq!(agent(store).id().as_str(), "writer");
}

/// Why a session does not fit.
fn chain(why: Option<&harness::compat::Incompatible>) -> String {
    let why = why.unwrap();
    format!(
        "{why}: {}",
        std::error::Error::source(why).map(ToString::to_string).unwrap_or_default()
    )
}

#[tokio::test]
async fn a_panic_while_a_value_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    // In a step's update.
    let outcome = field("write", "").agent("a", ()).store(store.clone());
    let outcome = outcome.run(Field::update(), ()).session("update").await.unwrap();
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    let kind = failed.failure.kind;
    assert!(matches!(kind, FailureKind::ReducerPanic | FailureKind::Encode), "{kind:?}");
    let state = to_value(&**failed.state.as_ref().unwrap()).unwrap();
    assert_eq!(state, sessions(&store).state("update").await.unwrap());
    is_well(&store, "update").await;
    let mended = field("", "").agent("a", ()).store(store.clone());
    let outcome = mended.resume("update", Answers::none(), ()).await.unwrap();
    assert_eq!(outcome.state().unwrap().lines, ["laid"]);
    // In a question.
    let agent = field("", "write").agent("a", ()).store(store.clone());
    let outcome = agent.run(Field::update(), ()).session("question").await.unwrap();
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.kind, FailureKind::Error);
    assert!(failed.failure.message.contains("a mine"), "{:#}", failed.failure);
    is_well(&store, "question").await;
    // In an input.
    let agent = field("", "").agent("a", ()).store(store.clone());
    let mine = || Field::update().mine(Mine("write".to_owned()));
    agent.run(mine(), ()).session("input").await.unwrap_err();
    is_well(&store, "input").await;
    agent.run(mine(), ()).session("named").input_id("i").await.unwrap_err();
    is_well(&store, "named").await;
    assert!(sessions(&store).status("named").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_panic_while_a_state_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let agent = field("read", "").agent("a", ()).store(store.clone());
    let outcome = agent.run(Field::update(), ()).session("s").await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted(_)), "{outcome:?}");
    drop(outcome);
    let head = sessions(&store).status("s").await.unwrap().head;
    for _ in 0..7 {
        let error = agent.resume("s", Answers::none(), ()).await.unwrap_err();
        assert!(chain(error.incompatible()).contains("a mine"), "{error}");
        is_well(&store, "s").await;
        let error = agent.state_at("s", head).await.unwrap_err();
        assert!(chain(error.incompatible()).contains("a mine"), "{error}");
    }
    // It was read off without the type all the while, and nothing was written.
    let status = sessions(&store).status("s").await.unwrap();
    assert_eq!((status.head, status.questions.len()), (head, 1));
}

static NO_DEFAULT: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Shy(u8);

impl Default for Shy {
    fn default() -> Self {
        assert!(!NO_DEFAULT.load(Ordering::SeqCst), "no default today");
        Self(0)
    }
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Shyly {
    shy: Shy,
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[state(version = 2, migrate = explode)]
struct Migrated {
    shy: u8,
}

fn explode(old: Shyly) -> Result<Migrated, String> {
    assert!(old.shy.0 != 7, "no way from {}", old.shy.0);
    Ok(Migrated { shy: old.shy.0 })
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Step,
}

fn only<S: State>() -> Harness<(), S> {
    Harness::<(), S>::builder("only")
        .start(Only::Step)
        .steps(|define, Only::Step| {
            define.run(|_, _| async move { Ok(S::Update::default()) }).end()
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_panic_in_a_default_or_in_a_migration() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let agent = only::<Shyly>().agent("a", ()).store(store.clone());
    NO_DEFAULT.store(true, Ordering::SeqCst);
    let error = agent.run(Shyly::update(), ()).session("s").await.unwrap_err();
    assert!(error.to_string().contains("no default today"), "{error}");
    is_well(&store, "s").await;
    NO_DEFAULT.store(false, Ordering::SeqCst);
    agent.run(Shyly::update().shy(Shy(7)), ()).session("s").await.unwrap().ended().unwrap();

    let agent = only::<Migrated>().agent("a", ()).store(store.clone());
    let before = sessions(&store).status("s").await.unwrap().head;
    for _ in 0..7 {
        let error = agent.run(Migrated::update(), ()).session("s").await.unwrap_err();
        assert!(chain(error.incompatible()).contains("no way from 7"), "{error}");
        is_well(&store, "s").await;
        let error = agent.state_at("s", before).await.unwrap_err();
        assert!(chain(error.incompatible()).contains("no way from 7"), "{error}");
    }
    assert_eq!(sessions(&store).status("s").await.unwrap().head, before);
}
