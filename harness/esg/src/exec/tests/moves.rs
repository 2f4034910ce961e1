use std::sync::Arc;

use serde_json::json;

use super::super::host::request::messages;
use super::super::{Ending, Executor, Load, Sync, Unstash};
use super::{run, worker, works_afresh};
use crate::model::Entity;

fn load(key: &str, name: &str, blob: &[u8]) -> Load {
    let members = vec![Entity::name(name)];
    Load { key: key.into(), take: members.clone(), members, blob: blob.into(), refs: Vec::new() }
}

#[test]
fn a_sync_says_everything_in_its_words() {
    let mut python = worker();
    let request = Sync {
        drop: vec![Entity::name("a"), Entity::file("b/c")],
        stash: vec!["1.0".into()],
        forget: vec!["1.1".into()],
        alias: vec![("2.0".into(), "1.4".into())],
        unstash: vec![Unstash { key: "1.2".into(), members: vec![Entity::name("d")] }],
        load: vec![
            Load { refs: vec![Entity::Token("2.0".into())], ..load("1.3", "e", b"four") },
            load("1.5", "f", b"bad"),
            load("1.6", "g", b"seven77"),
        ],
        sources: vec![("load".into(), "rows = []".into())],
        moved: vec![("load".into(), "\nrows = []".into())],
        order: vec![Entity::name("g"), Entity::name("e")],
    };
    let synced = python.sync(&request).unwrap();
    assert_eq!(synced.failed, [(Arc::from("1.5"), "it is bad".to_owned())]);
    run(&mut python, "sync = {k: v for k, v in wire.syncs[-1].items() if k != 'nonce'}");
    let one = |name: &str, key, blob, refs| {
        let member = format!("n:{name}");
        json!({"key": key, "members": [{"entity": member}], "take": [member], "blob": blob, "refs": refs})
    };
    let expected = json!({
        "op": "sync",
        "drop": ["n:a", "f:b/c"],
        "stash": ["1.0"],
        "forget": ["1.1"],
        "alias": [["2.0", "1.4"]],
        "unstash": [{"key": "1.2", "members": ["n:d"]}],
        "load": [
            one("e", "1.3", [0, 4], json!(["t:2.0"])),
            one("f", "1.5", [4, 3], json!([])),
            one("g", "1.6", [7, 7], json!([])),
        ],
        "sources": {"load": "rows = []"},
        "moved": {"load": "\nrows = []"},
        "order": ["n:g", "n:e"],
    });
    assert_eq!(python.value("sync").unwrap().json, Some(expected));
    assert_eq!(python.value("g").unwrap().json, Some(json!(7)));
}

#[test]
fn many_bytes_go_and_come_whole() {
    let mut python = worker();
    let blob = vec![7; 40 << 20];
    let load: Vec<Load> =
        (0..2).map(|i| load(&format!("1.{i}"), &format!("v{i}"), &blob)).collect();
    python.sync(&Sync { load, ..Sync::default() }).unwrap();
    assert_eq!(python.value("v1").unwrap().json, Some(json!(40 << 20)));
    let own = "0".repeat(64);
    let source = format!(
        "wire.blob = bytes(range(256)) * (1 << 17)\nn = len(wire.blob)\nwire.change = {{'units': [\
         {{'key': '1.0', 'members': [{{'entity': 'n:x', 'own': '{own}'}}], 'blob': [1, n - 1]}}]}}"
    );
    let ran = run(&mut python, &source);
    assert_eq!(ran.ending, Ending::Ok);
    let blob = ran.units[0].1.as_ref().unwrap();
    assert_eq!((blob.len(), blob[0], blob[blob.len() - 1]), ((256 << 17) - 1, 1, 255));
}

#[test]
fn more_than_one_message_holds_goes_in_several() {
    let load = ["aaaa", "bbbb", "cc", "dddddddd", "e"].map(|blob| load(blob, "x", blob.as_bytes()));
    let sync = Sync { drop: vec![Entity::name("a")], load: load.into(), ..Sync::default() };
    let sizes = |most| -> Vec<Vec<usize>> {
        let messages = messages(&sync, most);
        messages.iter().map(|(_, blobs)| blobs.iter().map(|blob| blob.len()).collect()).collect()
    };
    assert_eq!(sizes(100), [vec![4, 4, 2, 8, 1]]);
    assert_eq!(sizes(8), [vec![4, 4], vec![2], vec![8], vec![1]]);
    assert_eq!(sizes(1), [vec![4], vec![4], vec![2], vec![8], vec![1]]);
    let texts: Vec<String> =
        messages(&sync, 8).iter().map(|(one, _)| serde_json::to_string(one).unwrap()).collect();
    assert!(texts[0].contains(r#""drop":["n:a"]"#) && texts[0].contains(r#""blob":[4,4]"#));
    assert!(texts[1..].iter().all(|text| text.contains(r#""drop":[]"#)));
    assert!(texts[1].contains(r#""blob":[0,2]"#));
    assert_eq!(messages(&Sync::default(), 8).len(), 1);
}

#[test]
fn a_value_that_is_not_live_is_an_error_and_no_loss() {
    let mut python = worker();
    run(&mut python, "x = [1, 'two']");
    let error = python.value("y").unwrap_err();
    assert!(!error.lost() && error.to_string().contains("`y` is not live"), "{error}");
    let value = python.value("x").unwrap();
    assert_eq!((&*value.repr, &*value.type_name), ("[1, 'two']", "list"));
    assert_eq!(python.sweep().unwrap().unattributed, ["nothing is tracked"]);
}

#[test]
fn a_worker_that_fails_at_moving_is_lost() {
    for what in ["os._exit(1)", "wire.raw(b'x' * 100)", "1 / 0"] {
        let mut python = worker();
        run(
            &mut python,
            &format!(
                "import os\nmark = 1\ndef take(o=wire.take):\n    got = o()\n    {what}\nwire.take = take"
            ),
        );
        let error = python.sync(&Sync::default()).unwrap_err();
        assert!(error.lost(), "{error}");
        works_afresh(&mut python);
    }
}
