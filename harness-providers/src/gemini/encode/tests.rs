//! Bodies as the reference describes them: <https://ai.google.dev/api/generate-content>, the pages
//! "Function calling", "Thinking", "Thought signatures" and "Structured outputs" of
//! <https://ai.google.dev/gemini-api/docs>, and `types.py` of github.com/googleapis/python-genai, as of
//! August 2026.

use super::*;
use harness::llm::{CacheMark, Message, Options, ToolFailure, ToolSet, Transcript, tool, user};

fn model() -> ModelId {
    ModelId::new("gemini", "gemini-2.5-flash")
}

fn later() -> ModelId {
    ModelId::new("gemini", "gemini-3-pro-preview")
}

fn body_of<'a>(talk: &'a Transcript, change: impl FnOnce(Request<'a>) -> Request<'a>) -> Value {
    body(&model(), &change(Request::new(talk.sealed().unwrap()))).unwrap()
}

fn contents_of(model: &ModelId, talk: &Transcript) -> Value {
    body(model, &Request::new(talk.sealed().unwrap())).unwrap()["contents"].clone()
}

fn kind_of<'a>(
    model: &ModelId,
    talk: &'a Transcript,
    change: impl FnOnce(Request<'a>) -> Request<'a>,
) -> Option<LlmErrorKind> {
    let request = change(Request::new(talk.sealed().unwrap()));
    body(model, &request).err().map(|error| error.kind())
}

#[test]
fn the_path_has_the_model_and_no_key() {
    let of = |name: &str, streams| path(&ModelId::new("gemini", name), streams);
    assert_eq!(of("m-1.5", false).unwrap(), "/v1beta/models/m-1.5:generateContent");
    assert_eq!(of("m", true).unwrap(), "/v1beta/models/m:streamGenerateContent?alt=sse");
    assert_eq!(of("tunedModels/a", false).unwrap(), "/v1beta/tunedModels/a:generateContent");
    for bad in ["", "a?key=b", "a#b", "../a", "a b", "a%2f"] {
        assert_eq!(of(bad, false).unwrap_err().kind(), LlmErrorKind::InvalidRequest, "{bad}");
    }
}

#[test]
fn a_plain_request() {
    let talk = Transcript::from_iter([user("hi")]);
    assert_eq!(
        body_of(&talk, |request| request),
        json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
    );
}

#[test]
fn every_setting_has_its_field() {
    let talk = Transcript::from_iter([user("hi")]);
    let tools = ToolSet::builder().with(tool("t", "Does", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let schema = json!({"type": "object", "properties": {"a": {"const": "x"}}});
    let options = Options::new()
        .with(
            PROTOCOL,
            json!({
                "safetySettings": [{"category": "C"}],
                "generationConfig": {"topK": 5},
                "tools": [{"googleSearch": {}}],
            }),
        )
        .with("openai-chat", json!({"logprobs": true}));
    let marks = [CacheMark::Tools, CacheMark::System, CacheMark::Entry(0)];
    let sent = body_of(&talk, |request| {
        request
            .system("be brief")
            .tools(&tools)
            .tool_choice(ToolChoice::Tool("t"))
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
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "tools": [
                {"functionDeclarations": [{
                    "name": "t",
                    "description": "Does",
                    "parametersJsonSchema": of_tool(&tools.specs()[0].input_schema),
                }]},
                {"googleSearch": {}},
            ],
            "toolConfig": {"functionCallingConfig": {
                "mode": "ANY", "allowedFunctionNames": ["t"],
            }},
            "generationConfig": {
                "maxOutputTokens": 7,
                "temperature": 0.5,
                "stopSequences": ["END"],
                "seed": 11,
                "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object", "properties": {"a": {"enum": ["x"]}}},
                "thinkingConfig": {"thinkingBudget": 24_576, "includeThoughts": true},
                "topK": 5,
            },
            "safetySettings": [{"category": "C"}],
        })
    );
}

