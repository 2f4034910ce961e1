use super::*;
use crate::llm::{Message, ToolCall, ToolOutcome, user};
use proptest::prelude::*;
use serde_json::{Value, json};

fn called(id: &str) -> Message {
    Turn::new([ToolCall::new(id, "t", "{}").into()]).into()
}

fn outcome(id: &str) -> Message {
    Message::Outcome { call: id.into(), outcome: ToolOutcome::ok(id) }
}

fn users(talk: &Transcript) -> Vec<String> {
    let text = |entry: &Entry| match entry {
        Entry::User(content) => content.text().unwrap_or_default(),
        Entry::Assistant(turn) => format!("{} calls", turn.calls().count()),
    };
    talk.entries().iter().map(text).collect()
}

#[test]
fn a_range_is_removed_but_for_its_pinned_entries() {
    let mut talk = Transcript::from_iter(["a", "b", "c", "d", "e"].map(user));
    talk.edit(Edit::pin(2)).unwrap();
    talk.edit(Edit::pin(4)).unwrap();
    let changed = talk.edit(Edit::remove(1..4)).unwrap();
    assert_eq!(changed, [Changed::Removed { index: 3 }, Changed::Removed { index: 1 }]);
    assert_eq!(users(&talk), ["a", "c", "e"]);
    assert!(!talk.is_pinned(0) && talk.is_pinned(1) && talk.is_pinned(2));
    talk.edit(Edit::unpin(1)).unwrap();
    talk.edit(Edit::remove(0..2)).unwrap();
    assert_eq!(users(&talk), ["e"]);
}

#[test]
fn a_summary_takes_the_place_of_the_first_entry_it_replaces() {
    let mut talk =
        Transcript::from_iter([user("rules"), user("a"), called("c"), outcome("c"), user("z")]);
    talk.edit(Edit::pin(0)).unwrap();
    talk.edit(Edit::summarize(0..3, "short")).unwrap();
    assert_eq!(users(&talk), ["rules", "short", "z"]);
    assert_eq!(talk.edit(Edit::summarize(0..1, "all is pinned")), Ok(vec![]));
}

#[test]
fn a_call_without_outcome_keeps_its_entry() {
    let mut talk = Transcript::from_iter([user("a"), called("c"), user("b")]);
    let open = EditError::Open { at: 1, call: "c".into() };
    let edits =
        [Edit::remove(0..2), Edit::summarize(0..3, "s"), Edit::replace(1, Entry::User("x".into()))];
    for edit in edits {
        assert_eq!(talk.edit(edit), Err(open.clone()));
    }
    talk.edit(Edit::remove(0..1)).unwrap();
    talk.push(outcome("c"));
    assert!(!talk.has_open_calls(), "the outcome finds its call after the entries moved");
    talk.edit(Edit::remove(0..1)).unwrap();
    insta::assert_snapshot!(open, @"the tool call `c` of entry 1 has no outcome yet (record it first)");
}

#[test]
fn a_replacement_keeps_the_outcomes_of_the_calls_it_keeps() {
    let mut talk = Transcript::from_iter([called("c"), outcome("c")]);
    let turn = Turn::new(["shorter".into(), ToolCall::new("c", "t", "{}").into()]);
    talk.edit(Edit::replace(0, Entry::Assistant(turn))).unwrap();
    assert!(!talk.has_open_calls());
    let call = talk.last_turn().unwrap().blocks[1].clone();
    let kept = Some(ToolOutcome::ok("c"));
    assert_eq!(call, Block::Call { call: ToolCall::new("c", "t", "{}"), outcome: kept });
}

#[test]
fn an_edit_that_cannot_be_made_changes_nothing() {
    let mut talk = Transcript::from_iter([user("a"), user("b")]);
    talk.edit(Edit::pin(1)).unwrap();
    let before = talk.clone();
    let range = |from, to| Err(EditError::OutOfRange { from, to, entries: 2 });
    assert_eq!(talk.edit(Edit::remove(1..3)), range(1, 3));
    assert_eq!(talk.edit(Edit::remove(1..1)), range(1, 1));
    assert_eq!(talk.edit(Edit::pin(usize::MAX)), range(usize::MAX, usize::MAX));
    let pinned = talk.edit(Edit::replace(1, Entry::User("x".into())));
    assert_eq!(pinned, Err(EditError::Pinned { at: 1 }));
    talk.push(Edit::remove(5..6).into());
    assert_eq!(talk, before);
}

#[test]
fn pins_are_stored() {
    let mut talk = Transcript::from_iter([user("a"), called("c"), outcome("c")]);
    talk.edit(Edit::pin(0)).unwrap();
    let stored = serde_json::to_value(&talk).unwrap();
    assert_eq!(stored[0], json!({"pinned": {"user": [{"text": "a"}]}}));
    assert!(stored[1]["assistant"].is_object());
    assert_eq!(serde_json::from_value::<Transcript>(stored).unwrap(), talk);
}

#[test]
fn edits_are_stored_by_name() {
    let edits = [Edit::remove(0..2), Edit::summarize(1..3, "s"), Edit::pin(4)];
    let stored: Value = serde_json::to_value(edits.map(Message::from)).unwrap();
    assert_eq!(
        stored,
        json!([
            {"edit": {"remove": {"from": 0, "to": 2}}},
            {"edit": {"summarize": {"from": 1, "to": 3, "summary": [{"text": "s"}]}}},
            {"edit": {"pin": {"at": 4}}},
        ])
    );
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let index = 0_usize..6;
    let message = prop_oneof![
        3 => "[a-c]".prop_map(|text| user(text.as_str())),
        2 => "[a-c]".prop_map(|id| called(&id)),
        2 => "[a-c]".prop_map(|id| outcome(&id)),
        1 => index.clone().prop_map(|at| Edit::pin(at).into()),
        1 => index.clone().prop_map(|at| Edit::unpin(at).into()),
        1 => index.clone().prop_map(|at| Edit::replace(at, Entry::User("r".into())).into()),
        2 => (index.clone(), index.clone()).prop_map(|(a, b)| Edit::remove(a..b).into()),
        2 => (index.clone(), index).prop_map(|(a, b)| Edit::summarize(a..b, "s").into()),
    ];
    prop::collection::vec(message, 0..24)
}

proptest! {
    #[test]
    fn edits_keep_the_index_and_lose_no_open_call(messages in messages()) {
        let mut talk = Transcript::new();
        for message in messages {
            let open = talk.open_calls();
            let is_edit = matches!(message, Message::Edit(_));
            talk.push(message);
            if is_edit {
                prop_assert_eq!(&open, &talk.open_calls());
            }
            let stored = serde_json::to_value(&talk).unwrap();
            let again: Transcript = serde_json::from_value(stored).unwrap();
            prop_assert_eq!(&again, &talk);
        }
    }
}
