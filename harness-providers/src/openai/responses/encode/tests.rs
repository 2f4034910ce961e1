//! Bodies as the reference describes them: <https://platform.openai.com/docs/api-reference/responses>,
//! the page "Create a model response", whose source is `openapi.yaml` of
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
    body(&model(), true, request, false).unwrap()
}

fn input_of(talk: &Transcript) -> Value {
    sent(&Request::new(talk.sealed().unwrap()))["input"].clone()
}

fn refused(request: &Request<'_>) -> LlmErrorKind {
    body(&model(), true, request, false).unwrap_err().kind()
}

fn talk() -> Transcript {
    Transcript::from_iter([user("hi")])
}

fn said(role: &str, text: &str) -> Value {
    match role {
        "user" => json!({"role": role, "content": [{"type": "input_text", "text": text}]}),
        _ => json!({"role": role, "content": text}),
    }
}

#[test]
fn a_plain_request_stores_nothing() {
    let talk = talk();
    let request = Request::new(talk.sealed().unwrap());
    let plain = json!({"model": "gpt-x", "store": false, "input": [said("user", "hi")]});
    let mut reasoning = plain.clone();
    reasoning["include"] = json!(["reasoning.encrypted_content"]);
    assert_eq!(sent(&request), reasoning);
    assert_eq!(body(&model(), false, &request, false).unwrap(), plain);
    assert_eq!(body(&model(), false, &request, true).unwrap()["stream"], true);
}

