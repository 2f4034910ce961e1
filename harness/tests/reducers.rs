//! The law of every reducer: folding the recorded operations into the old JSON gives the new JSON.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use harness::State;
use harness::state::{Edits, FieldOps, Fold, Op, Ops, encode, fold};
use proptest::collection::{btree_map, btree_set, hash_map, hash_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u8,
    text: String,
}

/// Entries whose outcomes arrive later, as in a transcript.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Calls {
    entries: Vec<Call>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Call {
    id: u8,
    outcome: Option<String>,
}

impl Fold for Calls {
    type Item = Call;

    fn fold(&mut self, call: Call, ops: &mut FieldOps<'_>) {
        let known = self.entries.iter().position(|known| known.id == call.id);
        match known {
            Some(index) => {
                ops.key("entries").index(index).key("outcome").set(&call.outcome);
                self.entries[index].outcome = call.outcome;
            }
            None => {
                ops.key("entries").push(&call);
                self.entries.push(call);
            }
        }
    }
}

fn xor(field: &mut u32, change: u32) {
    *field ^= change;
}

fn drop_front(field: &mut Vec<u8>, count: usize) -> Edits {
    let count = count.min(field.len());
    field.drain(..count);
    Edits::record(|log| (0..count).for_each(|_| log.del_at(0)))
}

