//! A loop whose every payload is a canary: none of them, and no hash of one, is in what is stored.

use std::path::Path;

use harness::Sessions;
use harness::prelude::*;
use harness::session::Digest;
use harness::store::{Filter, InboxSeq, MemoryStore, ReadRequest, SessionStore};
use harness::testing::{Call, Faulty};
use harness_store::Encrypted;

use super::{file, keys, memory};

const CANARIES: [&str; 6] =
    ["CANARYinput", "CANARYresult", "CANARYeffect", "CANARYreason", "CANARYnote", "CANARYsender"];

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    text: String,
    #[state(reduce = append)]
    lines: Vec<String>,
    sure: Option<bool>,
}

/// So short that its hash would show it.
#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sure {
    ok: bool,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct Note {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
    Ask,
    Fail,
}

fn agent(store: impl SessionStore) -> Agent<(), Doc> {
    let work = |_: View<Doc>, cx: Cx<()>| async move {
        let effect = cx.once("effect", || async { Ok("CANARYeffect".to_owned()) }).await?;
        let note = cx.ask("note", Note { text: "CANARYreason".into() }).await?;
        Ok(Doc::update().lines([effect, note, "CANARYresult".to_owned()]))
    };
    let harness = Harness::<(), Doc>::builder("doc")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define.run(work).then(Step::Ask),
            Step::Ask => define
                .ask(|_, _| async move { Ok(Sure { ok: true }) })
                .answer(|_, _, said| async move { Ok(Doc::update().sure(Some(said.answer))) })
                .then(Step::Fail),
            Step::Fail => {
                define.run(|_, _| async move { Err(StepError::fatal("CANARYreason")) }).end()
            }
        })
        .build()
        .unwrap();
    harness.agent("agent", ()).store(store)
}

/// A run through every kind of payload, and a second handle that reads it back.
pub(super) async fn live(store: impl SessionStore + Clone) {
    let agent = agent(store.clone());
    let input = Doc::update().text("CANARYinput".to_owned());
    let outcome = agent.run(input, ()).session("s").input_id("i-1").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let note = waiting.questions[0].as_question::<Note>().unwrap();
    let answer = note.answer("CANARYnote".to_owned()).by("CANARYsender");
    let Outcome::Interrupted(waiting) = agent.resume("s", answer, ()).await.unwrap() else {
        panic!("it asks again")
    };
    let sure = waiting.questions[0].as_question::<Sure>().unwrap();
    let sessions = Sessions::new(store);
    for value in [true, true] {
        sessions.answer_json("s", sure.answer(value)).await.unwrap();
    }
    let other = sessions.answer_json("s", sure.answer(false)).await.unwrap_err();
    assert!(other.answer_error().is_some_and(|error| error.is_conflict()), "{other}");
    let outcome = agent.resume("s", Answers::none(), ()).await.unwrap();
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let read = agent.state_at("s", sessions.status("s").await.unwrap().head).await.unwrap();
    assert_eq!(read.lines, ["CANARYeffect", "CANARYnote", "CANARYresult"]);
    assert_eq!((read.text.as_str(), read.sure), ("CANARYinput", Some(true)));
}

/// Forms in which a canary, or what identifies a short value, could be stored.
fn traces() -> Vec<Vec<u8>> {
    let mut traces: Vec<Vec<u8>> =
        CANARIES.iter().map(|canary| canary.as_bytes().to_vec()).collect();
    for value in [
        serde_json::json!(true),
        serde_json::json!({"ok": true}),
        serde_json::json!({"text": "CANARYreason"}),
        serde_json::json!("CANARYnote"),
        serde_json::json!({"text": "CANARYinput"}),
    ] {
        let hex = Digest::of(&value).as_str().to_owned();
        let raw: Vec<u8> = (0..64)
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        traces.extend([hex.into_bytes(), raw]);
    }
    // At each of the three offsets in base64, without the digits that neighbours share.
    traces.extend(["Q0FOQVJZ", "NBTkFSWV", "DQU5BUl"].map(|digits| digits.as_bytes().to_vec()));
    traces
}

#[track_caller]
pub(super) fn no_trace(what: &str, bytes: &[u8]) {
    for trace in traces() {
        let found = bytes.windows(trace.len()).any(|window| window == trace);
        assert!(!found, "{what} shows {}", String::from_utf8_lossy(&trace));
    }
}

pub(super) fn all_bytes(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(all_bytes(&path));
        } else {
            // A database that is being closed removes its log.
            bytes.extend(std::fs::read(&path).unwrap_or_default());
        }
    }
    bytes
}

#[tokio::test]
async fn memory_shows_nothing() {
    let inner = MemoryStore::new();
    live(memory(&inner)).await;
    let id = harness::SessionId::new("s").unwrap();
    let all = ReadRequest::from(harness::Seq(1)).with_messages_after(InboxSeq(0));
    let page = inner.read(&id, all).await.unwrap().unwrap();
    let mut bytes = format!("{:?}{:?}", page.summary, page.interrupts).into_bytes();
    page.entries.iter().for_each(|entry| bytes.extend(&entry.bytes));
    for stored in &page.messages {
        bytes.extend(format!("{:?}", stored.message).bytes());
        bytes.extend(&stored.message.body);
    }
    for filter in [Filter::sessions(), Filter::interrupts()] {
        bytes.extend(format!("{:?}", inner.list(&filter, None, 9).await.unwrap()).bytes());
    }
    assert!(page.entries.len() > 5 && page.messages.len() > 2);
    no_trace("memory", &bytes);
}

#[tokio::test]
async fn files_show_nothing() {
    let dir = tempfile::tempdir().unwrap();
    live(file(dir.path()).await).await;
    no_trace("the directory", &all_bytes(dir.path()));
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_database_shows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = super::sqlite(dir.path()).await;
    live(store.clone()).await;
    no_trace("the database in use", &all_bytes(dir.path()));
    drop(store);
    no_trace("the database", &all_bytes(dir.path()));
}

/// The test would find them.
#[tokio::test]
async fn what_is_not_encrypted_shows_every_canary() {
    let dir = tempfile::tempdir().unwrap();
    live(crate::support::open(dir.path()).await).await;
    let bytes = all_bytes(dir.path());
    let shown = |trace: &[u8]| bytes.windows(trace.len()).any(|window| window == trace);
    assert!(CANARIES.iter().all(|canary| shown(canary.as_bytes())));
    assert!(shown(Digest::of(&serde_json::json!(true)).as_str().as_bytes()));
}

/// Each batch is sent twice, since the answer to the first was lost; the store finds the same bytes.
#[tokio::test(start_paused = true)]
async fn what_is_sent_again_is_recognized_in_mid_run() {
    let store = Faulty::new(MemoryStore::new());
    store.faults().after(Call::Append, |call| call % 2 == 1);
    let (inner, faults) = (store.inner().clone(), store.faults());
    live(Encrypted::new(store, keys())).await;
    let id = harness::SessionId::new("s").unwrap();
    let page = inner.read(&id, ReadRequest::from(harness::Seq(1))).await.unwrap().unwrap();
    let expected = MemoryStore::new();
    live(memory(&expected)).await;
    let same = expected.read(&id, ReadRequest::from(harness::Seq(1))).await.unwrap().unwrap();
    assert_eq!(page.head, same.head, "nothing was appended twice");
    assert!(faults.calls(Call::Append) > 10);
}
