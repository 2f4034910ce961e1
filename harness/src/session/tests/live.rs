//! A log of what reducers did replays to what they made.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proptest::collection::{btree_map, btree_set, hash_map, hash_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{bytes, snapshot};
use crate::clock::UtcMillis;
use crate::compat::decode_state;
use crate::id::Seq;
use crate::session::{Change, Committed, Entry, Recorded, Replay};
use crate::state::{Edits, Ops, State, encode};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u8,
    text: Option<String>,
}

fn drop_front(field: &mut Vec<u8>, count: usize) -> Edits {
    let count = count.min(field.len());
    field.drain(..count);
    Edits::record(|log| (0..count).for_each(|_| log.del_at(0)))
}

fn turn(field: &mut String, word: String) {
    *field = word.chars().rev().collect();
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Notebook {
    plain: Option<String>,
    two_words: f64,
    #[state(reduce = append)]
    list: Vec<Option<i64>>,
    #[state(reduce = add)]
    sum: i16,
    #[state(reduce = add)]
    float: f32,
    #[state(reduce = max)]
    max: Option<i8>,
    #[state(reduce = first)]
    first: Option<Row>,
    #[state(reduce = union)]
    tree_set: BTreeSet<String>,
    #[state(reduce = union)]
    hash_set: HashSet<(u8, bool)>,
    #[state(reduce = merge)]
    tree_map: BTreeMap<i32, Option<u8>>,
    #[state(reduce = merge)]
    hash_map: HashMap<String, Vec<u8>>,
    #[state(reduce = upsert(id))]
    rows: Vec<Row>,
    #[state(reduce = drop_front, update = usize)]
    queue: Vec<u8>,
    #[state(reduce = turn)]
    word: String,
}

prop_compose! {
    fn updates()(
        mask in any::<u32>(), plain in option::of(".{0,3}"), float in -1e9..1e9_f64,
        list in vec(any::<Option<i64>>(), 0..4), numbers in any::<(i16, i8, u8)>(),
        texts in btree_set(".{0,2}", 0..4), pairs in hash_set(any::<(u8, bool)>(), 0..4),
        tree in btree_map(0..9, any::<Option<u8>>(), 0..4),
        hash in hash_map("[a-d]", vec(any::<u8>(), 0..3), 0..4),
        rows in vec((0..6_u8, option::of(".{0,2}")), 0..6),
    ) -> NotebookUpdate {
        let rows: Vec<Row> = rows.into_iter().map(|(id, text)| Row { id, text }).collect();
        let (sum, max, count) = numbers;
        let mut update = Notebook::update();
        let mut bits = (0..12).map(|bit| mask >> bit & 1 == 1);
        let mut on = || bits.next().unwrap_or_default();
        if on() { update = update.plain(plain.clone()); }
        if on() { update = update.two_words(float).float(float as f32 / 1e9); }
        if on() { update = update.list(list); }
        if on() { update = update.sum(sum); }
        if on() { update = update.max(max); }
        if on() && let Some(row) = rows.first() { update = update.first(row.clone()); }
        if on() { update = update.tree_set(texts); }
        if on() { update = update.hash_set(pairs); }
        if on() { update = update.tree_map(tree).hash_map(hash); }
        if on() { update = update.rows(rows); }
        if on() { update = update.queue(usize::from(count % 3)); }
        if on() { update = update.word(plain.unwrap_or_default()); }
        update
    }
}

fn line(value: Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

proptest! {
    #[test]
    fn a_replayed_state_is_the_live_one(
        updates in vec((updates(), any::<bool>()), 1..12),
        queue in vec(any::<u8>(), 0..6),
    ) {
        let mut live = Notebook { queue, ..Notebook::default() };
        let schema = Notebook::schema();
        let opened = json!({"t": 1, "open": {
            "v": 1, "agent": "a", "salt": "s", "graph": {"name": "", "wiring": "", "steps": {}},
            "schema": schema, "state": encode(&live).unwrap(),
        }});
        let mut lines = vec![line(opened), line(json!({"t": 1, "run": {"run": "r", "start": "s"}}))];
        let mut states = vec![encode(&live).unwrap(); 2];
        let mut recorded = Recorded::begin(Entry::decode(&lines[0]).unwrap()).unwrap();
        recorded.apply(Entry::decode(&lines[1]).unwrap()).unwrap();
        for (update, is_snapshot) in updates {
            let mut ops = Ops::on();
            live.apply(update, &mut ops);
            let committed = Committed { next: Some("s".into()), ops: ops.finish().unwrap() };
            let change = Change::Committed(committed);
            let commit = Entry { at: UtcMillis(2), spent: None, change };
            lines.push(bytes(&commit));
            states.push(encode(&live).unwrap());
            recorded.apply(commit).unwrap();
            if is_snapshot {
                // As a run takes one: of the state that lives, not of the one that was followed.
                let whole = Recorded { state: encode(&live).unwrap(), ..recorded.clone() };
                let change = snapshot(&whole);
                let entry = Entry { at: UtcMillis(3), spent: None, change };
                lines.push(bytes(&entry));
                states.push(encode(&live).unwrap());
                recorded.apply(entry).unwrap();
            }
        }
        let mut replay = Replay::default();
        for ((at, line), state) in (1..).zip(&lines).zip(&states) {
            replay.push(Seq(at), line).unwrap();
            let folded = replay.state().unwrap();
            prop_assert_eq!(schema.difference(folded, state), None, "seq {}", at);
        }
        let again: Notebook = decode_state(replay.state().unwrap()).unwrap();
        prop_assert_eq!(again, live);
    }
}

#[test]
fn a_state_that_a_reducer_changed_behind_its_operations_is_found() {
    let opened = json!({"t": 1, "open": {
        "v": 1, "agent": "a", "salt": "s", "graph": {"name": "", "wiring": "", "steps": {}},
        "schema": Notebook::schema(), "state": encode(&Notebook::default()).unwrap(),
    }});
    let mut recorded = Recorded::begin(Entry::decode(&line(opened)).unwrap()).unwrap();
    let live = Notebook { sum: 1, ..Notebook::default() };
    let whole = Recorded { state: encode(&live).unwrap(), ..recorded.clone() };
    let change = snapshot(&whole);
    let error = recorded.apply(Entry { at: UtcMillis(3), spent: None, change }).unwrap_err();
    assert_eq!(error.not_replayable(), Some("sum"));
}
