//! Logs that any run could have written.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::clock::UtcMillis;
use crate::llm::{Spend, Usage};
use crate::log::saved::Saved;
use crate::log::{Entry, EntryKind, Snapshot};
use crate::store::Phase;

/// A choice of what happens next, and what it is made of.
type Choice = (u8, u8, Value, Option<u64>);

pub(super) fn logs() -> impl Strategy<Value = Vec<Entry>> {
    vec((any::<u8>(), any::<u8>(), values(), option::weighted(0.3, any::<u64>())), 1..60)
        .prop_map(|choices| log(&choices))
}

/// JSON of all kinds, small.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((".{0,4}", inner), 0..4)
                .prop_map(|pairs| Value::from(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn log(choices: &[Choice]) -> Vec<Entry> {
    let opened = json!({
        "v": 1, "agent": "a", "salt": "s", "graph": {"name": "l", "wiring": "w", "steps": {}},
        "schema": {"version": 1, "fields": []},
        "state": {"list": [], "map": {}, "rows": [], "any": null},
    });
    let mut entries = vec![entry(0, None, "open", opened)];
    let mut saved = Saved::begin(entries[0].clone()).unwrap();
    for (at, (kind, which, value, spent)) in choices.iter().enumerate() {
        let next = match next(&saved, *kind, *which, value) {
            Some((kind, body)) => entry(at, *spent, kind, body),
            None => Entry {
                at: UtcMillis(at as u64),
                spent: spent.map(spend),
                kind: EntryKind::Snapshot(Snapshot(Box::new(saved.clone()))),
            },
        };
        saved.apply(next.clone()).unwrap();
        entries.push(next);
    }
    entries
}

fn entry(at: usize, spent: Option<u64>, kind: &str, body: Value) -> Entry {
    let text = json!({"t": at, kind: body}).to_string();
    Entry { spent: spent.map(spend), ..Entry::decode(text.as_bytes()).unwrap() }
}

fn spend(tokens: u64) -> Spend {
    Spend {
        cost_micros: (tokens.is_multiple_of(3)).then_some(tokens),
        ..Usage::tokens(tokens, 1).into()
    }
}

/// What may happen next, of what was chosen; `None` for a snapshot.
fn next(saved: &Saved, kind: u8, which: u8, value: &Value) -> Option<(&'static str, Value)> {
    let step = ["act", "ask", "mend", "日本"][usize::from(which % 4)];
    let key = ["a", "b", "ü"][usize::from(which % 3)];
    let position = saved.cursor.position.0;
    let failure = json!({
        "kind": "error", "step": &*saved.cursor.step, "position": position,
        "attempts": saved.cursor.attempt + 1, "retryable": which.is_multiple_of(2),
        "message": key, "causes": [], "at": which,
    });
    let begins = json!({
        "run": format!("r{which}"), "start": step, "ops": ops(which, value), "input": key,
        "mail": saved.mail.0 + 1, "trace": {"traceparent": key},
    });
    if saved.phase != Phase::Running || position == 0 {
        let over = saved.phase == Phase::Ended || position == 0;
        return match kind % 4 {
            0 | 1 if over => Some(("run", begins)),
            0 | 1 => Some(("run", json!({"run": format!("r{which}")}))),
            2 => Some(("adopt", adopt(saved, which, value))),
            _ => None,
        };
    }
    let open: Vec<_> = saved.open().map(|question| question.interrupt.id.clone()).collect();
    let scope = if which.is_multiple_of(5) { "session" } else { "position" };
    let scope = if scope == "position" { json!({}) } else { json!({"s": scope}) };
    let with = |mut base: Value, more: Value| {
        if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
            base.extend(more);
        }
        base
    };
    Some(match kind % 16 {
        0..4 => ("commit", json!({"n": step, "o": ops(which, value)})),
        4 => ("commit", json!({"o": ops(which, value)})),
        5 => ("attempt", json!({"n": which, "failure": failure, "retry_at": which})),
        6 => ("intent", with(json!({"k": key}), scope)),
        7 => ("effect", with(json!({"k": key, "v": value}), scope)),
        8 => ("ask", json!({"questions": questions(saved, which, value)})),
        9 if !open.is_empty() => {
            let id = &open[usize::from(which) % open.len()];
            let answer = json!({
                "as": "answered", "value": value, "digest": key, "at": which,
                "mail": saved.mail.0 + 1,
            });
            let resolution = [answer, json!({"as": "expired"}), json!({"as": "withdrawn"})];
            let resolution = resolution[usize::from(which % 3)].clone();
            ("resolve", with(json!({"id": id}), resolution))
        }
        9 | 10 => ("divert", json!({"failure": failure, "n": step})),
        11 if saved.cursor.finishing.is_none() => {
            let ending = endings(which, &failure);
            ("finish", json!({"ending": ending, "n": step, "active_ms": which}))
        }
        11 | 12 => {
            let turn = json!({"turn": endings(which, &failure)});
            let how = [turn, json!("interrupted"), json!("stopped"), json!("cancelled")];
            let how = &how[usize::from(which % 4)];
            ("settle", json!({"how": how, "active_ms": which}))
        }
        13 => ("recover", json!({"run": format!("r{which}")})),
        14 => ("run", begins),
        _ => return None,
    })
}

fn endings(which: u8, failure: &Value) -> Value {
    match which / 4 % 3 {
        0 => json!({"as": "ended", "by": ["Next", "Done"]}),
        1 => json!({"as": "failed", "failure": failure}),
        _ => json!({"as": "exhausted", "limit": "tokens"}),
    }
}

fn ops(which: u8, value: &Value) -> Value {
    let all = [
        json!({"push": {"p": ["list"], "v": value}}),
        json!({"put": {"p": ["map"], "k": format!("k{}", which % 5), "v": value}}),
        json!({"upsert": {"p": ["rows"], "k": "id", "v": {"id": which % 3, "v": value}}}),
        json!({"set": {"p": ["any"], "v": value}}),
        json!({"set": {"p": ["rows"], "v": []}}),
        json!({"del": {"p": ["map"], "k": format!("k{}", which % 5)}}),
        json!({"insert": {"p": ["list"], "v": value}}),
        json!({"set": {"p": [format!("new{}", which % 2)], "v": value}}),
    ];
    let chosen = all.into_iter().enumerate().filter(|(place, _)| which >> place & 1 == 1);
    chosen.map(|(_, op)| op).collect()
}

fn questions(saved: &Saved, which: u8, value: &Value) -> Value {
    let position = saved.cursor.position.0;
    let one = |key: Option<&str>| {
        json!({
            "id": format!("{position}-{key:?}-{which}-{}", saved.questions.len()), "name": "ok",
            "question": value, "answer_schema": {}, "step": &*saved.cursor.step,
            "position": position, "key": key, "asked_at": which,
        })
    };
    let keys = [None, Some("a"), Some("b")];
    keys.into_iter().take(usize::from(which % 3) + 1).map(one).collect()
}

fn adopt(saved: &Saved, which: u8, value: &Value) -> Value {
    let mut state = saved.state.clone();
    state["any"] = value.clone();
    let version = saved.schema.version() + 1;
    let step: Arc<str> = saved.cursor.step.clone();
    let renamed = match saved.cursor.position.0 {
        0 => json!({}),
        _ => json!({&*step: "renamed"}),
    };
    match which % 3 {
        0 => json!({"schema": {"version": version, "fields": []}, "state": state}),
        1 => json!({"graph": {"name": "l", "wiring": version.to_string(), "steps": {"s": "gate"}}}),
        _ => json!({"step": "renamed", "renamed": renamed}),
    }
}
