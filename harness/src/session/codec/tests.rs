use serde_json::{Value, json};

use super::*;
use crate::session::EntryError;
use crate::state::Ops;

/// One line for each kind, and what may be left out in it.
pub(crate) const LINES: &[&str] = &[
    r#"{"t":1,"open":{"v":1,"agent":"a","salt":"5a17","graph":{"name":"loop","wiring":"w","steps":{"act":"run","ask":"gate","no":"off","pick":"decide"}},"schema":{"version":2,"fields":[{"name":"talk","type":"Vec<String>","reducer":"append"}]},"state":{"talk":[]}}}"#,
    r#"{"t":1,"open":{"v":1,"agent":"a","salt":"","graph":{"name":"","wiring":"","steps":{}},"schema":{"version":1,"fields":[]},"state":null,"from":{"session":"s/1","seq":7}}}"#,
    r#"{"t":2,"adopt":{}}"#,
    r#"{"t":2,"adopt":{"graph":{"name":"l","wiring":"v","steps":{}},"schema":{"version":3,"fields":[]},"state":null,"renamed":{"act":"do"}}}"#,
    r#"{"t":3,"run":{"run":"r1"}}"#,
    r#"{"t":3,"u":{"i":1,"o":0,"cr":2,"cw":3,"r":4,"c":5},"run":{"run":"r1","start":"act","ops":[{"set":{"p":["talk"],"v":null}}],"input":"k","inbox":4,"trace":{"traceparent":"00-1-2-3"}}}"#,
    r#"{"t":4,"recover":{"run":"r2"}}"#,
    r#"{"t":5,"attempt":{"n":2,"failure":{"kind":"timeout","step":"act","position":3,"attempts":2,"retryable":true,"message":"late","causes":[],"at":5},"retry_at":9}}"#,
    r#"{"t":5,"attempt":{"n":1,"i":0,"failure":{"kind":"error","step":"fan","position":3,"attempts":1,"retryable":true,"message":"","causes":[],"at":5},"retry_at":6}}"#,
    r#"{"t":6,"intent":{"k":"pay"}}"#,
    r#"{"t":6,"intent":{"k":"pay","i":4294967295}}"#,
    r#"{"t":6,"intent":{"k":"pay","s":"session"}}"#,
    r#"{"t":6,"not_done":{"k":"pay","i":0,"s":"session"}}"#,
    r#"{"t":7,"effect":{"k":"pay","v":null}}"#,
    r#"{"t":7,"effect":{"k":"pay","s":"session","v":{"paid":1.5e-300}}}"#,
    r#"{"t":7,"effect":{"k":"pay","i":1,"v":[]}}"#,
    r#"{"t":8,"ask":{"interrupts":[{"id":"3-ab","name":"ok","question":{"tool":"rm"},"answer_schema":true,"step":"ask","position":3,"key":null,"asked_at":8},{"id":"3-cd","name":"ok","question":null,"answer_schema":{},"step":"ask","position":3,"key":"","asked_at":8,"expires_at":9}]}}"#,
    r#"{"t":8,"ask":{"interrupts":[{"id":"3-ef","name":"ok","question":1,"answer_schema":{},"step":"fan","position":3,"item":2,"key":"k","asked_at":8}]}}"#,
    r#"{"t":8,"planned":{"items":[]}}"#,
    r#"{"t":8,"planned":{"items":[null,{"a":-0.0},"x"]}}"#,
    r#"{"t":8,"item":{"i":0,"v":null}}"#,
    r#"{"t":8,"item":{"i":1,"v":{"n":[18446744073709551615,-1,5e-324]}}}"#,
    r#"{"t":8,"item":{"i":2,"failure":{"kind":"timeout","step":"fan","position":3,"attempts":2,"retryable":true,"message":"late","causes":["slow"],"at":5}}}"#,
    r#"{"t":9,"resolve":{"id":"3-ab","as":"answered","value":null,"digest":"d","at":9}}"#,
    r#"{"t":9,"resolve":{"id":"3-ab","as":"answered","value":[0.1,-0.0,5e-324],"digest":"d","by":"Zoë 🦊","at":9,"inbox":2}}"#,
    r#"{"t":9,"resolve":{"id":"3-ab","as":"expired"}}"#,
    r#"{"t":9,"resolve":{"id":"3-ab","as":"withdrawn","inbox":1}}"#,
    r#"{"t":10,"commit":{}}"#,
    r#"{"t":10,"u":{"i":18446744073709551615},"commit":{"n":"act","o":[{"set":{"p":["a"],"v":1}},{"push":{"p":["b","c"],"v":null}},{"put":{"p":["d",3],"k":"","v":{}}},{"insert":{"p":["e"],"v":"x"}},{"upsert":{"p":["f"],"k":"id","v":{"id":1}}},{"del":{"p":["d"],"k":"x"}},{"del":{"p":["f"],"k":0}}]}}"#,
    r#"{"t":11,"divert":{"failure":{"kind":"error","step":"act","position":1,"attempts":1,"retryable":false,"message":"no","causes":["why"],"at":1},"n":"mend"}}"#,
    r#"{"t":12,"finish":{"end":{"as":"ended"},"n":"last"}}"#,
    r#"{"t":12,"finish":{"end":{"as":"ended","by":["Next","Done"]},"n":"last","active_ms":7}}"#,
    r#"{"t":12,"finish":{"end":{"as":"exhausted","limit":"at_most"},"n":"last"}}"#,
    r#"{"t":13,"settle":{"end":{"as":"interrupted"}}}"#,
    r#"{"t":13,"settle":{"end":{"as":"stopped"}}}"#,
    r#"{"t":13,"settle":{"end":{"as":"cancelled"},"active_ms":3,"attempt":2}}"#,
    r#"{"t":13,"settle":{"end":{"as":"failed","failure":{"kind":"panic","step":"a","position":1,"attempts":1,"retryable":false,"message":"","causes":[],"at":0}},"finally_failure":{"kind":"ask_in_finally","step":"b","position":2,"attempts":1,"retryable":false,"message":"","causes":[],"at":0}}}"#,
    r#"{"t":13,"edit":{"by":"sam","why":""}}"#,
    r#"{"t":13,"edit":{"by":"sam","why":"a slip","o":[{"set":{"p":["a"],"v":1}}]}}"#,
    r#"{"t":14,"snapshot":{"session":{"v":1,"agent":"a","salt":"5a17","graph":{"name":"l","wiring":"w","steps":{}},"schema":{"version":1,"fields":[]},"phase":"waiting","cursor":{"step":"act","position":3,"last":4,"attempt":0,"retries":0,"steps":2,"visits":{"act":1}},"effects":{"k":"intent","l":{"done":null}},"timers":[{"due":3},{"k":"t","due":4,"waits":true}],"turn":1,"spent":{"usage":{"input":null,"output":null,"cache_read":null,"cache_write":null,"reasoning":null},"cost_micros":null},"total":{"usage":{"input":1,"output":null,"cache_read":null,"cache_write":null,"reasoning":null},"cost_micros":null},"recovered":0,"inbox":0},"state":{"x":0.30000000000000004}}}"#,
    r#"{"t":14,"snapshot":{"session":{"v":1,"agent":"a","salt":"5a17","graph":{"name":"l","wiring":"w","steps":{}},"schema":{"version":1,"fields":[]},"from":{"session":"s/1","seq":7},"phase":"failed","cursor":{"step":"last","position":4,"last":4,"attempt":1,"retries":1,"steps":2,"finishing":{"end":{"as":"exhausted","limit":"steps"},"since":1}},"interrupts":[{"interrupt":{"id":"3-ef","name":"ok","question":1,"answer_schema":{},"step":"fan","position":3,"item":2,"key":"k","asked_at":8},"resolution":{"as":"expired"}}],"session_effects":{"k":"intent"},"items":{"planned":[1,{"b":[]}],"done":{"1":{"v":null}},"work":{"0":{"attempt":1,"retries":0,"effects":{"k":{"done":1}},"timers":[{"k":"t","due":4,"waits":true}]}}},"parked":{"cursor":{"step":"fan","position":3,"last":3,"attempt":0,"retries":0,"steps":1},"items":{"planned":[],"done":{"0":{"failure":{"kind":"error","step":"fan","position":3,"attempts":1,"retryable":false,"message":"no","causes":[],"at":1}}}}},"turn":1,"run":"r","input":"k","spent":{"usage":{"input":null,"output":null,"cache_read":null,"cache_write":null,"reasoning":null},"cost_micros":null},"total":{"usage":{"input":1,"output":null,"cache_read":null,"cache_write":null,"reasoning":null},"cost_micros":null},"active_ms":4,"settled":{"end":{"as":"stopped"}},"recovered":1,"inbox":2,"trace":{"t":1}},"state":null}}"#,
    r#"{"t":15,"timer":{"timers":[{"due":1}]}}"#,
    r#"{"t":15,"timer":{"n":2,"i":0,"timers":[{"k":"","due":18446744073709551615},{"k":"ü","due":0}]}}"#,
    r#"{"t":13,"settle":{"end":{"as":"waiting"}}}"#,
    r#"{"t":13,"settle":{"end":{"as":"waiting","until":7},"attempt":1}}"#,
    r#"{"t":15,"notified":null}"#,
    r#"{"t":15,"child":{"k":"b","agent":"b","session":"child-7","input":"5a"}}"#,
    r#"{"t":15,"child":{"k":"b","i":1,"agent":"b","session":"child-7","input":"5a","due":4}}"#,
    r#"{"t":15,"child":{"k":"b","agent":"b","session":"child-7","input":"5a","since":4}}"#,
    r#"{"t":15,"timer":{"n":2,"timers":[],"children":["b"]}}"#,
    r#"{"t":15,"child_done":{"k":"b","run":"r","end":{"as":"ended"},"state":{"x":1},"steps":2}}"#,
    r#"{"t":15,"child_done":{"k":"b","i":1,"run":"r","end":{"as":"exhausted","limit":"cost"},"steps":0}}"#,
    r#"{"t":15,"notified":[]}"#,
    r#"{"t":15,"notified":{}}"#,
];

