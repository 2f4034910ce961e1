use super::*;
use crate::llm::user;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn turn(calls: &[&str]) -> Message {
    let calls = calls.iter().map(|id| ToolCall::new(*id, "t", "{}").into());
    Turn::new(calls).into()
}

fn outcome(call: &str, text: &str) -> Message {
    Message::Outcome { call: call.into(), outcome: ToolOutcome::ok(text) }
}

fn ids(talk: &Transcript) -> Vec<String> {
    talk.open_calls().iter().map(|c| c.id.to_string()).collect()
}

#[test]
fn an_outcome_fills_in_its_call_in_any_order() {
    let mut talk = Transcript::from_iter([user("hi"), turn(&["a", "b"])]);
    assert_eq!(ids(&talk), ["a", "b"]);
    assert_eq!(talk.push(outcome("b", "2")), Pushed::Outcome { entry: 1, block: 1 });
    assert_eq!(ids(&talk), ["a"]);
    assert_eq!(talk.push(outcome("a", "1")), Pushed::Outcome { entry: 1, block: 0 });
    assert!(!talk.has_open_calls());
    assert_eq!(talk.len(), 2);
}

#[test]
fn messages_append_entries() {
    let mut talk = Transcript::new();
    assert!(talk.is_empty());
    assert_eq!(talk.push(user("hi")), Pushed::Entry { index: 0 });
    assert_eq!(talk.push(Turn::from("hello").into()), Pushed::Entry { index: 1 });
    assert_eq!(talk.entries()[0], Entry::User("hi".into()));
}

#[test]
fn the_first_outcome_is_kept() {
    let mut talk = Transcript::from_iter([turn(&["a"]), outcome("a", "1")]);
    let before = talk.clone();
    assert_eq!(talk.push(outcome("a", "1")), Pushed::Nothing);
    assert_eq!(talk.push(outcome("a", "2")), Pushed::Nothing);
    assert_eq!(talk, before);
}

