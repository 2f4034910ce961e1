//! Bodies as the reference describes them: <https://platform.openai.com/docs/api-reference/chat>, the
//! page "Create chat completion", whose source is `openapi.yaml` of
//! <https://github.com/openai/openai-openapi>, as of 21 August 2026.

use super::*;
use harness::llm::{
    CacheMark, Document, Effort, Image, LlmErrorKind, Message, Options, Part, ToolCall,
    ToolFailure, ToolOutcome, ToolSet, Transcript, tool, user,
};

fn model() -> ModelId {
    ModelId::new("openai", "gpt-x")
}

fn sent(request: &Request<'_>) -> Value {
    body(&model(), Dialect::OpenAi, request, false).unwrap()
}

fn messages_of(talk: &Transcript) -> Value {
    sent(&Request::new(talk.sealed().unwrap()))["messages"].clone()
}

fn refused(dialect: Dialect, request: &Request<'_>) -> LlmErrorKind {
    body(&model(), dialect, request, false).unwrap_err().kind()
}

fn talk() -> Transcript {
    Transcript::from_iter([user("hi")])
}

#[test]
fn a_plain_request() {
    let talk = talk();
    let plain = json!({"model": "gpt-x", "messages": [{"role": "user", "content": "hi"}]});
    let request = Request::new(talk.sealed().unwrap());
    assert_eq!(sent(&request), plain);
    let streamed = body(&model(), Dialect::OpenAi, &request, true).unwrap();
    assert_eq!(streamed["stream"], true);
    assert_eq!(streamed["stream_options"], json!({"include_usage": true}));
}

#[test]
fn every_setting_has_its_field() {
    let talk = talk();
    let tools = ToolSet::builder().with(tool("t", "Does", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let options = Options::new()
        .with("openai-chat", json!({"top_p": 0.5, "stream_options_": {}}))
        .with("anthropic-messages", json!({"top_k": 5}));
    let marks = [CacheMark::Tools, CacheMark::System, CacheMark::Entry(0)];
    let request = Request::new(talk.sealed().unwrap())
        .system("be brief")
        .tools(&tools)
        .tool_choice(ToolChoice::Tool("t"))
        .max_tokens(7)
        .temperature(0.5)
        .seed(9)
        .stop_sequences(&["END"])
        .effort(Effort::High)
        .schema("answer", &schema)
        .cache(&marks)
        .options(&options);
    let expected = json!({
        "model": "gpt-x",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "t", "description": "Does", "parameters": tools.specs()[0].input_schema,
        }}],
        "tool_choice": {"type": "function", "function": {"name": "t"}},
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "seed": 9,
        "stop": ["END"],
        "reasoning_effort": "high",
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "answer",
            "strict": true,
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": false,
            },
        }},
        "top_p": 0.5,
        "stream_options_": {},
    });
    assert_eq!(sent(&request), expected);
    let other = body(&model(), Dialect::Compatible, &request, false).unwrap();
    assert_eq!((&other["max_tokens"], &other["max_completion_tokens"]), (&json!(7), &Value::Null));
}

