//! Servers that crash, hang, or are not there.

use crate::process::{Place, WAYS, Way, python};
use crate::{call, text};
use harness::llm::{ToolCall, ToolFailure, ToolOutcome};
use harness_providers::mcp::{Client, Http, Limits, McpErrorKind, Server, Stdio};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

fn errored(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Failed { kind: ToolFailure::Errored, content } => content.text().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_during_which_the_server_dies_is_in_doubt_and_never_sent_again() {
    for way in WAYS {
        let mut place = Place::new(way).await;
        let client = place.client().await;
        let tools = client.tools();
        assert_eq!(call(&tools, "t_crash", json!({})).await, ToolOutcome::InDoubt, "{way:?}");
        assert_eq!(place.notes(), ["crash"]);
        if !place.is_stdio() {
            place.ended().await;
            // While there is no server, a call fails and was not sent.
            let error = errored(&call(&tools, "t_note", json!({"text": "lost"})).await);
            assert_eq!(error, "MCP server `t`: there is no connection to it (check that it runs)");
            place.start(&[]).await;
        }
        // The next call connects again, and the tools are listed again.
        let mut changes = client.changes();
        assert_eq!(
            text(&call(&tools, "t_note", json!({"text": "after"})).await),
            "noted",
            "{way:?}"
        );
        assert_eq!(place.notes(), ["crash", "after"]);
        call(&tools, "t_grow", json!({})).await;
        assert!(changes.next().await.unwrap().spec(&"t_extra1".into()).is_some(), "{way:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_tool_that_only_reads_is_sent_once_more() {
    let place = Place::new(Way::Stdio).await;
    let client = Client::connect([place.server("t").trust_hints()]).await.unwrap();
    let error = errored(&call(&client.tools(), "t_crash_reading", json!({})).await);
    assert!(error.starts_with("MCP server `t`: it ended before it answered"), "{error}");
    assert_eq!(place.notes(), ["crash_reading", "crash_reading"]);
    client.close().await;
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_is_made_again() {
    for way in [Way::Http, Way::HttpInitialize] {
        let mut place = Place::new(way).await;
        let client = place.client().await;
        let tools = client.tools();
        call(&tools, "t_note", json!({"text": "one"})).await;
        place.start(&[]).await;
        assert_eq!(text(&call(&tools, "t_note", json!({"text": "two"})).await), "noted", "{way:?}");
        assert_eq!(place.notes(), ["one", "two"]);
        client.close().await;
    }
}

#[tokio::test]
async fn tools_that_are_gone_after_a_restart_leave_the_set() {
    let mut place = Place::new(Way::HttpInitialize).await;
    let client = place.client().await;
    let tools = client.tools();
    let mut changes = client.changes();
    place.start(&["--empty"]).await;
    assert_eq!(text(&call(&tools, "t_note", json!({"text": "late"})).await), "noted");
    assert!(changes.next().await.unwrap().is_empty());
    client.close().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    for way in WAYS {
        let place = Place::new(way).await;
        let (begun, mut began) = mpsc::unbounded_channel();
        let server = place.server("t").on_progress(move |_| begun.send(()).unwrap());
        let client = Client::connect([server]).await.unwrap();
        let tools = client.tools();
        let waiting = tokio::spawn({
            let tools = tools.clone();
            async move { call(&tools, "t_wait", json!({})).await }
        });
        began.recv().await.unwrap();
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(text(&call(&tools, "t_was_cancelled", json!({})).await), "yes", "{way:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_in_doubt_or_timed_out_and_cancelled() {
    for way in [Way::Stdio, Way::HttpInitialize] {
        let place = Place::new(way).await;
        let limits = Limits::default().idle(Duration::from_millis(300));
        let server = place.server("t").limits(limits).trust_hints();
        let client = Client::connect([server]).await.unwrap();
        let tools = client.tools();
        assert_eq!(call(&tools, "t_wait", json!({})).await, ToolOutcome::InDoubt);
        assert_eq!(text(&call(&tools, "t_was_cancelled", json!({})).await), "yes");
        let outcome = call(&tools, "t_wait_reading", json!({})).await;
        assert_eq!(
            outcome,
            ToolOutcome::failed(
                ToolFailure::TimedOut,
                "MCP server `t`: it did not answer within 300ms"
            )
        );
        assert_eq!(place.notes(), ["wait", "wait_reading"], "{way:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn servers_that_cannot_be_used_are_typed_errors_without_secrets() {
    let canary = "canary";
    let quick = Limits::default().connect(Duration::from_secs(20));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free_at = free.local_addr().unwrap();
    drop(free);
    let mut guarded = Place::new(Way::Http).await;
    guarded.start(&["--token", "right"]).await;
    let python_does = |code: &str| Stdio::new(python()).args(["-c", code]).env("KEY", canary);
    let silent = Limits::default().connect(Duration::from_millis(300));
    for (server, expected) in [
        (Server::stdio("1", Stdio::new("x")), McpErrorKind::BadName),
        (
            Server::stdio("s", Stdio::new("no-such-command-here").arg(canary)),
            McpErrorKind::Spawn { kind: std::io::ErrorKind::NotFound },
        ),
        (
            Server::stdio("s", python_does("import sys; sys.exit('canary')")).limits(quick),
            McpErrorKind::Ended,
        ),
        (
            Server::stdio("s", python_does("import sys; sys.stdin.read()")).limits(silent),
            McpErrorKind::TimedOut { limit: Duration::from_millis(300) },
        ),
        (Server::http("s", Http::new("canary")), McpErrorKind::BadUrl),
        (Server::http("s", Http::new("file:///canary")), McpErrorKind::BadUrl),
        (
            Server::http("s", Http::new("http://127.0.0.1/").header("a b", canary)),
            McpErrorKind::BadHeader { name: "a b".into() },
        ),
        (
            Server::http("s", Http::new(format!("http://{free_at}/{canary}"))),
            McpErrorKind::Unreachable,
        ),
        (
            Server::http("s", guarded.http().header("authorization", canary)),
            McpErrorKind::Unauthorized,
        ),
    ] {
        let shown = format!("{server:?}");
        let error = Client::connect([server]).await.unwrap_err();
        assert_eq!(error.kind(), &expected);
        let all = format!("{error} {error:?} {shown}");
        assert!(!all.contains(canary) || expected == McpErrorKind::BadUrl, "{all}");
        assert!(!error.to_string().contains(canary), "{error}");
    }
    let right = Server::http("s", guarded.http().header("authorization", "right"));
    Client::connect([right]).await.unwrap().close().await;
    let twice = [guarded.server("s"), guarded.server("s")];
    assert_eq!(Client::connect(twice).await.unwrap_err().kind(), &McpErrorKind::SameName);
}

#[tokio::test]
async fn a_server_with_too_many_tools_is_refused() {
    let place = Place::new(Way::Stdio).await;
    let server = place.server("t").limits(Limits::default().tools(5));
    let error = Client::connect([server]).await.unwrap_err();
    assert_eq!(error.kind(), &McpErrorKind::TooManyTools { most: 5 });
}

#[tokio::test]
async fn a_process_gets_only_the_environment_that_it_is_given() {
    let place = Place::new(Way::Stdio).await;
    let about = async |stdio: Stdio| -> Value {
        let client = Client::connect([Server::stdio("t", stdio)]).await.unwrap();
        let about = text(&call(&client.tools(), "t_about", json!({})).await);
        client.close().await;
        serde_json::from_str(&about).unwrap()
    };
    let folder = place.ledger().parent().unwrap().canonicalize().unwrap();
    let given = about(place.stdio().env("TOKEN", "t-1").current_dir(&folder)).await;
    assert_eq!(given["env"]["TOKEN"], "t-1");
    assert_eq!(given["cwd"], folder.to_str().unwrap());
    assert_eq!(given["env"].get("HARNESS_MCP_PYTHON"), None);
    assert!(given["env"]["PATH"].is_string());
    let all = about(place.stdio().inherit_env()).await;
    assert!(all["env"]["HARNESS_MCP_PYTHON"].is_string());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn processes_end_with_their_client() {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let place = Place::new(Way::Stdio).await;
    for closed in [true, false] {
        let client = place.client().await;
        let tools = client.tools();
        let about = text(&call(&tools, "t_about", json!({})).await);
        let about: Value = serde_json::from_str(&about).unwrap();
        let process = i32::try_from(about["pid"].as_i64().unwrap()).unwrap();
        let process = pidfd_open(Pid::from_raw(process).unwrap(), PidfdFlags::empty()).unwrap();
        let clone = client.clone();
        drop(client);
        assert_eq!(text(&call(&tools, "t_echo", json!({"text": "on"})).await), "on");
        match closed {
            true => clone.close().await,
            false => drop(clone),
        }
        // It can be read when the process has ended.
        let ended = tokio::task::spawn_blocking(move || {
            poll(&mut [PollFd::new(&process, PollFlags::IN)], None).unwrap()
        });
        assert_eq!(ended.await.unwrap(), 1);
        let outcome = tools.call(&ToolCall::new("c", "t_echo", r#"{"text":"x"}"#)).await;
        let error = errored(&outcome);
        assert!(error.contains("its client is closed (keep the `Client`"), "{error}");
    }
}