fn encoded(entry: &Entry) -> Result<String, EntryError> {
    let mut out = Vec::new();
    entry.encode(&mut out).map(|()| String::from_utf8(out).unwrap())
}

fn refused(bytes: &[u8]) -> EntryError {
    Entry::decode(bytes).expect_err(&String::from_utf8_lossy(bytes))
}

fn commit(ops: Ops) -> Entry {
    let ops = ops.finish().unwrap();
    let committed = crate::session::Committed { next: Some("act".into()), ops };
    Entry { at: UtcMillis(1_763_729_326_123), spent: None, change: Change::Committed(committed) }
}

#[test]
fn every_kind_is_written_as_it_was_read() {
    let mut kinds = std::collections::BTreeSet::new();
    for line in LINES {
        let entry = Entry::decode(line.as_bytes()).expect(line);
        assert_eq!(encoded(&entry).unwrap(), *line);
        assert_eq!(serde_json::to_string(&entry).unwrap(), *line);
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(value.get(entry.change.name()).is_some(), "{line}");
        assert_eq!(serde_json::from_value::<Entry>(value).unwrap(), entry);
        kinds.insert(entry.change.name().to_owned());
    }
    assert_eq!(kinds.len(), 22, "{kinds:?}");
}

#[test]
fn null_is_a_value_and_nothing_is_none() {
    for (line, null) in
        [(r#"{"t":2,"adopt":{"state":null}}"#, true), (r#"{"t":2,"adopt":{}}"#, false)]
    {
        let Change::Adopted(adopted) = Entry::decode(line.as_bytes()).unwrap().change else {
            panic!("{line}");
        };
        assert_eq!(adopted.state, null.then_some(Value::Null));
    }
    for line in [
        r#"{"t":7,"effect":{"k":"pay"}}"#,
        r#"{"t":9,"resolve":{"id":"3-ab","as":"answered","digest":"d","at":9}}"#,
        r#"{"t":8,"item":{"i":0}}"#,
        r#"{"t":8,"item":{"v":0}}"#,
        r#"{"t":10,"commit":{"o":[{"push":{"p":["a"]}}]}}"#,
        r#"{"t":1,"open":{"v":1,"agent":"a","salt":"","graph":{"name":"","wiring":"","steps":{}},"schema":{"version":1,"fields":[]}}}"#,
    ] {
        assert!(refused(line.as_bytes()).is_malformed(), "{line}");
    }
}

#[test]
fn the_envelope_of_a_commit_is_small() {
    let mut ops = Ops::on();
    let message = "x".repeat(200);
    ops.field("talk").push(&message);
    let line = encoded(&commit(ops)).unwrap();
    assert_eq!(
        line,
        format!(
            r#"{{"t":1763729326123,"commit":{{"n":"act","o":[{{"push":{{"p":["talk"],"v":"{message}"}}}}]}}}}"#
        )
    );
    // The message's two quotation marks are its own.
    let envelope = line.len() - message.len() - 2;
    assert!(envelope <= 85, "{envelope}");
}

#[test]
fn what_is_not_an_entry_is_malformed_and_not_quoted() {
    for line in [
        "",
        "{",
        "[]",
        "null",
        "7",
        r#""SECRET""#,
        "{}",
        r#"{"t":1}"#,
        r#"{"commit":{}}"#,
        r#"{"t":-1,"commit":{}}"#,
        r#"{"t":"SECRET","commit":{}}"#,
        r#"{"t":1,"t":1,"commit":{}}"#,
        r#"{"t":1,"commit":{},"commit":{}}"#,
        r#"{"t":1,"commit":{},"recover":{"run":"r"}}"#,
        r#"{"t":1,"commit":{}} x"#,
        r#"{"t":1,"commit":{"n":["SECRET"]}}"#,
        r#"{"t":1,"commit":{"o":[{"SECRET":{}}]}}"#,
        r#"{"t":1,"commit":{"o":[{"set":{"p":[1.5],"v":"SECRET"}}]}}"#,
        r#"{"t":1,"commit":{"o":[{"set":{"p":["a"],"v":1e999}}]}}"#,
        r#"{"t":1,"settle":{"end":"SECRET"}}"#,
        r#"{"t":1,"resolve":{"id":"a","as":"SECRET"}}"#,
        r#"{"t":1,"item":{"i":-1,"v":"SECRET"}}"#,
        r#"{"t":1,"item":{"i":1,"SECRET":1}}"#,
        r#"{"t":1,"planned":{"items":"SECRET"}}"#,
        r#"{"t":1,"open":{"v":"SECRET"}}"#,
        "{\"t\":1,\"commit\":{\"n\":\"SECRET\u{0}\"}}",
    ] {
        let error = refused(line.as_bytes());
        assert!(error.is_malformed() && !error.is_newer(), "{line}: {error}");
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{line}: {error:?}");
        assert!(error.to_string().len() < 200, "{error}");
    }
    assert!(refused(b"{\"t\":1,\"commit\":{\"n\":\"\xff\"}}").is_malformed());
    assert_eq!(
        refused(br#"{"t":1,"commit":{}"#).to_string(),
        "failed to decode an entry: unexpected end at byte 18"
    );
}

#[test]
fn a_newer_version_is_reported_from_damage() {
    for line in [
        r#"{"t":1,"SECRET":{}}"#,
        r#"{"t":1,"commit":{},"SECRET":1}"#,
        r#"{"t":1,"open":{"v":2,"everything":"else"}}"#,
        r#"{"t":1,"snapshot":{"session":{"v":2},"state":[]}}"#,
        r#"{"t":1,"snapshot":{"session":{"v":4294967295,"phase":"new"}}}"#,
    ] {
        let error = refused(line.as_bytes());
        assert!(error.is_newer() && !error.is_malformed(), "{line}: {error}");
        assert!(!error.to_string().contains("SECRET"));
    }
    let opened = LINES[0].replacen("\"v\":1", "\"v\":2", 1);
    assert!(refused(opened.as_bytes()).is_newer());
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
}

#[test]
fn what_is_written_is_never_too_deep_to_be_read() {
    let effect = |depth| {
        let value = nested(depth);
        let change = Change::Effect(crate::session::EffectDone {
            key: "k".to_owned(),
            item: None,
            scope: crate::step::EffectScope::Position,
            value,
        });
        encoded(&Entry { at: UtcMillis(1), spent: None, change })
    };
    let deepest = (0..200).take_while(|depth| effect(*depth).is_ok()).count();
    assert_eq!(deepest, MAX_ENTRY_DEPTH - 2 + 1);
    let line = effect(deepest - 1).unwrap();
    assert!(Entry::decode(line.as_bytes()).is_ok());
    let error = effect(deepest).unwrap_err();
    assert!(error.is_too_deep(), "{error}");

    // What is read is bounded however deep it is, without a stack of its own for each list.
    for depth in [200, 10_000, 1_000_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        for line in [
            format!(r#"{{"t":1,"effect":{{"k":"k","v":{open}{close}}}}}"#),
            format!(r#"{{"t":1,"commit":{{"o":[{{"set":{{"p":["a"],"v":{open}{close}}}}}]}}}}"#),
            format!(r#"{{"t":1,"unknown":{open}{close}}}"#),
            format!(r#"{{"t":1,"item":{open}"#),
            open.clone(),
        ] {
            let error = refused(line.as_bytes());
            assert!(error.is_malformed() || error.is_newer(), "{error}");
        }
    }
}

#[test]
fn a_state_does_not_grow_too_deep_for_its_snapshot_by_small_operations() {
    let mut ops = Ops::on();
    let mut field = ops.field("a");
    let mut inner = field.key("b");
    let mut deep = inner.key("c");
    let fits = MAX_ENTRY_DEPTH - 3 - 3;
    deep.push(&nested(fits));
    let entry = commit(ops);
    // As deep as an entry may be, it is deeper as an operation than as a part of the state.
    assert!(encoded(&entry).is_ok());

    let path: crate::state::Path =
        (0..100).map(|_| crate::state::Segment::Key("k".into())).collect();
    let push = |depth| {
        let op = Op::Push { path: path.clone(), value: nested(depth) };
        let committed = crate::session::Committed { next: None, ops: vec![op] };
        let change = Change::Committed(committed);
        encoded(&Entry { at: UtcMillis(1), spent: None, change })
    };
    assert!(push(9).is_ok());
    assert!(push(10).unwrap_err().is_too_deep());
}

#[test]
fn what_is_refused_leaves_the_buffer_alone() {
    let change = Change::Reserved(Reserved { kind: "notified".to_owned(), body: nested(500) });
    let mut out = b"before".to_vec();
    let entry = Entry { at: UtcMillis(1), spent: None, change };
    assert!(entry.encode(&mut out).unwrap_err().is_too_deep());
    assert_eq!(out, b"before");

    let body = Value::String("x".repeat(MAX_ENTRY));
    let change = Change::Reserved(Reserved { kind: "notified".to_owned(), body });
    let entry = Entry { at: UtcMillis(1), spent: None, change };
    let error = entry.encode(&mut out).unwrap_err();
    assert!(error.is_too_large() && error.to_string().contains("67108864"), "{error}");
    assert_eq!(out, b"before");
    assert!(refused(&vec![b' '; MAX_ENTRY + 1]).is_too_large());
}

#[test]
fn numbers_keep_their_bits() {
    let mut numbers = vec![
        json!(f64::MAX),
        json!(f64::MIN_POSITIVE),
        json!(5e-324),
        json!(-0.0),
        json!(1e21),
        json!(0.1 + 0.2),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.0),
        json!(1),
    ];
    numbers.extend((0..2_000_u64).map(|seed| {
        let bits = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (seed << 52);
        let float = f64::from_bits(bits);
        if float.is_finite() { json!(float) } else { json!(seed) }
    }));
    for number in numbers {
        let change = Change::Effect(crate::session::EffectDone {
            key: String::new(),
            item: None,
            scope: crate::step::EffectScope::Position,
            value: number.clone(),
        });
        let line = encoded(&Entry { at: UtcMillis(1), spent: None, change }).unwrap();
        let Change::Effect(read) = Entry::decode(line.as_bytes()).unwrap().change else {
            panic!("{line}");
        };
        assert_eq!(read.value.as_f64().map(f64::to_bits), number.as_f64().map(f64::to_bits));
        assert_eq!(read.value, number);
    }
    // Larger ones are floats, as JSON has them; those that are none are refused.
    let line = format!(r#"{{"t":1,"effect":{{"k":"k","v":{}}}}}"#, "9".repeat(300));
    assert!(Entry::decode(line.as_bytes()).is_ok());
    let line = format!(r#"{{"t":1,"effect":{{"k":"k","v":{}}}}}"#, "9".repeat(10_000));
    assert!(refused(line.as_bytes()).is_malformed());
    let line = format!(r#"{{"t":{},"commit":{{}}}}"#, "9".repeat(300));
    assert!(refused(line.as_bytes()).is_malformed());
}

#[test]
fn flipped_bits_never_panic() {
    for line in LINES {
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut bytes = line.as_bytes().to_vec();
                bytes[at] ^= 1 << bit;
                // What still reads as an entry is one, and can be written.
                if let Ok(entry) = Entry::decode(&bytes) {
                    let again = encoded(&entry).unwrap();
                    assert_eq!(Entry::decode(again.as_bytes()).unwrap(), entry);
                }
            }
            assert!(Entry::decode(&line.as_bytes()[..at]).is_err());
        }
    }
}