#[test]
fn every_setting_has_its_field() {
    let talk = talk();
    let tools = ToolSet::builder().with(tool("t", "Does", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let own = json!({
        "reasoning": {"summary": "auto"},
        "include": ["message.output_text.logprobs"],
        "text": {"verbosity": "low"},
    });
    let options =
        Options::new().with("openai-responses", own).with("openai-chat", json!({"logprobs": true}));
    let marks = [CacheMark::Tools, CacheMark::System, CacheMark::Entry(0)];
    let request = Request::new(talk.sealed().unwrap())
        .system("be brief")
        .tools(&tools)
        .tool_choice(ToolChoice::Tool("t"))
        .max_tokens(70)
        .temperature(0.5)
        .effort(Effort::High)
        .schema("answer", &schema)
        .cache(&marks)
        .options(&options);
    assert_eq!(
        sent(&request),
        json!({
            "model": "gpt-x",
            "store": false,
            "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
            "instructions": "be brief",
            "input": [said("user", "hi")],
            "tools": [{
                "type": "function", "name": "t", "description": "Does",
                "parameters": tools.specs()[0].input_schema, "strict": false,
            }],
            "tool_choice": {"type": "function", "name": "t"},
            "max_output_tokens": 70,
            "temperature": 0.5,
            "reasoning": {"effort": "high", "summary": "auto"},
            "text": {
                "verbosity": "low",
                "format": {
                    "type": "json_schema",
                    "name": "answer",
                    "strict": true,
                    "schema": {
                        "type": "object",
                        "properties": {"a": {"type": "string"}},
                        "required": ["a"],
                        "additionalProperties": false,
                    },
                },
            },
        })
    );
}

#[test]
fn choices_of_the_request_have_names_of_the_protocol() {
    let talk = talk();
    let tools = ToolSet::builder().with(tool("t", "", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let plain = Request::new(talk.sealed().unwrap()).tools(&tools);
    let choice = |choice| sent(&plain.tool_choice(choice))["tool_choice"].clone();
    assert_eq!(choice(ToolChoice::Auto), Value::Null);
    assert_eq!(choice(ToolChoice::None), "none");
    assert_eq!(choice(ToolChoice::Required), "required");
    assert_eq!(sent(&plain.effort(Effort::Off))["reasoning"], json!({"effort": "none"}));
}

#[test]
fn what_the_protocol_cannot_express_is_refused() {
    let talk = talk();
    let plain = Request::new(talk.sealed().unwrap());
    assert_eq!(refused(&plain.seed(1)), LlmErrorKind::Unsupported);
    assert_eq!(refused(&plain.stop_sequences(&["x"])), LlmErrorKind::Unsupported);
    for name in RESERVED {
        let options = Options::new().with("openai-responses", json!({*name: 1}));
        assert_eq!(refused(&plain.options(&options)), LlmErrorKind::InvalidRequest);
    }
}

#[test]
fn images_and_documents_go_by_url_or_inline() {
    let inline = |media_type: &str, name: Option<&str>| Document::Inline {
        media_type: media_type.into(),
        base64: "QQ==".into(),
        name: name.map(str::to_owned),
    };
    let parts: Vec<Part> = vec![
        Image::Url("https://e.org/a.png".into()).into(),
        Image::Inline { media_type: "image/png".into(), base64: "QQ==".into() }.into(),
        Document::Url("https://e.org/a.pdf".into()).into(),
        inline("application/pdf", None).into(),
        inline("text/csv", Some("a.csv")).into(),
        json!({"n": 1}).into(),
    ];
    let pdf = "data:application/pdf;base64,QQ==";
    let sent = json!([
        {"type": "input_image", "image_url": "https://e.org/a.png"},
        {"type": "input_image", "image_url": "data:image/png;base64,QQ=="},
        {"type": "input_file", "file_url": "https://e.org/a.pdf"},
        {"type": "input_file", "filename": "document.pdf", "file_data": pdf},
        {"type": "input_file", "filename": "a.csv", "file_data": "data:text/csv;base64,QQ=="},
        {"type": "input_text", "text": "{\"n\":1}"},
    ]);
    assert_eq!(input_of(&Transcript::from_iter([user(parts.clone())]))[0]["content"], sent);
    // So they do as the outcome of a tool.
    let talk = Transcript::from_iter([
        user("hi"),
        Turn::new([ToolCall::new("a", "t", "{}").into()]).into(),
        Message::Outcome { call: "a".into(), outcome: ToolOutcome::ok(parts) },
    ]);
    assert_eq!(input_of(&talk)[2]["output"], sent);
}

#[test]
fn outcomes_follow_their_calls_and_arguments_go_back_byte_for_byte() {
    let long = "x".repeat(65);
    let turn = Turn::new([
        "look".into(),
        ToolCall::new("a", "t", " {\"x\" : 1, \"x\":2}").into(),
        ToolCall::new(long.as_str(), "t", "{broken").into(),
    ]);
    let failed = ToolOutcome::failed(ToolFailure::Errored, "no network");
    let talk = Transcript::from_iter([
        user("hi"),
        turn.into(),
        Message::Outcome { call: long.as_str().into(), outcome: failed },
        Message::Outcome { call: "a".into(), outcome: ToolOutcome::ok("42") },
    ]);
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "t", "arguments": arguments});
    let output = |id: &str, output: &str| json!({"type": "function_call_output", "call_id": id, "output": output});
    assert_eq!(
        input_of(&talk),
        json!([
            said("user", "hi"),
            said("assistant", "look"),
            call("a", " {\"x\" : 1, \"x\":2}"),
            call("harness_call_0", "{broken"),
            output("a", "42"),
            output("harness_call_0", "error: no network"),
        ])
    );
}

#[test]
fn reasoning_goes_back_in_order_to_the_same_model_only() {
    let item = |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "enc"});
    let opaque = |protocol: &str, of: &str, data| Block::Opaque {
        protocol: protocol.into(),
        model: ModelId::new("openai", of),
        data,
    };
    let own = |data| opaque(PROTOCOL, "gpt-x", data);
    let turn = Turn::new([
        Block::Reasoning("hm".into()),
        own(item("rs_1")),
        "I look".into(),
        own(json!({"type": "message", "phase": "commentary"})),
        own(item("rs_2")),
        opaque(PROTOCOL, "gpt-y", item("rs_3")),
        opaque("anthropic-messages", "gpt-x", item("rs_4")),
        ToolCall::new("a", "t", "{}").into(),
        own(json!({"type": "web_search_call", "id": "ws_1"})),
        "so".into(),
        // It led to nothing.
        own(item("rs_5")),
    ]);
    let talk = Transcript::from_iter([
        user("hi"),
        turn.into(),
        Message::Outcome { call: "a".into(), outcome: ToolOutcome::ok("1") },
    ]);
    assert_eq!(
        input_of(&talk),
        json!([
            said("user", "hi"),
            item("rs_1"),
            {"role": "assistant", "content": "I look", "phase": "commentary"},
            item("rs_2"),
            {"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"},
            {"type": "web_search_call", "id": "ws_1"},
            said("assistant", "so"),
            {"type": "function_call_output", "call_id": "a", "output": "1"},
        ])
    );
}
