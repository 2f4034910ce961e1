//! Logs that any run could have written.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::clock::UtcMillis;
use crate::llm::{Spend, Usage};
use crate::session::{Entry, Recorded, Session};
use crate::store::Phase;

use super::snapshot;

/// The steps of all loops that write these logs. The first four begin turns and follow on each other.
pub(super) const STEPS: [&str; 6] = ["act", "ask", "mend", "日本", "renamed", "s"];

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
    let steps: Map<_, _> = STEPS.map(|step| (step.to_owned(), json!("run"))).into_iter().collect();
    let opened = json!({
        "v": 1, "agent": "a", "salt": "s", "graph": {"name": "l", "wiring": "w", "steps": steps},
        "schema": {"version": 1, "fields": []},
        "state": {"list": [], "map": {}, "rows": [], "any": null},
    });
    let mut entries = vec![entry(0, None, "open", opened)];
    let mut recorded = Recorded::begin(entries[0].clone()).unwrap();
    for (at, (kind, which, value, spent)) in choices.iter().enumerate() {
        let next = match next(&recorded, *kind, *which, value) {
            Some((kind, body)) => entry(at, *spent, kind, body),
            None => Entry {
                at: UtcMillis(at as u64),
                spent: spent.map(spend),
                change: snapshot(&recorded),
            },
        };
        recorded.apply(next.clone()).unwrap();
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
fn next(recorded: &Recorded, kind: u8, which: u8, value: &Value) -> Option<(&'static str, Value)> {
    let session = &recorded.session;
    let step = STEPS[usize::from(which % 4)];
    let key = ["a", "b", "ü"][usize::from(which % 3)];
    let position = session.cursor.position.0;
    // An item that can still be at work, if the step has any.
    let open_items: Vec<u32> = session.items.iter().flat_map(|items| items.open()).collect();
    let item = pick(&open_items, which);
    let failure = json!({
        "kind": "error", "step": &*session.cursor.step, "position": position,
        "attempts": session.cursor.attempt + 1, "retryable": which.is_multiple_of(2),
        "message": key, "causes": [], "at": which,
    });
    let begins = json!({
        "run": format!("r{which}"), "start": step, "ops": ops(which, value), "input": key,
        "inbox": session.inbox.0 + 1, "trace": {"traceparent": key},
    });
    if session.phase != Phase::Running || position == 0 {
        let over = session.phase == Phase::Ended || position == 0;
        return match kind % 4 {
            0 | 1 if over => Some(("run", begins)),
            0 | 1 => Some(("run", json!({"run": format!("r{which}")}))),
            2 => Some(("adopt", adopt(recorded, which, value))),
            _ => None,
        };
    }
    let open: Vec<_> = session.open_interrupts().map(|asked| asked.id.clone()).collect();
    let scope = if which.is_multiple_of(5) { json!({"s": "session"}) } else { json!({}) };
    let of_item = match item {
        Some(item) if which.is_multiple_of(2) => json!({"i": item}),
        _ => json!({}),
    };
    Some(match kind % 22 {
        0..4 => ("commit", json!({"n": step, "o": ops(which, value)})),
        4 => ("commit", json!({"o": ops(which, value)})),
        5 => {
            let attempt = json!({"n": which, "failure": failure, "retry_at": which});
            ("attempt", with(attempt, of_item))
        }
        6 if which.is_multiple_of(3) => ("not_done", with(with(json!({"k": key}), scope), of_item)),
        6 => ("intent", with(with(json!({"k": key}), scope), of_item)),
        7 => ("effect", with(with(json!({"k": key, "v": value}), scope), of_item)),
        8 => ("ask", json!({"interrupts": interrupts(session, item, which, value)})),
        9 if !open.is_empty() => {
            let id = &open[usize::from(which) % open.len()];
            let answer = json!({
                "as": "answered", "value": value, "digest": key, "at": which,
                "inbox": session.inbox.0 + 1,
            });
            let resolution = [answer, json!({"as": "expired"}), json!({"as": "withdrawn"})];
            let resolution = resolution[usize::from(which % 3)].clone();
            ("resolve", with(json!({"id": id}), resolution))
        }
        9 | 10 => ("divert", json!({"failure": failure, "n": step})),
        11 if session.cursor.finishing.is_none() => {
            let end = ends(which, &failure);
            ("finish", json!({"end": end, "n": step, "active_ms": which}))
        }
        11 | 12 => {
            let turn = ends(which, &failure);
            let pause = |how: &str| json!({"as": how});
            let waits = json!({"as": "waiting", "until": which});
            let ways = [turn, pause("interrupted"), pause("stopped"), pause("cancelled"), waits];
            let end = &ways[usize::from(which % 5)];
            let settled = json!({"end": end, "active_ms": which, "attempt": which % 5});
            let failed = which.is_multiple_of(7);
            let more = if failed { json!({"finally_failure": failure}) } else { json!({}) };
            ("settle", with(settled, more))
        }
        13 => ("recover", json!({"run": format!("r{which}")})),
        14 => ("run", begins),
        15 | 16 if session.items.is_none() => {
            let count = usize::from(which % 4);
            let items: Vec<Value> = (0..count).map(|at| json!([at, value])).collect();
            ("planned", json!({"items": items}))
        }
        15..18 if let Some(item) = item => {
            let result = match which.is_multiple_of(3) {
                true => json!({"failure": failure}),
                false => json!({"v": value}),
            };
            ("item", with(json!({"i": item}), result))
        }
        18 | 19 => {
            let timer = |key: Option<&str>| match key {
                Some(key) => json!({"k": key, "due": which}),
                None => json!({"due": which}),
            };
            let timers: Vec<Value> = [Some(key), None, Some("t")].map(timer).into();
            let wait = json!({"timers": &timers[..usize::from(which % 4)]});
            let tried = if which.is_multiple_of(2) { json!({"n": which}) } else { json!({}) };
            ("timer", with(with(wait, tried), of_item))
        }
        20 => ("run", json!({"run": format!("r{which}")})),
        _ => return None,
    })
}

fn pick(open: &[u32], which: u8) -> Option<u32> {
    let at = usize::from(which).checked_rem(open.len())?;
    open.get(at).copied()
}

fn with(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        base.extend(more);
    }
    base
}