fn forget(field: &mut BTreeMap<String, u8>, key: String) -> Edits {
    field.remove(&key);
    Edits::record(|log| log.del(&key))
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct All {
    plain: Option<String>,
    two_words: f64,
    #[serde(rename = "type")]
    kind: String,
    #[state(reduce = append)]
    list: Vec<Option<i64>>,
    #[state(reduce = append)]
    deque: VecDeque<String>,
    #[state(reduce = add)]
    sum: i16,
    #[state(reduce = add)]
    float: f32,
    #[state(reduce = add)]
    time: Duration,
    #[state(reduce = max)]
    max: Option<i8>,
    #[state(reduce = min)]
    min: Option<String>,
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
    #[state(reduce = transcript)]
    calls: Calls,
    #[state(reduce = xor)]
    bits: u32,
    #[state(reduce = drop_front, update = usize)]
    queue: Vec<u8>,
    #[state(reduce = self::forget, update = String)]
    names: BTreeMap<String, u8>,
}

fn row() -> impl Strategy<Value = Row> + Clone {
    (0..6_u8, "[a-c]{0,2}").prop_map(|(id, text)| Row { id, text })
}

fn call() -> impl Strategy<Value = Call> + Clone {
    (0..6_u8, option::of("[a-c]{0,2}")).prop_map(|(id, outcome)| Call { id, outcome })
}

prop_compose! {
    fn scalars()(
        plain in option::of(".{0,3}"), two_words in -1e9..1e9_f64, kind in ".{0,3}",
        sum in any::<i16>(), float in -1e3..1e3_f32, time in any::<u64>(),
        max in option::of(any::<i8>()), min in option::of(".{0,3}"), first in option::of(row()),
        bits in any::<u32>(),
    ) -> All {
        let time = Duration::from_millis(time);
        All { plain, two_words, kind, sum, float, time, max, min, first, bits, ..All::default() }
    }
}

prop_compose! {
    fn states()(
        scalars in scalars(),
        list in vec(any::<Option<i64>>(), 0..4), deque in vec(".{0,3}", 0..4),
        tree_set in btree_set("[a-d]", 0..4), hash_set in hash_set(any::<(u8, bool)>(), 0..4),
        tree_map in btree_map(0..9, any::<Option<u8>>(), 0..4),
        hash_map in hash_map("[a-d]", vec(any::<u8>(), 0..3), 0..4),
        rows in vec(row(), 0..6), entries in vec(call(), 0..6),
        queue in vec(any::<u8>(), 0..6), names in btree_map("[a-d]", any::<u8>(), 0..4),
    ) -> All {
        let (deque, calls) = (deque.into(), Calls { entries });
        All {
            list, deque, tree_set, hash_set, tree_map, hash_map, rows, calls, queue, names,
            ..scalars
        }
    }
}

/// Sets the fields of a random state that the mask selects.
fn updates() -> impl Strategy<Value = AllUpdate> {
    (states(), any::<u32>(), any::<usize>()).prop_map(|(all, mask, count)| {
        let mut bit = 0;
        let mut update = All::update();
        let mut set = |step: &mut dyn FnMut(AllUpdate) -> AllUpdate| {
            if mask >> bit & 1 == 1 {
                update = step(std::mem::take(&mut update));
            }
            bit += 1;
        };
        set(&mut |update| update.plain(all.plain.clone()));
        set(&mut |update| update.two_words(all.two_words).kind(all.kind.clone()));
        set(&mut |update| update.list(all.list.clone()).list([None]));
        set(&mut |update| update.deque(all.deque.clone()));
        set(&mut |update| update.sum(all.sum).sum(1));
        set(&mut |update| update.float(all.float).time(all.time));
        set(&mut |update| all.max.map_or_else(Default::default, |max| update.max(max)));
        set(&mut |update| update.min(all.kind.clone()).min("b"));
        set(&mut |update| {
            all.rows.first().cloned().map_or_else(Default::default, |row| update.first(row))
        });
        set(&mut |update| update.tree_set(all.tree_set.clone()));
        set(&mut |update| update.hash_set(all.hash_set.clone()));
        set(&mut |update| update.tree_map(all.tree_map.clone()).tree_map([(1, None)]));
        set(&mut |update| update.hash_map(all.hash_map.clone()));
        set(&mut |update| update.rows(all.rows.clone()));
        set(&mut |update| update.calls(all.calls.entries.clone()));
        set(&mut |update| update.bits(all.bits).bits(7));
        set(&mut |update| update.queue(count % 3));
        set(&mut |update| update.names("a").names("b"));
        update
    })
}

fn apply(state: &All, update: AllUpdate) -> (All, Vec<Op>) {
    let mut new = state.clone();
    let mut ops = Ops::on();
    new.apply(update, &mut ops);
    (new, ops.finish().unwrap())
}

proptest! {
    #[test]
    fn folding_recorded_operations_gives_the_new_state(old in states(), update in updates()) {
        let mut folded = encode(&old).unwrap();
        let (new, ops) = apply(&old, update);
        // Encoded as text, as in the log.
        let ops: Vec<Op> = serde_json::from_str(&serde_json::to_string(&ops).unwrap()).unwrap();
        fold(&mut folded, &ops).unwrap();
        let live = encode(&new).unwrap();
        let schema = All::schema();
        prop_assert_eq!(schema.difference(&folded, &live), None, "{} {}", folded, live);
        prop_assert_eq!(serde_json::from_value::<All>(folded).unwrap(), new);
    }

    #[test]
    fn recording_does_not_change_the_state(old in states(), update in updates()) {
        let stored = serde_json::to_string(&update).unwrap();
        let (recorded, _) = apply(&old, update);
        let mut plain = old;
        plain.apply(serde_json::from_str(&stored).unwrap(), &mut Ops::off());
        prop_assert_eq!(plain, recorded);
    }

    #[test]
    fn an_update_round_trips_through_json(update in updates()) {
        let stored = encode(&update).unwrap();
        let text = stored.to_string();
        let again: AllUpdate = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(format!("{update:?}"), format!("{again:?}"));
        prop_assert_eq!(encode(&again).unwrap(), stored);
    }
}

fn recorded(old: &All, update: AllUpdate) -> serde_json::Value {
    serde_json::to_value(apply(old, update).1).unwrap()
}

#[test]
fn a_commit_is_as_large_as_the_update() {
    let old = All {
        list: vec![Some(1); 1000],
        tree_set: BTreeSet::from(["a".to_owned()]),
        rows: vec![Row { id: 1, text: String::new() }; 1000],
        ..All::default()
    };
    let row = Row { id: 1, text: "new".to_owned() };
    let update = All::update()
        .list([None])
        .tree_set(["a".to_owned(), "b".to_owned()])
        .tree_map([(7, None)])
        .rows([row])
        .calls([Call { id: 1, outcome: None }, Call { id: 1, outcome: Some("ok".to_owned()) }])
        .names("gone");
    assert_eq!(
        recorded(&old, update),
        json!([
            {"push": {"p": ["list"], "v": null}},
            {"insert": {"p": ["treeSet"], "v": "b"}},
            {"put": {"p": ["treeMap"], "k": "7", "v": null}},
            {"upsert": {"p": ["rows"], "k": "id", "v": {"id": 1, "text": "new"}}},
            {"push": {"p": ["calls", "entries"], "v": {"id": 1, "outcome": null}}},
            {"set": {"p": ["calls", "entries", 0, "outcome"], "v": "ok"}},
            {"del": {"p": ["names"], "k": "gone"}},
        ])
    );
}

#[test]
fn absent_differs_from_null() {
    let old = All { plain: Some("x".to_owned()), ..All::default() };
    assert_eq!(recorded(&old, All::update()), json!([]));
    let cleared = All::update().plain(None);
    assert_eq!(encode(&cleared).unwrap(), json!({"plain": null}));
    assert_eq!(recorded(&old, cleared), json!([{"set": {"p": ["plain"], "v": null}}]));
    let update: AllUpdate = serde_json::from_value(json!({"plain": null})).unwrap();
    assert_eq!(format!("{update:?}"), "AllUpdate { plain }");
    assert_eq!(apply(&old, update).0.plain, None);
    assert_eq!(format!("{:?}", All::update()), "AllUpdate {}");
}

#[test]
fn an_update_rejects_unknown_fields() {
    let error = serde_json::from_value::<AllUpdate>(json!({"plan": 1})).unwrap_err();
    assert!(error.to_string().contains("unknown field `plan`"), "{error}");
}

#[test]
fn setters_compose_or_overwrite() {
    let old = All::default();
    let update = All::update()
        .plain(Some("one".to_owned()))
        .plain(Some("two".to_owned()))
        .sum(1)
        .sum(2)
        .max(1)
        .max(5)
        .max(3)
        .min("b")
        .min("a")
        .first(Row { id: 1, text: String::new() })
        .first(Row { id: 2, text: String::new() })
        .bits(0b11)
        .bits(0b01);
    let (new, _) = apply(&old, update);
    assert_eq!(new.plain.as_deref(), Some("two"));
    assert_eq!((new.sum, new.max, new.bits), (3, Some(5), 0b10));
    assert_eq!(new.min.as_deref(), Some("a"));
    assert_eq!(new.first.map(|row| row.id), Some(1));
}

#[test]
fn numbers_saturate() {
    let old = All { sum: i16::MAX - 1, time: Duration::MAX, ..All::default() };
    let (new, _) = apply(&old, All::update().sum(i16::MAX).time(Duration::from_secs(1)));
    assert_eq!((new.sum, new.time), (i16::MAX, Duration::MAX));
}

#[test]
fn reports_the_field_that_fails_to_encode() {
    let mut state = All::default();
    let mut ops = Ops::on();
    state.apply(All::update().two_words(f64::NAN), &mut ops);
    let error = ops.finish().unwrap_err();
    assert_eq!(error.to_string(), "failed to encode field `twoWords`");
    assert!(error.is_not_finite());

    let mut ops = Ops::on();
    state.apply(All::update().float(f32::MAX).float(f32::MAX), &mut ops);
    assert_eq!(ops.finish().unwrap_err().field(), "float");
}

#[test]
fn an_option_takes_a_value_with_and_without_some() {
    #[derive(
        harness::State, Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize,
    )]
    struct Order {
        receipt: Option<String>,
        paid: Option<u32>,
    }
    let applied = |update| {
        let mut order = Order { paid: Some(1), ..Order::default() };
        harness::State::apply(&mut order, update, &mut harness::state::Ops::off());
        order
    };
    let order = applied(Order::update().receipt("r".to_owned()).paid(2));
    assert_eq!((order.receipt.as_deref(), order.paid), (Some("r"), Some(2)));
    assert_eq!(applied(Order::update().receipt("r")).receipt.as_deref(), Some("r"));
    let order = applied(Order::update().receipt(Some("r".to_owned())).paid(None));
    assert_eq!((order.receipt.as_deref(), order.paid), (Some("r"), None));
}