#[test]
fn choices_and_efforts_of_the_request_have_names_of_the_protocol() {
    let talk = talk();
    let tools = ToolSet::builder().with(tool("t", "", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let plain = Request::new(talk.sealed().unwrap()).tools(&tools);
    let choice = |choice| sent(&plain.tool_choice(choice))["tool_choice"].clone();
    assert_eq!(choice(ToolChoice::Auto), Value::Null);
    assert_eq!(choice(ToolChoice::None), "none");
    assert_eq!(choice(ToolChoice::Required), "required");
    let effort = |effort| sent(&plain.effort(effort))["reasoning_effort"].clone();
    assert_eq!(effort(Effort::Minimal), "minimal");
    assert_eq!(effort(Effort::Off), "none");
    // A schema that strict schemas cannot say guides the model as it is.
    let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let format = sent(&plain.schema("map", &open))["response_format"]["json_schema"].clone();
    assert_eq!(format, json!({"name": "map", "strict": false, "schema": open}));
}

#[test]
fn what_the_protocol_cannot_express_is_refused() {
    let of = |part: Part| Transcript::from_iter([user(vec![part])]);
    let inline = |media_type: &str| Document::Inline {
        media_type: media_type.into(),
        base64: "QQ==".into(),
        name: None,
    };
    for document in [Document::Url("https://e.org/a.pdf".into()), inline("text/html")] {
        let talk = of(document.into());
        let request = Request::new(talk.sealed().unwrap());
        assert_eq!(refused(Dialect::OpenAi, &request), LlmErrorKind::Unsupported);
    }
    let image = Image::Url("https://e.org/a.png".into());
    let talk = Transcript::from_iter([
        user("hi"),
        Turn::new([ToolCall::new("a", "t", "{}").into()]).into(),
        Message::Outcome { call: "a".into(), outcome: ToolOutcome::ok(vec![Part::from(image)]) },
    ]);
    let request = Request::new(talk.sealed().unwrap());
    assert_eq!(refused(Dialect::OpenAi, &request), LlmErrorKind::Unsupported);

    let talk = self::talk();
    let stops = ["1", "2", "3", "4", "5"];
    let many = Request::new(talk.sealed().unwrap()).stop_sequences(&stops);
    assert_eq!(refused(Dialect::OpenAi, &many), LlmErrorKind::Unsupported);
    assert!(body(&model(), Dialect::Compatible, &many, false).is_ok());

    for name in RESERVED {
        let options = Options::new().with("openai-chat", json!({*name: 1}));
        let request = Request::new(talk.sealed().unwrap()).options(&options);
        assert_eq!(refused(Dialect::OpenAi, &request), LlmErrorKind::InvalidRequest);
    }
}

#[test]
fn images_go_by_url_or_inline_and_documents_inline() {
    let parts: Vec<Part> = vec![
        "look".into(),
        Image::Url("https://e.org/a.png".into()).into(),
        Image::Inline { media_type: "image/png".into(), base64: "QQ==".into() }.into(),
        Document::Inline {
            media_type: "application/pdf".into(),
            base64: "QQ==".into(),
            name: Some("a.pdf".into()),
        }
        .into(),
        json!({"n": 1}).into(),
    ];
    let file = json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="});
    assert_eq!(
        messages_of(&Transcript::from_iter([user(parts)]))[0]["content"],
        json!([
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
            {"type": "file", "file": file},
            {"type": "text", "text": "{\"n\":1}"},
        ])
    );
}

#[test]
fn outcomes_follow_their_calls_and_arguments_go_back_byte_for_byte() {
    let long = "x".repeat(41);
    let turn = Turn::new([
        Block::Reasoning("hm".into()),
        "look".into(),
        ToolCall::new("a", "t", " {\"x\" : 1, \"x\":2}").into(),
        ToolCall::new(long.as_str(), "t", "{broken").into(),
        " there".into(),
    ]);
    let failed = ToolOutcome::failed(ToolFailure::Errored, "no network");
    let talk = Transcript::from_iter([
        user("hi"),
        turn.into(),
        Message::Outcome { call: long.as_str().into(), outcome: failed },
        Message::Outcome { call: "a".into(), outcome: ToolOutcome::ok("42") },
        user("and now?"),
        Turn::new([Block::Reasoning("nothing".into())]).into(),
        user("well?"),
    ]);
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}});
    assert_eq!(
        messages_of(&talk),
        json!([
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "look there",
                "tool_calls": [
                    call("a", " {\"x\" : 1, \"x\":2}"),
                    call("harness_call_0", "{broken"),
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "42"},
            {"role": "tool", "tool_call_id": "harness_call_0", "content": "error: no network"},
            {"role": "user", "content": "and now?"},
            {"role": "user", "content": "well?"},
        ])
    );
    let silent = Turn::new([ToolCall::new("a", "t", "{}").into()]);
    let outcome = Message::Outcome { call: "a".into(), outcome: ToolOutcome::ok(()) };
    let sent = messages_of(&Transcript::from_iter([user("hi"), silent.into(), outcome]));
    assert_eq!(sent[1]["content"], Value::Null);
    assert!(sent[2]["content"].is_string());
}
