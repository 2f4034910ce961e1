//! Tool calls.

use serde_json::{Value, json};

use crate::llm::{
    CallCx, Delta, LlmErrorKind, Message, Reply, Request, StopReason, ToolChoice, ToolFailure,
    ToolOutcome, ToolSet, ToolSpec, Transcript, tool,
};

use super::super::server::Play;
use super::super::world::{
    Kept, Setup, Stop, World, call, end, fragment, start, talk, text_of, texts,
};
use super::clauses;

clauses! {
    "calls-in-one-piece" => whole,
    "calls-interleave" => interleave,
    "call-can-have-any-index" => any_index,
    "malformed-arguments-are-kept" => malformed,
    "calls-go-back-with-their-outcomes" => go_back,
    "tool-choice-is-sent-or-refused" => choice,
}

fn tools() -> Kept<ToolSet> {
    let tools = ToolSet::builder()
        .with(tool("first", "The first", |_: Value| async { Ok("1") }))
        .with(tool("second", "The second", |_: Value| async { Ok("2") }))
        .build();
    tools.map_err(|error| Stop::Broken(error.to_string()))
}

fn calling(setup: &Setup) -> Kept {
    match setup.model.caps().tools {
        true => Ok(()),
        false => Err(Stop::Skipped("the model does not call tools".into())),
    }
}

async fn ask(setup: &Setup, tools: &ToolSet, talk: &Transcript, listen: bool) -> Kept<Reply> {
    let cx = CallCx::detached();
    let cx = if listen { cx.with_listener(|_| {}) } else { cx };
    Ok(setup.model.complete(Request::new(talk.sealed()?).tools(tools), &cx).await?)
}

/// Name and arguments of each call. Ids may be those of the adapter.
fn calls(reply: &Reply) -> Vec<(&str, Value)> {
    reply.calls().map(|call| (call.name.as_str(), call.json().unwrap_or_default())).collect()
}