#[test]
fn a_some_of_none_is_refused_and_an_update_to_none_is_not() {
    type Hidden = Option<Option<u32>>;

    #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
    struct Inner {
        seen: Vec<Hidden>,
    }

    #[derive(harness::State, Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
    struct Order {
        note: Option<String>,
        unit: (),
        #[state(reduce = append)]
        rows: Vec<Inner>,
        alias: Hidden,
    }
    let applied = |update| {
        let mut ops = harness::state::Ops::on();
        harness::State::apply(&mut Order::default(), update, &mut ops);
        ops.finish()
    };
    let row = |seen| Order::update().rows([Inner { seen: vec![None, Some(Some(1)), seen] }]);
    assert_eq!(applied(row(None)).unwrap().len(), 1);
    let refused = applied(row(Some(None))).unwrap_err();
    assert_eq!(refused.to_string(), "failed to encode field `rows`");
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(cause.contains("`Some(None)`, reads back as `None`"), "{cause}");
    assert_eq!(applied(Order::update().alias(Some(None))).unwrap_err().field(), "alias");

    // `null` in an update is a value of its own.
    let update = Order::update().note(None).unit(());
    assert_eq!(
        harness::state::encode(&update).unwrap(),
        serde_json::json!({"note": null, "unit": null})
    );
    assert_eq!(applied(update).unwrap().len(), 2);
}
