//! Bodies as `docs/api.md`, `docs/capabilities/thinking.mdx` and `api/types.go` of
//! github.com/ollama/ollama describe them, as of 21 August 2026.

use super::*;
use harness::llm::{
    CacheMark, Document, LlmErrorKind, Message, Options, ToolOutcome, ToolSet, Transcript, tool,
    user,
};

fn model() -> ModelId {
    ModelId::new("ollama", "qwen3")
}

fn body_of<'a>(talk: &'a Transcript, change: impl FnOnce(Request<'a>) -> Request<'a>) -> Value {
    body(&model(), &change(Request::new(talk.sealed().unwrap())), false).unwrap()
}

fn kind_of<'a>(
    talk: &'a Transcript,
    change: impl FnOnce(Request<'a>) -> Request<'a>,
) -> Option<LlmErrorKind> {
    let request = change(Request::new(talk.sealed().unwrap()));
    body(&model(), &request, false).err().map(|error| error.kind())
}

#[test]
fn a_plain_request_leaves_nothing_out_and_says_whether_it_streams() {
    let talk = Transcript::from_iter([user("hi")]);
    let mut expected = json!({
        "model": "qwen3",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": false,
        "truncate": false,
        "shift": false,
    });
    assert_eq!(body_of(&talk, |request| request), expected);
    expected["stream"] = json!(true);
    let request = Request::new(talk.sealed().unwrap());
    assert_eq!(body(&model(), &request, true).unwrap(), expected);
}

#[test]
fn every_setting_has_its_field() {
    let talk = Transcript::from_iter([user("hi")]);
    let tools = ToolSet::builder().with(tool("t", "Does", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let schema = json!({"type": "object"});
    let options = Options::new()
        .with(PROTOCOL, json!({"keep_alive": "10m", "truncate": true, "options": {"num_ctx": 9}}))
        .with("openai-chat", json!({"logprobs": true}));
    let marks = [CacheMark::System];
    let sent = body_of(&talk, |request| {
        request
            .system("be brief")
            .tools(&tools)
            .max_tokens(7)
            .temperature(0.5)
            .stop_sequences(&["END"])
            .seed(11)
            .effort(Effort::High)
            .schema("answer", &schema)
            .cache(&marks)
            .options(&options)
    });
    assert_eq!(
        sent,
        json!({
            "model": "qwen3",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hi"},
            ],
            "stream": false,
            "truncate": true,
            "shift": false,
            "tools": [{"type": "function", "function": {
                "name": "t",
                "description": "Does",
                "parameters": tools.specs()[0].input_schema,
            }}],
            "format": {"type": "object"},
            "think": "high",
            "options": {
                "num_predict": 7, "temperature": 0.5, "seed": 11, "stop": ["END"], "num_ctx": 9,
            },
            "keep_alive": "10m",
        })
    );
    let none = body_of(&talk, |request| request.tools(&tools).tool_choice(ToolChoice::None));
    assert!(none.get("tools").is_none());
    let off = body_of(&talk, |request| request.effort(Effort::Off));
    assert_eq!(off["think"], false);
}

#[test]
fn what_the_protocol_cannot_express_is_refused() {
    let talk = Transcript::from_iter([user("hi")]);
    let tools = ToolSet::builder().with(tool("t", "", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let unsupported = Some(LlmErrorKind::Unsupported);
    for choice in [ToolChoice::Required, ToolChoice::Tool("t")] {
        assert_eq!(kind_of(&talk, |r| r.tools(&tools).tool_choice(choice)), unsupported);
    }
    assert_eq!(kind_of(&talk, |request| request.seed(u64::MAX)), unsupported);
    for part in [
        Part::from(Image::Url("https://e.org/a.png".into())),
        Document::Url("https://e.org/a.pdf".into()).into(),
    ] {
        let talk = Transcript::from_iter([user(vec![part])]);
        assert_eq!(kind_of(&talk, |request| request), unsupported);
    }
    for name in RESERVED {
        let options = Options::new().with(PROTOCOL, json!({*name: 1}));
        let kind = kind_of(&talk, |request| request.options(&options));
        assert_eq!(kind, Some(LlmErrorKind::InvalidRequest));
    }
}

#[test]
fn outcomes_follow_their_turn_each_in_a_message() {
    let turn = Turn::new([
        "look".into(),
        ToolCall::new("call-1", "t", "{\"x\": 1}").into(),
        ToolCall::new("toolu_2", "u", "{broken").into(),
    ]);
    let chart = Image::Inline { media_type: "image/png".into(), base64: "QQ==".into() };
    let seen = Content::new(["seen".into(), json!({"n": 2}).into(), chart.into()]);
    let talk = Transcript::from_iter([
        user("hi"),
        turn.into(),
        Message::Outcome { call: "toolu_2".into(), outcome: ToolOutcome::Ok(seen) },
        Message::Outcome { call: "call-1".into(), outcome: ToolOutcome::ok("42") },
    ]);
    let call = |id: &str, index: u64, name: &str, arguments: Value| json!({"id": id, "function": {"index": index, "name": name, "arguments": arguments}});
    assert_eq!(
        body_of(&talk, |request| request)["messages"],
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "look", "tool_calls": [
                call("call-1", 0, "t", json!({"x": 1})),
                call("toolu_2", 1, "u", json!({})),
            ]},
            {"role": "tool", "content": "42", "tool_name": "t", "tool_call_id": "call-1"},
            {
                "role": "tool", "content": "seen\n{\"n\":2}", "images": ["QQ=="],
                "tool_name": "u", "tool_call_id": "toolu_2",
            },
        ])
    );
}

#[test]
fn thoughts_go_back_to_the_same_model_only() {
    let mark = |protocol: &str, of: &str| Block::Opaque {
        protocol: protocol.into(),
        model: ModelId::new("ollama", of),
        data: json!({"type": "thinking"}),
    };
    let turn = Turn::new([
        Block::Reasoning("hm".into()),
        mark(PROTOCOL, "qwen3"),
        Block::Reasoning("of another model".into()),
        mark(PROTOCOL, "gpt-oss"),
        Block::Reasoning("of another protocol".into()),
        mark("anthropic-messages", "qwen3"),
        "done".into(),
        Block::Reasoning("without a mark".into()),
    ]);
    let expected = json!({"role": "assistant", "content": "done", "thinking": "hm"});
    assert_eq!(assistant(&model(), &turn), expected);
}