fn ends(which: u8, failure: &Value) -> Value {
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

fn interrupts(session: &Session, item: Option<u32>, which: u8, value: &Value) -> Value {
    let position = session.cursor.position.0;
    let one = |key: Option<&str>| {
        let asked = json!({
            "id": format!("{position}-{key:?}-{which}-{}", session.interrupts.iter().count()), "name": "ok",
            "question": value, "answer_schema": {}, "step": &*session.cursor.step,
            "position": position, "key": key, "asked_at": which,
        });
        let expires = if which % 3 == 1 { json!({"expires_at": which}) } else { json!({}) };
        let of_item = item.filter(|_| key.is_some()).map_or(json!({}), |it| json!({"item": it}));
        with(with(asked, expires), of_item)
    };
    let keys = [None, Some("a"), Some("b")];
    keys.into_iter().take(usize::from(which % 3) + 1).map(one).collect()
}

fn adopt(recorded: &Recorded, which: u8, value: &Value) -> Value {
    let Recorded { session, state } = recorded;
    let mut state = state.clone();
    state["any"] = value.clone();
    let version = session.schema.version() + 1;
    let renamed = match session.cursor.is_entered() {
        false => json!({}),
        true => json!({&*session.cursor.step: "renamed"}),
    };
    match which % 3 {
        0 => json!({"schema": {"version": version, "fields": []}, "state": state}),
        1 => json!({
            "graph": {"name": "l", "wiring": version.to_string(), "steps": {"s": "gate", "act": "run"}},
        }),
        _ => json!({"renamed": renamed}),
    }
}