fn ids_differ(reply: &Reply) -> bool {
    let mut ids: Vec<_> = reply.calls().map(|call| call.id.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() == count && !ids.contains(&"")
}

async fn whole(w: World) -> Kept {
    let mut said = vec![Delta::Text("look".into())];
    said.extend(call(0, "c0", "first", "{\"n\":1}"));
    said.extend(call(1, "c1", "second", "{}"));
    said.extend(end(StopReason::ToolCalls));
    let setup = w.setup([Play::Reply(said)]).await?;
    calling(&setup)?;
    let reply = ask(&setup, &tools()?, &talk(), false).await?;
    same!("the calls", calls(&reply), [("first", json!({"n": 1})), ("second", json!({}))]);
    ensure!(ids_differ(&reply), "calls of one reply have the same id");
    same!("the text", reply.text().as_deref(), Some("look"));
    same!("why it stopped", reply.stop, StopReason::ToolCalls);
    Ok(())
}

async fn interleave(w: World) -> Kept {
    let mut said = vec![
        start(0, "c0", "first"),
        start(1, "c1", "second"),
        fragment(1, "{\"b\":"),
        fragment(0, "{\"a\":"),
        fragment(1, "[2]}"),
        fragment(0, "\"\u{fc}\"}"),
        Delta::CallEnd { index: 0 },
        Delta::CallEnd { index: 1 },
    ];
    said.extend(end(StopReason::ToolCalls));
    let setup = w.setup([Play::Reply(said)]).await?;
    calling(&setup)?;
    let reply = ask(&setup, &tools()?, &talk(), true).await?;
    let expected = [("first", json!({"a": "\u{fc}"})), ("second", json!({"b": [2]}))];
    same!("the calls", calls(&reply), expected);
    ensure!(ids_differ(&reply), "calls of one reply have the same id");
    same!("why it stopped", reply.stop, StopReason::ToolCalls);
    Ok(())
}

async fn any_index(w: World) -> Kept {
    for index in [1_025, u64::from(u32::MAX)] {
        let mut said = call(index, "c0", "first", "{\"n\":1}");
        said.extend(end(StopReason::ToolCalls));
        let setup = w.setup([Play::Reply(said)]).await?;
        calling(&setup)?;
        let reply = ask(&setup, &tools()?, &talk(), true).await?;
        same!(format!("the call {index}"), calls(&reply), [("first", json!({"n": 1}))]);
    }
    Ok(())
}

async fn malformed(w: World) -> Kept {
    if !w.wire.has_text_arguments() {
        return Err(Stop::Skipped("arguments of this vendor are always JSON".into()));
    }
    for arguments in
        ["{\"n\": ", "{\"n\":1}}", "[1, 2]", "\"text\"", " {\"a\" :1,\"a\": 2 } ", "a\\u"]
    {
        let mut said = call(0, "c0", "first", arguments);
        said.extend(end(StopReason::ToolCalls));
        let setup = w.setup([Play::Reply(said), Play::Reply(texts(&["sorry"]))]).await?;
        calling(&setup)?;
        let (tools, mut talk) = (tools()?, talk());
        let reply = ask(&setup, &tools, &talk, true).await?;
        let kept: Vec<_> = reply.calls().map(|call| call.arguments.clone()).collect();
        same!("the arguments", kept, [arguments]);
        talk.push(reply.into());
        talk.extend(tools.call_all(talk.open_calls()).await);
        let reply = ask(&setup, &tools, &talk, true).await?;
        same!("the reply after them", reply.text().as_deref(), Some("sorry"));
    }
    Ok(())
}

async fn go_back(w: World) -> Kept {
    let mut said = vec![Delta::Text("look".into())];
    for index in 0..5 {
        said.extend(call(index, &format!("c{index}"), "first", "{\"n\":1}"));
    }
    said.extend(end(StopReason::ToolCalls));
    let setup = w.setup([Play::Reply(said), Play::Reply(texts(&["done"]))]).await?;
    calling(&setup)?;
    let (tools, mut talk) = (tools()?, talk());
    let reply = ask(&setup, &tools, &talk, true).await?;
    talk.push(reply.into());
    let outcomes = [
        ToolOutcome::ok("outcome-a"),
        ToolOutcome::ok(json!({"outcome": "b"})),
        ToolOutcome::failed(ToolFailure::Errored, "outcome-c"),
        ToolOutcome::Denied { reason: Some("outcome-d".into()) },
        ToolOutcome::InDoubt,
    ];
    let mut messages: Vec<_> = talk
        .open_calls()
        .into_iter()
        .zip(outcomes)
        .map(|(call, outcome)| Message::Outcome { call: call.id, outcome })
        .collect();
    messages.reverse();
    talk.extend(messages);
    let (heard, reply) = {
        let request = Request::new(talk.sealed()?).tools(&tools);
        let mut stream = setup.model.stream(request, &CallCx::detached());
        let mut heard = Vec::new();
        while let Some(part) = stream.next().await {
            heard.push(part?);
        }
        (heard, stream.reply().await?)
    };
    same!("the text", (text_of(&heard), reply.text()), ("done".into(), Some("done".into())));
    let sent = setup.server.seen().last().map(|request| request.body.to_string());
    let sent = sent.unwrap_or_default();
    for outcome in ["outcome-a", "outcome-c", "outcome-d", "took effect"] {
        ensure!(sent.contains(outcome), "the outcome `{outcome}` is not sent: {sent}");
    }
    Ok(())
}

async fn choice(w: World) -> Kept {
    let (tools, talk) = (tools()?, talk());
    let specs: &[ToolSpec] = tools.specs();
    ensure!(specs.len() == 2, "the suite has two tools");
    let mut bodies = Vec::new();
    for choice in
        [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::Tool("second")]
    {
        let setup = w.setup([Play::Reply(texts(&["x"]))]).await?;
        calling(&setup)?;
        let request = Request::new(talk.sealed()?).tools(&tools).tool_choice(choice);
        match setup.model.complete(request, &CallCx::detached()).await {
            Ok(_) => bodies.extend(setup.server.seen().into_iter().map(|seen| seen.body)),
            Err(error) => {
                same!("the error", error.kind(), LlmErrorKind::Unsupported);
                same!("how many requests were sent", setup.server.seen().len(), 0);
            }
        }
    }
    for (at, body) in bodies.iter().enumerate() {
        ensure!(!bodies[..at].contains(body), "two choices are sent as the same: {body}");
    }
    Ok(())
}
