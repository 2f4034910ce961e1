//! These logs were written by the first version of the format. They are never written again: a
//! version that reads them otherwise, or not at all, has broken every session that is kept.

use std::collections::{BTreeMap, BTreeSet};

use harness::State;
use harness::llm::{Block, Edit, Entry as Said, Reply, ToolOutcome, Transcript};
use harness::session::{Entry, Replay};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Golden;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u8,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Note {
    deep: Deep,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Deep {
    text: String,
    list: Vec<Value>,
}

pub(crate) fn swapped<T>(_: &mut T, _: T) {
    panic!("a reducer ran");
}

/// The state of the first log. Every reducer is another one than that which wrote it.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notebook {
    #[state(reduce = swapped)]
    title: Option<String>,
    #[state(reduce = swapped)]
    talk: Vec<Option<String>>,
    #[state(reduce = swapped)]
    turns: u32,
    #[state(reduce = swapped)]
    cost: f64,
    #[state(reduce = swapped)]
    best: Option<i64>,
    #[state(reduce = swapped)]
    tags: BTreeSet<String>,
    #[state(reduce = swapped)]
    prices: BTreeMap<String, f64>,
    #[state(reduce = swapped)]
    rows: Vec<Row>,
    #[state(reduce = swapped)]
    note: Note,
}

#[test]
fn a_log_replays_to_what_it_did_when_it_was_written() {
    for golden in Golden::all() {
        let mut replay = Replay::default();
        for (at, (entry, state)) in golden.entries.iter().zip(&golden.states).enumerate() {
            let seq = golden.seq(at);
            replay.push(seq, entry.as_bytes()).unwrap_or_else(|error| {
                panic!("{}: {error}", golden.name);
            });
            assert_eq!(replay.head(), seq);
            let now = replay.state().unwrap().to_string();
            assert_eq!(now, *state, "{} at {seq}", golden.name);
        }
    }
}

#[test]
fn an_entry_is_written_today_as_it_was_then() {
    let mut kinds = BTreeSet::new();
    for golden in Golden::all() {
        for (at, line) in golden.entries.iter().enumerate() {
            let entry = Entry::decode(line.as_bytes()).unwrap();
            let mut again = Vec::new();
            entry.encode(&mut again).unwrap();
            let again = String::from_utf8(again).unwrap();
            assert_eq!(again, *line, "{} at {}", golden.name, golden.seq(at));
            kinds.insert(entry.change.name().to_owned());
        }
    }
    let known = [
        "adopt", "ask", "attempt", "commit", "divert", "edit", "effect", "finish", "intent",
        "item", "not_done", "open", "planned", "recover", "resolve", "run", "settle", "snapshot",
        "timer",
    ];
    assert_eq!(kinds, known.map(str::to_owned).into());
}

#[test]
fn every_snapshot_is_a_beginning() {
    for golden in Golden::all() {
        let snapshots = golden.entries.iter().enumerate().filter(|(_, line)| {
            Entry::decode(line.as_bytes()).unwrap().change.name() == "snapshot"
        });
        let mut found = 0;
        for (from, _) in snapshots {
            let mut replay = Replay::default();
            for at in from..golden.entries.len() {
                replay.push(golden.seq(at), golden.entries[at].as_bytes()).unwrap();
                assert_eq!(replay.state().unwrap().to_string(), golden.states[at]);
            }
            found += 1;
        }
        assert!(found > 1, "{}", golden.name);
    }
}

#[test]
fn no_reducer_runs_when_a_log_is_read() {
    let golden = Golden::read("turns");
    let mut replay = Replay::default();
    for (at, entry) in golden.entries.iter().enumerate() {
        replay.push(golden.seq(at), entry.as_bytes()).unwrap();
        let state: Notebook = serde_json::from_value(replay.state().unwrap().clone()).unwrap();
        // It is the state that was written, with every bit of its numbers.
        let schema = Notebook::schema();
        let mut again = serde_json::to_value(&state).unwrap();
        for row in again["rows"].as_array_mut().unwrap() {
            // The one thing that this type writes and the log's did not.
            if row["id"] == json!(2) && row["note"].is_null() {
                row.as_object_mut().unwrap().remove("note");
            }
        }
        assert_eq!(schema.difference(&again, replay.state().unwrap()), None, "at {at}");
    }
    let panicked = std::panic::catch_unwind(|| {
        Notebook::default().apply(Notebook::update().turns(1), &mut harness::state::Ops::off());
    });
    assert!(panicked.is_err(), "the reducers are not the ones that ran");
}

#[test]
fn the_past_keeps_what_is_easily_lost() {
    let golden = Golden::read("turns");
    let state = |seq: usize| -> Value { serde_json::from_str(&golden.states[seq - 1]).unwrap() };
    // A cleared field is null, not gone; a key that was deleted is gone, not null.
    assert_eq!(state(9)["title"], json!("Order 7"));
    assert_eq!(state(21).get("title"), Some(&Value::Null));
    assert_eq!(state(21)["prices"].get(""), None);
    assert_eq!(state(21)["talk"][1], Value::Null);
    // Floats keep their bits.
    let bits = |value: &Value| value.as_f64().unwrap().to_bits();
    assert_eq!(bits(&state(9)["cost"]), (0.1_f64 + 0.2).to_bits());
    assert_eq!(bits(&state(9)["prices"][""]), (-0.0_f64).to_bits());
    assert_eq!(bits(&state(9)["prices"]["ß"]), f64::MAX.to_bits());
    assert_eq!(state(9)["best"].as_i64(), Some(i64::MIN));
    assert_eq!(state(2)["talk"][0], json!("Grüß Gott, 世界 🦊\u{2028}\u{0}\"\\/"));
}

#[test]
fn the_past_keeps_conversations() {
    let golden = Golden::read("talk");
    let state = |seq: usize| -> Value { serde_json::from_str(&golden.states[seq - 1]).unwrap() };
    let talk = |seq: usize| -> Transcript {
        let talk = state(seq)["talk"].clone();
        let read: Transcript = serde_json::from_value(talk.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), talk, "at {seq}");
        read
    };
    // A reply that is recorded.
    let entry: Value = serde_json::from_str(&golden.entries[2]).unwrap();
    let reply: Reply = serde_json::from_value(entry["effect"]["v"].clone()).unwrap();
    assert_eq!((reply.text().as_deref(), reply.usage.total()), (Some("dear all"), Some(13)));
    // Calls without outcomes, and with one of each kind.
    assert_eq!(talk(11).open_calls().len(), 6);
    assert_eq!(talk(11).open_calls()[1].arguments.as_str(), "{not json");
    let talk_with_outcomes = talk(13);
    let Said::Assistant(turn) = &talk_with_outcomes.entries()[2] else { panic!("no turn") };
    let outcome = |block: &Block| match block {
        Block::Call { outcome, .. } => outcome.clone(),
        _ => None,
    };
    let outcomes: Vec<ToolOutcome> = turn.blocks.iter().filter_map(outcome).collect();
    assert!(matches!(
        &outcomes[..],
        [
            ToolOutcome::Ok(_),
            ToolOutcome::Failed { .. },
            ToolOutcome::Denied { .. },
            ToolOutcome::Steered { .. },
            ToolOutcome::InDoubt,
            ToolOutcome::Skipped,
        ]
    ));
    // Edits: the pinned turn is where it was.
    let mut last = talk(18);
    assert_eq!((talk_with_outcomes.len(), last.len()), (6, 5));
    assert!(last.edit(Edit::remove(1..3)).is_ok_and(|_| last.len() == 4));
    assert!(matches!(last.entries()[1], Said::Assistant(_)));
}