#[test]
fn choices_and_efforts_of_the_request_have_names_of_the_protocol() {
    let talk = Transcript::from_iter([user("hi")]);
    let tools = ToolSet::builder().with(tool("t", "", |_: Value| async { Ok(()) })).build();
    let tools = tools.unwrap();
    let mode = |choice| {
        let sent = body_of(&talk, |request| request.tools(&tools).tool_choice(choice));
        sent["toolConfig"]["functionCallingConfig"].clone()
    };
    assert_eq!(mode(ToolChoice::Auto), Value::Null);
    assert_eq!(mode(ToolChoice::None), json!({"mode": "NONE"}));
    assert_eq!(mode(ToolChoice::Required), json!({"mode": "ANY"}));
    let of = |model: ModelId, effort| thinking(&model, effort).unwrap();
    assert_eq!(of(model(), Effort::Off), json!({"thinkingBudget": 0}));
    assert_eq!(of(model(), Effort::Minimal)["thinkingBudget"], 1_024);
    assert_eq!(of(model(), Effort::Medium)["thinkingBudget"], 8_192);
    assert_eq!(
        of(later(), Effort::Minimal),
        json!({"thinkingLevel": "minimal", "includeThoughts": true})
    );
    assert_eq!(of(later(), Effort::High)["thinkingLevel"], "high");
}

#[test]
fn what_the_protocol_cannot_express_is_refused() {
    let talk = Transcript::from_iter([user("hi")]);
    let unsupported = Some(LlmErrorKind::Unsupported);
    assert_eq!(kind_of(&model(), &talk, |request| request.seed(1 << 31)), unsupported);
    let six = ["a", "b", "c", "d", "e", "f"];
    assert_eq!(kind_of(&model(), &talk, |request| request.stop_sequences(&six)), unsupported);
    assert_eq!(kind_of(&later(), &talk, |request| request.effort(Effort::Off)), unsupported);
    let schema = json!({"type": "string", "pattern": "^a"});
    assert_eq!(kind_of(&model(), &talk, |request| request.schema("s", &schema)), unsupported);
    let options = Options::new().with(PROTOCOL, json!({"contents": []}));
    let invalid = Some(LlmErrorKind::InvalidRequest);
    assert_eq!(kind_of(&model(), &talk, |request| request.options(&options)), invalid);
}

#[test]
fn images_and_documents_go_by_uri_or_inline() {
    let inlined = |media_type: &str| Document::Inline {
        media_type: media_type.into(),
        base64: "QQ==".into(),
        name: None,
    };
    let parts: Vec<Part> = vec![
        Image::Url("https://e.org/a.PNG?x=1".into()).into(),
        Image::Inline { media_type: "image/webp".into(), base64: "QQ==".into() }.into(),
        Document::Url("https://e.org/files/abc".into()).into(),
        inlined("application/pdf").into(),
        json!({"n": 1}).into(),
        "".into(),
    ];
    let data = |media_type| json!({"inlineData": {"mimeType": media_type, "data": "QQ=="}});
    assert_eq!(
        contents_of(&model(), &Transcript::from_iter([user(parts)]))[0]["parts"],
        json!([
            {"fileData": {"fileUri": "https://e.org/a.PNG?x=1", "mimeType": "image/png"}},
            data("image/webp"),
            {"fileData": {"fileUri": "https://e.org/files/abc"}},
            data("application/pdf"),
            {"text": "{\"n\":1}"},
        ])
    );
}