/// Counts warnings.
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() == tracing::Level::WARN {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn dropping_an_outcome_warns_and_repeating_one_does_not() {
    let count = Arc::new(AtomicUsize::new(0));
    let warned = || count.load(Ordering::SeqCst);
    tracing::subscriber::with_default(Warnings(count.clone()), || {
        let mut talk = Transcript::from_iter([turn(&["a"]), outcome("a", "1")]);
        talk.push(outcome("a", "1"));
        assert_eq!(warned(), 0);
        talk.push(outcome("a", "2"));
        assert_eq!(warned(), 1);
        talk.push(outcome("z", "1"));
        assert_eq!(warned(), 2);
    });
}

#[test]
fn an_invalid_record_is_a_typed_error() {
    let mut talk = Transcript::from_iter([turn(&["a"]), outcome("a", "1")]);
    let same = talk.record(&"a".into(), ToolOutcome::ok("1"));
    assert_eq!(same, Ok(Pushed::Nothing));
    insta::assert_snapshot!(
        talk.record(&"a".into(), ToolOutcome::Skipped).unwrap_err(),
        @"the tool call `a` already has another outcome (the first outcome is kept)"
    );
    insta::assert_snapshot!(
        talk.record(&"z".into(), ToolOutcome::Skipped).unwrap_err(),
        @"no turn contains the tool call `z` (push the turn that makes it first)"
    );
}

#[test]
fn open_calls_cannot_be_sealed_even_before_later_entries() {
    let mut talk = Transcript::from_iter([turn(&["a"]), user("and?"), turn(&["b"])]);
    assert_eq!(ids(&talk), ["a", "b"]);
    insta::assert_snapshot!(talk.sealed().unwrap_err(), @"2 tool calls have no outcome: `a` of `t`, `b` of `t` (record one for each, for example those of `ToolSet::call_all`)");
    talk.push(outcome("b", "2"));
    insta::assert_snapshot!(talk.sealed().unwrap_err(), @"a tool call has no outcome: `a` of `t` (record one for each, for example those of `ToolSet::call_all`)");
    talk.push(outcome("a", "1"));
    assert_eq!(talk.sealed().unwrap().len(), 3);

    talk.push(turn(&["c", "d", "e", "f", "g"]));
    let open = talk.sealed().unwrap_err();
    assert_eq!(open.calls().len(), 5);
    insta::assert_snapshot!(open, @"5 tool calls have no outcome: `c` of `t`, `d` of `t`, `e` of `t` and 2 more (record one for each, for example those of `ToolSet::call_all`)");
}

#[test]
fn calls_that_share_an_id_get_outcomes_oldest_first() {
    let mut talk = Transcript::from_iter([turn(&["a", "a"])]);
    assert_eq!(talk.push(outcome("a", "1")), Pushed::Outcome { entry: 0, block: 0 });
    assert_eq!(talk.push(outcome("a", "2")), Pushed::Outcome { entry: 0, block: 1 });
}

#[test]
fn a_call_that_arrives_with_its_outcome_is_not_open() {
    let done =
        Block::Call { call: ToolCall::new("a", "t", "{}"), outcome: Some(ToolOutcome::Skipped) };
    let talk = Transcript::from_iter([Turn::new([done]).into()]);
    assert!(talk.sealed().is_ok());
}

#[test]
fn last_text_is_that_of_the_newest_turn() {
    let mut talk = Transcript::from_iter([user("hi")]);
    assert_eq!(talk.last_text(), None);
    talk.extend([Turn::from("hello").into(), user("more")]);
    assert_eq!(talk.last_text().as_deref(), Some("hello"));
    talk.push(turn(&["a"]));
    assert_eq!(talk.last_text(), None);
}

#[test]
fn a_loaded_transcript_knows_its_open_calls() {
    let talk = Transcript::from_iter([user("hi"), turn(&["a", "b"]), outcome("a", "1")]);
    let stored = serde_json::to_string(&talk).unwrap();
    insta::assert_snapshot!(stored, @r#"[{"user":[{"text":"hi"}]},{"assistant":{"blocks":[{"call":{"call":{"id":"a","name":"t","arguments":"{}"},"outcome":{"ok":[{"text":"1"}]}}},{"call":{"call":{"id":"b","name":"t","arguments":"{}"}}}]}}]"#);
    let loaded: Transcript = serde_json::from_str(&stored).unwrap();
    assert_eq!(loaded, talk);
    assert_eq!(ids(&loaded), ["b"]);
}

/// Applies the change that `pushed` reports to the JSON form, as a replay of a log does.
fn replay(json: &mut Value, pushed: Pushed, after: &Transcript) {
    match pushed {
        Pushed::Entry { index } => {
            let entries = json.as_array_mut().unwrap();
            assert_eq!(entries.len(), index);
            entries.push(serde_json::to_value(&after.entries()[index]).unwrap());
        }
        Pushed::Outcome { entry, block } => {
            let Entry::Assistant(turn) = &after.entries()[entry] else {
                panic!("outcomes are in turns");
            };
            let Block::Call { outcome, .. } = &turn.blocks[block] else {
                panic!("outcomes are in calls");
            };
            let path = format!("/{entry}/assistant/blocks/{block}/call");
            let call = json.pointer_mut(&path).unwrap().as_object_mut().unwrap();
            let before = call.insert("outcome".into(), json!(outcome));
            assert_eq!(before, None);
        }
        Pushed::Nothing => {}
        Pushed::Edited => panic!("these messages edit nothing"),
    }
}

/// The open calls, found by scanning the whole transcript.
fn scan(talk: &Transcript) -> Vec<ToolCall> {
    let mut open = Vec::new();
    for entry in talk.entries() {
        if let Entry::Assistant(turn) = entry {
            for block in &turn.blocks {
                if let Block::Call { call, outcome: None } = block {
                    open.push(call.clone());
                }
            }
        }
    }
    open
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let id = || prop::sample::select(vec!["a", "b", "c", "d"]);
    let block = prop_oneof![
        Just(Block::from("text")),
        id().prop_map(|id| ToolCall::new(id, "t", "{").into()),
        id().prop_map(|id| Block::Call {
            call: ToolCall::new(id, "t", ""),
            outcome: Some(ToolOutcome::InDoubt),
        }),
    ];
    let message = prop_oneof![
        1 => Just(user("hi")),
        2 => prop::collection::vec(block, 0..4).prop_map(|blocks| Turn::new(blocks).into()),
        4 => (id(), 0..2u8).prop_map(|(id, text)| outcome(id, &text.to_string())),
    ];
    prop::collection::vec(message, 0..24)
}

proptest! {
    #[test]
    fn only_transcripts_without_open_calls_are_sealed(messages in messages()) {
        let mut talk = Transcript::new();
        let mut log = json!([]);
        for message in &messages {
            let pushed = talk.push(message.clone());
            let open = scan(&talk);
            prop_assert_eq!(talk.sealed().is_ok(), open.is_empty());
            prop_assert_eq!(talk.has_open_calls(), !open.is_empty());
            prop_assert_eq!(talk.open_calls(), open);
            replay(&mut log, pushed, &talk);
        }
        prop_assert_eq!(&log, &serde_json::to_value(&talk).unwrap());
        prop_assert_eq!(&serde_json::from_value::<Transcript>(log).unwrap(), &talk);
    }

    #[test]
    fn folding_is_deterministic_across_a_reload(messages in messages(), cut in 0..24usize) {
        let whole = Transcript::from_iter(messages.clone());
        let cut = cut.min(messages.len());
        let first = Transcript::from_iter(messages[..cut].to_vec());
        let mut loaded: Transcript =
            serde_json::from_value(serde_json::to_value(first).unwrap()).unwrap();
        loaded.extend(messages[cut..].to_vec());
        prop_assert_eq!(loaded, whole);
    }
}
