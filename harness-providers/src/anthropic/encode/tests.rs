//! Bodies as the reference of the Messages API describes them: <https://platform.claude.com/docs>, the
//! pages "Messages", "Tool use", "Prompt caching" and "Structured outputs", as of November 2026.

use super::*;
use harness::llm::{LlmErrorKind, Message, Options, ToolFailure, ToolSet, Transcript, tool, user};
use serde_json::json;

fn model() -> ModelId {
    ModelId::new("anthropic", "claude-x")
}

fn body_of(talk: &Transcript, change: impl FnOnce(Request<'_>) -> Request<'_>) -> Value {
    let request = change(Request::new(talk.sealed().unwrap()));
    body(&model(), 100, &request, false).unwrap()
}

fn messages_of(talk: &Transcript) -> Value {
    body_of(talk, |request| request)["messages"].clone()
}

fn refused(change: impl FnOnce(Request<'_>) -> Request<'_>) -> LlmError {
    let talk = Transcript::from_iter([user("hi")]);
    let request = change(Request::new(talk.sealed().unwrap()));
    body(&model(), 100, &request, false).unwrap_err()
}

#[test]
fn a_plain_request() {
    let talk = Transcript::from_iter([user("hi")]);
    assert_eq!(
        body_of(&talk, |request| request),
        json!({
            "model": "claude-x",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        })
    );
}

#[test]
fn every_setting_has_its_field() {
    let talk = Transcript::from_iter([user("hi")]);
    let tools = ToolSet::builder().with(tool("t", "Does", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let options = Options::new()
        .with("anthropic-messages", json!({"top_k": 5}))
        .with("openai-chat", json!({"logprobs": true}));
    let marks = [CacheMark::Tools, CacheMark::System, CacheMark::Entry(0)];
    let request = Request::new(talk.sealed().unwrap())
        .system("be brief")
        .tools(&tools)
        .tool_choice(ToolChoice::Tool("t"))
        .max_tokens(7)
        .temperature(0.5)
        .stop_sequences(&["END"])
        .effort(Effort::High)
        .schema("answer", &schema)
        .cache(&marks)
        .options(&options);
    let sent = body(&model(), 100, &request, false).unwrap();
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        sent,
        json!({
            "model": "claude-x",
            "max_tokens": 7,
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi", "cache_control": cached},
            ]}],
            "system": [{"type": "text", "text": "be brief", "cache_control": cached}],
            "tools": [{
                "name": "t",
                "description": "Does",
                "input_schema": tools.specs()[0].input_schema,
                "cache_control": cached,
            }],
            "tool_choice": {"type": "tool", "name": "t"},
            "temperature": 0.5,
            "stop_sequences": ["END"],
            "output_config": {
                "effort": "high",
                "format": {"type": "json_schema", "schema": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "additionalProperties": false,
                }},
            },
            "top_k": 5,
        })
    );
}

#[test]
fn choices_and_efforts_of_the_request_have_names_of_the_protocol() {
    let talk = Transcript::from_iter([user("hi")]);
    let tools = ToolSet::builder().with(tool("t", "", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let plain = Request::new(talk.sealed().unwrap()).tools(&tools);
    let choice = |choice| {
        body(&model(), 1, &plain.tool_choice(choice), false).unwrap()["tool_choice"].clone()
    };
    assert_eq!(choice(ToolChoice::Auto), Value::Null);
    assert_eq!(choice(ToolChoice::None), json!({"type": "none"}));
    assert_eq!(choice(ToolChoice::Required), json!({"type": "any"}));
    let effort = |effort| body(&model(), 1, &plain.effort(effort), false).unwrap();
    assert_eq!(effort(Effort::Minimal)["output_config"]["effort"], "low");
    assert_eq!(effort(Effort::Off)["thinking"], json!({"type": "disabled"}));
}

#[test]
fn what_the_protocol_cannot_express_is_refused() {
    assert_eq!(refused(|request| request.seed(1)).kind(), LlmErrorKind::Unsupported);
    let talk = Transcript::from_iter([user(Document::Inline {
        media_type: "text/html".into(),
        base64: "QQ==".into(),
        name: None,
    })]);
    let request = Request::new(talk.sealed().unwrap());
    let error = body(&model(), 1, &request, false).unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::Unsupported);
    let options = Options::new().with("anthropic-messages", json!({"model": "other"}));
    let talk = Transcript::from_iter([user("hi")]);
    let request = Request::new(talk.sealed().unwrap()).options(&options);
    let error = body(&model(), 1, &request, false).unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::InvalidRequest);
}

