use std::time::Duration;

use serde_json::{Value as Json, json};

use super::super::host::reply::{Bad, RunReply, parse};
use super::super::{Ending, Ran};
use crate::model::Entity;

const TOOK: Duration = Duration::from_millis(5);

fn reply(change: &Json) -> Json {
    let mut reply = json!({
        "op": "run", "nonce": "n", "ending": {"kind": "ok"},
        "reads": ["n:a", "*", "d:sub", "p:rng", "k:numpy"],
        "external": {"x:/etc/hosts": null, "k:numpy": "2.1"},
        "wrote": {"n:b": "bound", "t:4.0": "mutated", "f:out": "deleted"},
        "units": [], "dirty": [], "untracked": [{"what": "gc", "line": 3}],
        "readings": [1.5, "ab"], "clock": true,
        "stdout": {"at": [0, 3], "dropped": 2}, "stderr": {"at": [3, 0], "dropped": 0},
        "micros": {"run": 70, "probe": 9},
    });
    for (key, value) in change.as_object().unwrap() {
        reply[key] = value.clone();
    }
    reply
}

fn ran(change: Json) -> Result<Ran, String> {
    let json = serde_json::to_vec(&reply(&change)).unwrap();
    match parse::<RunReply>(&json, "run", "n") {
        Ok(reply) => reply.into_ran(4, b"outblob", 3, TOOK),
        Err(Bad::Reply(what) | Bad::Failed(what)) => Err(what),
    }
}

fn unit(change: Json) -> Json {
    let own = "ab".repeat(32);
    let mut unit = json!({
        "key": "4.1",
        "members": [{"entity": "n:b", "own": own, "refs": [0]}, {"entity": "t:4.0", "own": own}],
        "share": [[0, 1, own]], "refs": ["m:json"], "blob": [3, 4], "unserializable": null,
    });
    for (key, value) in change.as_object().unwrap() {
        unit[key] = value.clone();
    }
    json!({"units": [unit]})
}

#[test]
fn a_reply_is_taken_apart() {
    let ran = ran(unit(json!({}))).unwrap();
    assert_eq!(ran.ending, Ending::Ok);
    assert!(!ran.lost && ran.clock);
    assert_eq!(ran.reads.len(), 5);
    assert_eq!(ran.external[&Entity::External("/etc/hosts".into())], None);
    assert_eq!(ran.wrote.len(), 3);
    assert_eq!((&*ran.stdout.bytes, ran.stdout.dropped), (&b"out"[..], 2));
    assert_eq!(ran.wall, Duration::from_micros(70));
    let (unit, blob) = &ran.units[0];
    assert_eq!((unit.size, blob.as_deref()), (4, Some(&b"blob"[..])));
    assert_eq!(unit.members[0].refs, [0]);
}

#[test]
fn sharing_is_given_by_index_or_by_name() {
    let own = "ab".repeat(32);
    for (a, b) in [(json!(1), json!(0)), (json!("t:4.0"), json!("n:b"))] {
        let ran = ran(unit(json!({"share": [[a, b, own]]}))).unwrap();
        let [(a, b, _)] = ran.units[0].0.share[..] else { panic!("one pair") };
        assert_eq!((a, b), (1, 0));
    }
}

#[test]
fn an_exception_comes_with_its_place() {
    let ending = json!({"kind": "raised", "type": "NameError", "message": "no", "line": 2,
        "frames": [{"step": "s", "line": 2, "function": "<module>"}], "name": "row", "text": "row"});
    let Ending::Raised { type_name, line, frames, name, syntax, .. } =
        ran(json!({"ending": ending})).unwrap().ending
    else {
        panic!("it raised");
    };
    assert_eq!((&*type_name, line, frames.len(), syntax), ("NameError", Some(2), 1, false));
    assert_eq!(name.as_deref(), Some("row"));
}

#[test]
fn the_longer_time_is_never_believed() {
    let ran = ran(json!({"micros": {"run": u64::MAX, "probe": 0}})).unwrap();
    assert_eq!(ran.wall, TOOK);
}

#[test]
fn contradictory_replies_are_refused() {
    let own = "ab".repeat(32);
    let member = |entity: &str| json!({"entity": entity, "own": own});
    for (change, what) in [
        (json!({"reads": ["q:x"]}), "is not an entity"),
        (json!({"reads": ["x"]}), "is not an entity"),
        (json!({"wrote": {"d:x": "bound"}}), "is read-only"),
        (json!({"dirty": ["*"]}), "is read-only"),
        (json!({"wrote": {"n:x": "touched"}}), "unknown variant"),
        (
            json!({"ending": {"kind": "timeout", "limit": {"secs": 1, "nanos": 0}}}),
            "only the host can determine",
        ),
        (json!({"ending": {"kind": "fine"}}), "unknown variant"),
        (json!({"stdout": {"at": [0, 4], "dropped": 0}}), "limit of 3"),
        (json!({"stderr": {"at": [usize::MAX, 2], "dropped": 0}}), "2 bytes at offset"),
        (
            json!({"stderr": {"at": [8, 0], "dropped": 0}}),
            "0 bytes at offset 8 exceed the 7 received",
        ),
        (unit(json!({"key": "5.1"})), "a key of another run"),
        (unit(json!({"key": ""})), "1 to 100"),
        (unit(json!({"key": "4.".repeat(60)})), "1 to 100"),
        (unit(json!({"members": []})), "nothing is in it"),
        (unit(json!({"members": [member("n:b"), member("n:b")]})), "twice"),
        (unit(json!({"members": [member("x:/b")]})), "is read-only"),
        (unit(json!({"members": [{"entity": "n:b", "own": "abc"}]})), "64 hex digits"),
        (unit(json!({"refs": []})), "not listed"),
        (unit(json!({"refs": ["n:b"]})), "something else than"),
        (unit(json!({"share": [[0, 2, own]]})), "not there"),
        (unit(json!({"share": [["n:b", "n:c", own]]})), "not there"),
        (unit(json!({"blob": [3, 5]})), "5 bytes at offset 3"),
        (unit(json!({"blob": null})), "both or neither"),
        (unit(json!({"unserializable": "generator"})), "both or neither"),
    ] {
        let refused = ran(change.clone()).unwrap_err();
        assert!(refused.contains(what), "{change}: {refused}");
    }
    let mut twice = unit(json!({}));
    let again = twice["units"][0].clone();
    twice["units"].as_array_mut().unwrap().push(again);
    assert!(ran(twice).unwrap_err().contains("a key of another run"));
}