#[test]
fn outcomes_follow_their_turn_in_the_order_of_the_calls() {
    let turn = Turn::new([
        "look".into(),
        ToolCall::new("call-1", "t", "{\"x\": 1}").into(),
        ToolCall::new("toolu_2", "u", "{broken").into(),
        ToolCall::new("call-3", "t", "").into(),
    ]);
    let failed = ToolOutcome::failed(ToolFailure::Errored, "no network");
    let chart = Image::Inline { media_type: "image/png".into(), base64: "QQ==".into() };
    let seen = Content::new(["seen".into(), json!({"n": 2}).into(), chart.into()]);
    let talk = Transcript::from_iter([
        user("hi"),
        turn.into(),
        Message::Outcome { call: "call-3".into(), outcome: ToolOutcome::Ok(seen) },
        Message::Outcome { call: "toolu_2".into(), outcome: failed },
        Message::Outcome { call: "call-1".into(), outcome: ToolOutcome::ok(json!({"n": 1})) },
        user("and now?"),
    ]);
    assert_eq!(
        contents_of(&model(), &talk),
        json!([
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [
                {"text": "look"},
                {"functionCall": {"id": "call-1", "name": "t", "args": {"x": 1}}},
                {"functionCall": {"id": "toolu_2", "name": "u", "args": {}}},
                {"functionCall": {"id": "call-3", "name": "t", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {
                    "id": "call-1", "name": "t", "response": {"output": {"n": 1}},
                }},
                {"functionResponse": {
                    "id": "toolu_2", "name": "u", "response": {"error": "no network"},
                }},
                {"functionResponse": {
                    "id": "call-3", "name": "t", "response": {"output": ["seen", {"n": 2}]},
                    "parts": [{"inlineData": {"mimeType": "image/png", "data": "QQ=="}}],
                }},
            ]},
            {"role": "user", "parts": [{"text": "and now?"}]},
        ])
    );
    let by_url = ToolOutcome::ok(Image::Url("https://e.org/a.png".into()));
    let talk = Transcript::from_iter([
        Turn::new([ToolCall::new("c", "t", "{}").into()]).into(),
        Message::Outcome { call: "c".into(), outcome: by_url },
    ]);
    let error = body(&model(), &Request::new(talk.sealed().unwrap())).unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::Unsupported);
}

fn opaque(protocol: &str, of: &str, data: Value) -> Block {
    Block::Opaque { protocol: protocol.into(), model: ModelId::new("gemini", of), data }
}

fn signed(of: &str, bytes: usize) -> Block {
    let data = json!({"thoughtSignature": "sig", "of": of, "bytes": bytes});
    opaque(PROTOCOL, "gemini-2.5-flash", data)
}

#[test]
fn signatures_go_back_on_the_parts_that_they_came_on() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let turn = Turn::new([
        Block::Reasoning("hm".into()),
        signed("thought", 0),
        "grüß dich".into(),
        signed("text", "dich".len()),
        "alone".into(),
        signed("text", 0),
        opaque(PROTOCOL, "gemini-2.5-flash", json!({"part": code})),
        ToolCall::new("a", "t", "{}").into(),
        signed("call", 0),
        ToolCall::new("b", "t", "{}").into(),
    ]);
    let call = |id: &str| json!({"id": id, "name": "t", "args": {}});
    assert_eq!(
        json!(blocks(&model(), &turn)),
        json!([
            {"text": "hm", "thought": true, "thoughtSignature": "sig"},
            {"text": "grüß "},
            {"text": "dich", "thoughtSignature": "sig"},
            {"text": "alone"},
            {"text": "", "thoughtSignature": "sig"},
            code,
            {"functionCall": call("a"), "thoughtSignature": "sig"},
            {"functionCall": call("b")},
        ])
    );
    let whole = Turn::new(["all".into(), signed("text", 3)]);
    let sent = json!([{"text": "all", "thoughtSignature": "sig"}]);
    assert_eq!(json!(blocks(&model(), &whole)), sent);
}

#[test]
fn signatures_of_other_models_stay_and_their_calls_are_marked_as_unsigned() {
    let turn = Turn::new([
        Block::Reasoning("hm".into()),
        opaque("anthropic-messages", "gemini-3-pro-preview", json!({"signature": "sig"})),
        "so".into(),
        signed("text", 2),
        ToolCall::new("a", "t", "{}").into(),
        signed("call", 0),
        ToolCall::new("b", "t", "{}").into(),
    ]);
    let call = |id: &str| json!({"id": id, "name": "t", "args": {}});
    let mut expected = json!([
        {"text": "so"},
        {"functionCall": call("a"), "thoughtSignature": NO_SIGNATURE},
        {"functionCall": call("b")},
    ]);
    assert_eq!(json!(blocks(&later(), &turn)), expected);
    let early = ModelId::new("gemini", "gemini-2.5-pro");
    expected[1] = json!({"functionCall": call("a")});
    assert_eq!(json!(blocks(&early, &turn)), expected);
}