#[test]
fn an_id_that_another_provider_uses_again_is_of_one_call() {
    let turn = |ids: &[&str]| {
        let calls = ids.iter().map(|id| Block::Call {
            call: ToolCall::new(*id, "t", "{}"),
            outcome: Some(ToolOutcome::ok(*id)),
        });
        Message::Assistant(Turn::new(calls))
    };
    let talk = Transcript::from_iter([user("hi"), turn(&["a.b", "a_b", ""]), turn(&["a.b"])]);
    let messages = messages_of(&talk);
    let of = |at: usize, field: &str| -> Vec<String> {
        let blocks = messages[at]["content"].as_array().unwrap().iter();
        blocks.map(|block| block[field].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of(1, "id"), ["a_b", "a_b_2", "_"]);
    assert_eq!(of(2, "tool_use_id"), ["a_b", "a_b_2", "_"]);
    assert_eq!((of(3, "id"), of(4, "tool_use_id")), (vec!["a_b_3".into()], vec!["a_b_3".into()]));
}

#[test]
fn reasoning_that_nothing_follows_does_not_go_back() {
    let opaque = |data| Block::Opaque { protocol: PROTOCOL.into(), model: model(), data };
    let signed = || opaque(json!({"type": "thinking", "signature": "sig"}));
    let cut = Turn::new([Block::Reasoning("hm".into()), signed()]);
    let half = Turn::new([
        "so".into(),
        signed(),
        opaque(json!({"type": "redacted_thinking", "data": "enc"})),
    ]);
    let talk =
        Transcript::from_iter([user("hi"), cut.into(), user("and?"), half.into(), user("?")]);
    let messages = messages_of(&talk);
    let roles: Vec<_> = messages.as_array().unwrap().iter().map(|one| &one["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(messages[1]["content"], json!([{"type": "text", "text": "so"}]));
}

#[test]
fn a_call_is_not_required_of_a_model_that_thinks() {
    let talk = Transcript::from_iter([user("hi")]);
    let options =
        Options::new().with("anthropic-messages", json!({"thinking": {"type": "adaptive"}}));
    let tools = ToolSet::builder().with(tool("t", "T", async |_: Value| Ok("x"))).build().unwrap();
    let request = Request::new(talk.sealed().unwrap()).tools(&tools);
    let sent = |request: Request<'_>| body(&model(), 1, &request, false).map_err(|e| e.kind());
    let required = request.tool_choice(ToolChoice::Required);
    assert!(sent(required).is_ok());
    assert!(sent(request.options(&options)).is_ok());
    assert_eq!(sent(required.options(&options)), Err(LlmErrorKind::Unsupported));
}

#[test]
fn options_are_merged_into_what_is_sent() {
    let options =
        json!({"tools": [{"type": "web_search", "name": "web"}], "output_config": {"x": 1}});
    let options = Options::new().with("anthropic-messages", options);
    let talk = Transcript::from_iter([user("hi")]);
    let tools = ToolSet::builder().with(tool("t", "T", async |_: Value| Ok("x"))).build().unwrap();
    let request = Request::new(talk.sealed().unwrap()).tools(&tools).effort(Effort::Low);
    let body = body(&model(), 1, &request.options(&options), false).unwrap();
    assert_eq!(
        (&body["tools"][0]["name"], &body["tools"][1]["name"]),
        (&json!("t"), &json!("web"))
    );
    assert_eq!(body["output_config"], json!({"effort": "low", "x": 1}));
}

#[test]
fn images_and_documents_go_by_url_or_inline() {
    let parts: Vec<Part> = vec![
        Image::Url("https://e.org/a.png".into()).into(),
        Image::Inline { media_type: "image/png".into(), base64: "QQ==".into() }.into(),
        Document::Url("https://e.org/a.pdf".into()).into(),
        Document::Inline {
            media_type: "application/pdf".into(),
            base64: "QQ==".into(),
            name: Some("a.pdf".into()),
        }
        .into(),
        json!({"n": 1}).into(),
        " ".into(),
    ];
    let sent = messages_of(&Transcript::from_iter([user(parts)]));
    let inline = |media_type| json!({"type": "base64", "media_type": media_type, "data": "QQ=="});
    assert_eq!(
        sent[0]["content"],
        json!([
            {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}},
            {"type": "image", "source": inline("image/png")},
            {"type": "document", "source": {"type": "url", "url": "https://e.org/a.pdf"}},
            {"type": "document", "source": inline("application/pdf"), "title": "a.pdf"},
            {"type": "text", "text": "{\"n\":1}"},
        ])
    );
}

#[test]
fn outcomes_begin_the_message_of_the_user_that_follows() {
    let turn = Turn::new([
        "look".into(),
        ToolCall::new("a", "t", "{\"x\": 1}").into(),
        ToolCall::new("b.1", "t", "{broken").into(),
    ]);
    let failed = ToolOutcome::failed(ToolFailure::Errored, "no network");
    let talk = Transcript::from_iter([
        user("hi"),
        turn.into(),
        Message::Outcome { call: "b.1".into(), outcome: failed },
        Message::Outcome { call: "a".into(), outcome: ToolOutcome::ok("42") },
        user("and now?"),
    ]);
    let text = |text| json!([{"type": "text", "text": text}]);
    assert_eq!(
        messages_of(&talk),
        json!([
            {"role": "user", "content": text("hi")},
            {"role": "assistant", "content": [
                {"type": "text", "text": "look"},
                {"type": "tool_use", "id": "a", "name": "t", "input": {"x": 1}},
                {"type": "tool_use", "id": "b_1", "name": "t", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": text("42")},
                {
                    "type": "tool_result",
                    "tool_use_id": "b_1",
                    "content": text("no network"),
                    "is_error": true,
                },
                {"type": "text", "text": "and now?"},
            ]},
        ])
    );
}

#[test]
fn reasoning_goes_back_with_its_signature_to_the_same_model_only() {
    let opaque = |protocol: &str, of: &str, data| Block::Opaque {
        protocol: protocol.into(),
        model: ModelId::new("anthropic", of),
        data,
    };
    let signed = || json!({"type": "thinking", "signature": "sig"});
    let turn = Turn::new([
        Block::Reasoning("hm".into()),
        opaque(PROTOCOL, "claude-x", signed()),
        opaque(PROTOCOL, "claude-x", json!({"type": "redacted_thinking", "data": "enc"})),
        Block::Reasoning("of another model".into()),
        opaque(PROTOCOL, "claude-y", signed()),
        opaque("openai-responses", "claude-x", signed()),
        "done".into(),
        Block::Reasoning("unsigned".into()),
    ]);
    let talk = Transcript::from_iter([user("hi"), turn.into(), user("so?")]);
    assert_eq!(
        messages_of(&talk)[1]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "enc"},
            {"type": "text", "text": "done"},
        ])
    );
}
