use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn a_path_is_compared_by_its_parts() {
    let below = [
        "/a/b",
        "/a/b/",
        "/a/b/c",
        "/a//b/./c",
        "/a/b/../b/c",
        "/x/../a/b",
        "/../a/b",
        "/a/b/c/..",
    ];
    let beside = ["/a/bc", "/a", "/", "/a/b/..", "/a/b/../../etc", "/a/b/../c", "/A/b", "/a/ b"];
    let unclear =
        ["a/b", "", "../a/b", "~/a/b", "/a/b\\..\\..\\etc", "/a/b\0/x", "c:/a/b", "\n/a/b"];
    for path in below {
        assert_eq!(under("/a/b", path), Under::Yes, "{path}");
    }
    for path in beside {
        assert_eq!(under("/a/b", path), Under::No, "{path}");
    }
    for path in unclear {
        assert_eq!(under("/a/b", path), Under::Unclear, "{path}");
    }
    assert_eq!(under("a/b/", "./a/b/c"), Under::Yes);
    assert_eq!(under("a/b", "a/b/../../.."), Under::Unclear);
    assert_eq!(under("/", "/anything"), Under::Yes);
}

#[test]
fn an_argument_that_no_condition_names_is_not_allowed() {
    let git = Arguments::new().with("/command", Condition::equals("git status"));
    assert!(git.allow(&json!({"command": "git status"})));
    for other in [
        json!({"command": "git status; rm -rf ~"}),
        json!({"command": "git status", "cwd": "/"}),
        json!({"cmd": "git status"}),
        json!({"command": ["git status"]}),
        json!({}),
        json!("git status"),
    ] {
        assert!(!git.allow(&other), "{other}");
    }
    let none = Arguments::new();
    assert!(none.allow(&json!({})));
    assert!(!none.allow(&json!({"force": true})));
    assert!(
        !none.allow(&json!({"force": {}})) && !none.allow(&json!([])) && !none.allow(&json!(1))
    );
    assert!(Arguments::new().with("", Condition::Any).allow(&json!({"force": true})));
    let deep = Arguments::new()
        .with("/to/name", Condition::Any)
        .with("/to/a~1b", Condition::equals(1))
        .with("/tags/0", Condition::one_of(["x", "y"]));
    assert!(deep.allow(&json!({"to": {"name": 1, "a/b": 1}, "tags": ["y"]})));
    assert!(!deep.allow(&json!({"to": {"name": 1, "a/b": 1}, "tags": ["y", "z"]})));
    assert!(!deep.allow(&json!({"to": {"name": 1, "a/b": 1, "c": {}}, "tags": ["y"]})));
}

#[test]
fn a_doubt_catches() {
    let etc = Arguments::new().with("/path", Condition::under("/etc"));
    for caught in [
        json!({"path": "/etc/passwd", "mode": 7}),
        json!({"path": "/srv/../etc/passwd"}),
        json!({"path": "../../etc/passwd"}),
        json!({"path": "etc/passwd"}),
        json!({"path": ["/tmp/a", "/etc/passwd"]}),
    ] {
        assert!(etc.catch(&caught), "{caught}");
        assert!(!etc.allow(&caught) || caught == json!({"path": "/srv/../etc/passwd"}), "{caught}");
    }
    for free in [json!({"path": "/srv/a"}), json!({"file": "/etc/passwd"}), json!({"path": 7})] {
        assert!(!etc.catch(&free), "{free}");
    }
    assert!(Arguments::new().with("/n", Condition::equals(1)).catch(&json!({"n": 1.0})));
    assert!(Arguments::new().catch(&json!({"anything": true})));
}

fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        "[a-c/~.]{0,4}".prop_map(Value::from),
    ];
    let any = leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c/~0-1]{0,3}", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-c/~0-1]{0,3}", any, 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

proptest! {
    #[test]
    fn exact_arguments_allow_themselves_and_nothing_else(one in arguments(), other in arguments()) {
        let exactly = Arguments::exactly(&one);
        prop_assert!(exactly.allow(&one));
        prop_assert!(exactly.catch(&one));
        prop_assert_eq!(exactly.allow(&other), one == other);
    }

    #[test]
    fn what_is_allowed_is_caught(one in arguments(), other in arguments(), root in "[/a-c.]{0,5}") {
        let mut rules = Arguments::exactly(&one);
        if let Some(first) = rules.0.values_mut().next() {
            *first = Condition::Under(root);
        }
        for arguments in [&one, &other] {
            prop_assert!(!rules.allow(arguments) || rules.catch(arguments));
        }
    }

    #[test]
    fn no_path_leaves_its_root(path in "[a-c./]{0,12}") {
        if under("/a/b", &path) == Under::Yes {
            let mut depth = Vec::new();
            for part in path.split('/') {
                match part {
                    "" | "." => {}
                    ".." => { depth.pop(); }
                    part => depth.push(part),
                }
            }
            prop_assert!(path.starts_with('/') && depth.starts_with(&["a", "b"]));
        }
    }
}
