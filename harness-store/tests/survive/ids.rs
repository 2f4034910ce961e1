//! Ids that look like something else.

use harness::Seq;
use harness::inspect::Filter;
use harness::prelude::*;

use crate::rig::{agent, answer, ask, files, input, open, sessions, whole};

#[tokio::test]
async fn a_session_may_have_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let (long, wide) = ("i".repeat(1024), "ü".repeat(512));
    let names = [
        "../../x",
        "/etc/passwd",
        "x",
        "X",
        "con",
        "CON",
        "NUL.txt",
        ".",
        "..",
        " ",
        "a\0",
        "a",
        "a\0b",
        "a\nb",
        "a\rb",
        "日本",
        "é",
        "e\u{301}",
        "\u{202e}gpj",
        "a/b",
        "a\\b",
        "~",
        "-rf",
        "%00",
        "*",
        "x.log",
        "\u{feff}x",
        &long,
        &wide,
    ];
    let store = open(&root).await;
    for (number, name) in names.iter().enumerate() {
        ask(&store, name, 1, number).await;
    }
    drop(store);
    let store = open(&root).await;
    let look = sessions(&store);
    for (number, name) in names.iter().enumerate() {
        let status = look.status(name).await.unwrap();
        assert_eq!(status.session.as_str(), *name);
        let state = look.state_at(name, status.head).await.unwrap();
        assert_eq!(state["size"], number, "{name:?}");
        assert!(!look.history(name, Seq(0), 100).await.unwrap().entries.is_empty());
        assert_eq!(answer(&store, name).await, whole(1, number), "{name:?}");
    }
    let mut sorted: Vec<&str> = names.to_vec();
    sorted.sort_unstable();
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = look.list(&Filter::sessions(), after.as_deref(), 4).await.unwrap();
        listed.extend(page.rows.into_iter().map(|row| row.session.as_str().to_owned()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, sorted);
    // Nothing was made outside of the store, and one log for each.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(files(&root, "log").len(), names.len());
    for log in files(&root, "log") {
        let name = log.file_name().unwrap().to_str().unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'), "{name}");
    }
    for name in names {
        look.delete(name).await.unwrap();
        assert!(look.status(name).await.unwrap_err().is_not_found());
    }
    assert_eq!(files(&root, "log").len(), 0);
}

#[tokio::test]
async fn names_that_are_none_never_reach_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let agent = agent(&store);
    for name in [String::new(), "i".repeat(1025), "ü".repeat(513)] {
        let error = agent.run(input(1, 1), ()).session(&name).await.unwrap_err();
        assert!(error.is_invalid_session_id(), "{error}");
        let error = agent.resume(&*name, Answers::none(), ()).await.unwrap_err();
        assert!(error.is_invalid_session_id(), "{error}");
        let look = sessions(&store);
        assert!(look.status(&name).await.unwrap_err().is_invalid_session_id());
        assert!(look.state(&name).await.unwrap_err().is_invalid_session_id());
        assert!(look.state_at(&name, Seq(1)).await.unwrap_err().is_invalid_session_id());
        assert!(look.history(&name, Seq(0), 1).await.unwrap_err().is_invalid_session_id());
        assert!(look.stop(&name).await.unwrap_err().is_invalid_session_id());
        assert!(look.delete(&name).await.unwrap_err().is_invalid_session_id());
        assert!(look.prune(&name, Seq(1)).await.unwrap_err().is_invalid_session_id());
    }
    assert!(files(dir.path(), "log").is_empty());
}
