//! Several servers, in one set.

use crate::process::{Place, WAYS, Way};
use crate::{call, text};
use harness::llm::{ToolOutcome, ToolSet, tool};
use harness_providers::mcp::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[tokio::test]
async fn tools_of_several_servers_and_of_the_program_are_one_set() {
    let one = Place::new(Way::Stdio).await;
    let two = Place::new(Way::Http).await;
    let client = Client::connect([one.server("one"), two.server("two")]).await.unwrap();
    let tools = client.tools();
    assert_eq!(tools.specs().len(), 34);
    for (server, place) in [("one", &one), ("two", &two)] {
        let noted = call(&tools, &format!("{server}_note"), json!({"text": server})).await;
        assert_eq!(text(&noted), "noted");
        assert_eq!(place.notes(), [server]);
    }
    // The order and the names depend on the servers only.
    let again = Client::connect([one.server("one"), two.server("two")]).await.unwrap();
    assert_eq!(again.tools().specs(), tools.specs());
    again.close().await;

    let own = tool("now", "Returns the time", |_: Value| async { Ok("noon") });
    let all = ToolSet::builder().with(own).with_all(client.list()).build().unwrap();
    assert_eq!(text(&call(&all, "now", json!({})).await), "noon");
    assert_eq!(text(&call(&all, "two_echo", json!({"text": "hi"})).await), "hi");

    // One that dies takes none with it.
    assert_eq!(call(&all, "one_crash", json!({})).await, ToolOutcome::InDoubt);
    assert_eq!(text(&call(&all, "two_echo", json!({"text": "hi"})).await), "hi");
    assert_eq!(text(&call(&all, "one_echo", json!({"text": "ho"})).await), "ho");
    client.close().await;
}

#[tokio::test]
async fn calls_of_one_server_run_at_the_same_time() {
    for way in WAYS {
        let place = Place::new(way).await;
        let (begun, mut began) = mpsc::unbounded_channel();
        let server = place.server("t").on_progress(move |_| begun.send(()).unwrap());
        let client = Client::connect([server]).await.unwrap();
        let tools = client.tools();
        // The first call waits for the second to be dropped.
        let first = call(&tools, "t_was_cancelled", json!({}));
        let second = async {
            tokio::select! {
                outcome = call(&tools, "t_wait", json!({})) => panic!("{outcome:?}"),
                begun = began.recv() => begun.unwrap(),
            }
        };
        let (first, ()) = tokio::join!(first, second);
        assert_eq!(text(&first), "yes", "{way:?}");
        client.close().await;
    }
}
