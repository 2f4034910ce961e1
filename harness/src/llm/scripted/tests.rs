use super::*;
use crate::llm::{Delta, Effort, Tally, ToolChoice, ToolOutcome, ToolSet, Transcript, tool, user};
use serde_json::json;

async fn ask(model: &Scripted, talk: &Transcript) -> Result<Reply, LlmError> {
    let request = Request::new(talk.sealed().unwrap());
    model.complete(request, &CallCx::detached()).await
}

fn talk() -> Transcript {
    Transcript::from_iter([user("hi")])
}

#[tokio::test]
async fn lines_are_used_in_order() {
    let model =
        Scripted::new([say("one"), fail(LlmError::new(LlmErrorKind::Overloaded)), say("three")]);
    assert_eq!(ask(&model, &talk()).await.unwrap().text().unwrap(), "one");
    let error = ask(&model, &talk()).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::Overloaded);
    assert_eq!(ask(&model, &talk()).await.unwrap().text().unwrap(), "three");
}

#[tokio::test]
async fn a_script_fails_at_its_end_until_a_line_is_pushed() {
    let model = Scripted::new(["one"]);
    ask(&model, &talk()).await.unwrap();
    let error = ask(&model, &talk()).await.unwrap_err();
    assert!(!error.is_retryable());
    insta::assert_snapshot!(error, @"model `scripted/script` cannot be reached: the script has no line for request 2 (add one to `Scripted::new` or with `Scripted::push`)");
    model.push("three");
    assert_eq!(ask(&model, &talk()).await.unwrap().text().unwrap(), "three");
}

#[tokio::test]
async fn call_ids_are_the_same_in_every_run() {
    let script = || {
        let line = say("both").and_call("a", json!({})).and_call("b", json!({"n": 1}));
        Scripted::new([line])
    };
    let reply = ask(&script(), &talk()).await.unwrap();
    assert_eq!(reply, ask(&script(), &talk()).await.unwrap());
    assert_eq!(reply.stop, StopReason::ToolCalls);
    let calls: Vec<_> = reply.calls().cloned().collect();
    assert_eq!(
        calls,
        [ToolCall::new("call-1-1", "a", "{}"), ToolCall::new("call-1-2", "b", r#"{"n":1}"#),]
    );
}

#[tokio::test]
async fn a_loop_of_model_and_tools_gives_every_call_its_own_id() {
    let model = Scripted::new([call("t", json!({})), call("t", json!({})), say("done")]);
    let tools =
        ToolSet::builder().with(tool("t", "", |_: Value| async { Ok("ok") })).build().unwrap();
    let mut talk = talk();
    loop {
        let reply = ask(&model, &talk).await.unwrap();
        talk.push(reply.into());
        if !talk.has_open_calls() {
            break;
        }
        talk.extend(tools.call_all(talk.open_calls()).await);
    }
    assert_eq!(talk.len(), 4);
    assert_eq!(talk.last_text().as_deref(), Some("done"));
    let again = talk.record(&"call-2-0".into(), ToolOutcome::ok("ok"));
    assert!(again.is_ok());
}

#[tokio::test]
async fn requests_are_recorded() {
    let model = Scripted::new(["one"]);
    let tools =
        ToolSet::builder().with(tool("t", "", |_: Value| async { Ok(()) })).build().unwrap();
    let talk = talk();
    let request = Request::new(talk.sealed().unwrap())
        .system("be brief")
        .tools(&tools)
        .tool_choice(ToolChoice::Tool("t"))
        .max_tokens(7)
        .temperature(0.5)
        .stop_sequences(&["END"])
        .seed(3)
        .effort(Effort::Low);
    let cx = CallCx::detached().with_id("first");
    model.complete(request, &cx).await.unwrap();
    ask(&model, &talk).await.unwrap_err();

    let seen = model.clone().seen();
    let first = Seen {
        call: Some("first".into()),
        transcript: talk.clone(),
        tools: tools.specs().to_vec(),
        system: Some("be brief".into()),
        max_tokens: Some(7),
        temperature: Some(0.5),
        tool_choice: ToolChoice::Tool("t".to_owned()),
        schema: None,
        stop_sequences: vec!["END".to_owned()],
        seed: Some(3),
        effort: Some(Effort::Low),
        cache: vec![],
        options: None,
        streamed: false,
    };
    assert_eq!(seen[0], first);
    assert_eq!(seen[1].transcript, talk);
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn the_meter_is_charged_once_per_exchange_including_failures() {
    let tally = Arc::new(Tally::default());
    let cx = CallCx::detached().with_meter(tally.clone());
    let model = Scripted::new([
        say("one").usage(Usage::tokens(10, 2)).cost_micros(5),
        fail(LlmError::new(LlmErrorKind::Stream)).usage(Usage::tokens(10, 1)),
    ]);
    let talk = talk();
    let request = Request::new(talk.sealed().unwrap());
    let reply = model.complete(request, &cx).await.unwrap();
    assert_eq!(reply.usage, Usage::tokens(10, 2));
    model.complete(request, &cx).await.unwrap_err();
    // The script is exhausted, so there is no exchange.
    model.complete(request, &cx).await.unwrap_err();
    assert_eq!(tally.exchanges(), 2);
    assert_eq!(tally.spend().usage, Usage::tokens(20, 3));
    assert_eq!(tally.spend().cost_micros, Some(5));
}

#[tokio::test]
async fn lines_may_be_computed() {
    let model = Scripted::from_fn(|request| match request.transcript.len() {
        1 => say("first"),
        _ => fail(LlmError::new(LlmErrorKind::ContextLength)),
    });
    let mut talk = talk();
    talk.push(ask(&model, &talk).await.unwrap().into());
    assert!(ask(&model, &talk).await.unwrap_err().is_context_length());
}

#[tokio::test]
async fn replies_and_turns_are_returned_unchanged() {
    let turn = Turn::new([ToolCall::new("mine", "t", "{broken").into()]);
    let reply = Reply::new(turn.clone(), StopReason::Refusal, ModelId::new("other", "model"))
        .with_usage(Usage::tokens(1, 1));
    let model = Scripted::new([Line::from(reply.clone()), turn.clone().into()])
        .with_id(ModelId::new("p", "m"));
    assert_eq!(ask(&model, &talk()).await.unwrap(), reply);
    let plain = ask(&model, &talk()).await.unwrap();
    assert_eq!(plain.turn, turn);
    assert_eq!(plain.model, ModelId::new("p", "m"));
    assert_eq!(model.id(), plain.model);
}

#[tokio::test]
async fn a_call_that_is_listened_to_is_streamed() {
    let model = Scripted::new([say("one two").and_call("t", json!({"n": 1}))]);
    let talk = talk();
    let request = Request::new(talk.sealed().unwrap());
    let mut stream = model.stream(request, &CallCx::detached());
    let mut deltas = Vec::new();
    while let Some(delta) = stream.next().await {
        deltas.push(delta.unwrap());
    }
    assert_eq!(deltas[..2], [Delta::Text("one ".into()), Delta::Text("two".into())]);
    let fragments = deltas.iter().filter(|it| matches!(it, Delta::CallArguments { .. })).count();
    assert_eq!(fragments, 2);
    assert!(model.seen()[0].streamed);
    let reply = stream.reply().await.unwrap();
    assert_eq!(reply.calls().next().unwrap().arguments, r#"{"n":1}"#);
}
