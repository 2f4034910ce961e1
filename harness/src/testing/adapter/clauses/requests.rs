//! What is sent of a request.

use serde_json::{Value, json};

use crate::llm::{
    Block, CacheMark, CallCx, Document, Effort, Image, LlmErrorKind, ModelId, Options, Part,
    Request, ToolChoice, Transcript, Turn, user,
};

use super::super::server::Play;
use super::super::world::{Kept, PROMPT, Stop, World, talk, texts};
use super::clauses;

clauses! {
    "transcript-is-sent-in-order" => in_order,
    "setting-is-sent-or-refused" => settings,
    "effort-is-sent-or-refused" => efforts,
    "images-and-documents-are-sent-or-refused" => media,
    "cache-marks-change-no-reply" => marks,
    "options-go-to-their-protocol-only" => options,
    "opaque-blocks-go-back-to-their-model-only" => opaque,
    "reasoning-without-proof-is-no-text" => reasoning,
    "turn-that-says-nothing-can-be-followed" => nothing_said,
    "tool-choice-without-tools-has-no-effect" => choice_alone,
}

/// The body that is sent of a request. `None` if it is refused, and nothing is sent.
async fn sent(w: &World, request: Request<'_>) -> Kept<Option<Value>> {
    let setup = w.setup([Play::Reply(texts(&["x"]))]).await?;
    match setup.model.complete(request, &CallCx::detached()).await {
        Ok(_) => Ok(setup.server.seen().pop().map(|request| request.body)),
        Err(error) => {
            same!(format!("the kind of `{error}`"), error.kind(), LlmErrorKind::Unsupported);
            same!("how many requests were sent", setup.server.seen().len(), 0);
            Ok(None)
        }
    }
}

/// Makes sure that what is sent holds `mark`.
async fn holds(w: &World, what: &str, request: Request<'_>, mark: &str) -> Kept {
    if let Some(body) = sent(w, request).await? {
        let text = body.to_string();
        ensure!(text.contains(mark), "{what} is neither sent nor refused: {text}");
    }
    Ok(())
}

async fn in_order(w: World) -> Kept {
    let texts = ["said-1", "said-2", "said-3", "said-4"];
    let talk = Transcript::from_iter([
        user(texts[0]),
        Turn::from(texts[1]).into(),
        user(texts[2]),
        user(texts[3]),
    ]);
    let request = Request::new(talk.sealed()?).system("said-0");
    let Some(body) = sent(&w, request).await? else {
        return Err(Stop::Broken("a plain transcript is refused".into()));
    };
    let body = body.to_string();
    let mut places = Vec::new();
    for text in texts {
        let Some(place) = body.find(text) else {
            return Err(Stop::Broken(format!("`{text}` is not sent: {body}")));
        };
        same!(format!("how often `{text}` is sent"), body.matches(text).count(), 1);
        places.push(place);
    }
    ensure!(body.contains("said-0"), "the system prompt is not sent");
    ensure!(places.is_sorted(), "the transcript is not sent in order: {body}");
    Ok(())
}

async fn settings(w: World) -> Kept {
    let talk = talk();
    let plain = Request::new(talk.sealed()?);
    let schema = json!({
        "type": "object",
        "properties": {"mark_of_schema": {"type": "string"}},
        "required": ["mark_of_schema"],
    });
    holds(&w, "the seed", plain.seed(424_242), "424242").await?;
    holds(&w, "a stop sequence", plain.stop_sequences(&["END-MARK"]), "END-MARK").await?;
    holds(&w, "the token limit", plain.max_tokens(3_217), "3217").await?;
    holds(&w, "the temperature", plain.temperature(0.25), "0.25").await?;
    holds(&w, "the system prompt", plain.system("SYSTEM-MARK"), "SYSTEM-MARK").await?;
    let request = plain.schema("answer", &schema);
    holds(&w, "the schema", request, "mark_of_schema").await
}

async fn efforts(w: World) -> Kept {
    let talk = talk();
    let plain = Request::new(talk.sealed()?);
    let Some(without) = sent(&w, plain).await? else {
        return Err(Stop::Broken("a plain request is refused".into()));
    };
    let mut bodies = vec![without];
    for effort in [Effort::Off, Effort::Low, Effort::Medium, Effort::High] {
        let Some(body) = sent(&w, plain.effort(effort)).await? else { continue };
        ensure!(!bodies.contains(&body), "{effort:?} is sent as nothing or as another: {body}");
        bodies.push(body);
    }
    Ok(())
}

async fn media(w: World) -> Kept {
    let inline = |media_type: &str| Document::Inline {
        media_type: media_type.into(),
        base64: "bWFyaw==".into(),
        name: Some("mark.pdf".into()),
    };
    let image = Image::Inline { media_type: "image/png".into(), base64: "bWFyaw==".into() };
    let cases: [(&str, Part, &str); 5] = [
        ("an image by URL", Image::Url("https://example.com/mark.png".into()).into(), "mark.png"),
        ("an image", image.into(), "bWFyaw=="),
        (
            "a document by URL",
            Document::Url("https://example.com/mark.pdf".into()).into(),
            "mark.pdf",
        ),
        ("a PDF", inline("application/pdf").into(), "bWFyaw=="),
        ("a document of an unknown type", inline("x-y/z-mark").into(), "bWFyaw=="),
    ];
    for (what, part, mark) in cases {
        let talk = Transcript::from_iter([user(vec![Part::from(PROMPT), part])]);
        holds(&w, what, Request::new(talk.sealed()?), mark).await?;
    }
    Ok(())
}

async fn marks(w: World) -> Kept {
    let talk = talk();
    let marks = [CacheMark::Tools, CacheMark::System, CacheMark::Entry(0)];
    let request = Request::new(talk.sealed()?).system("be brief").cache(&marks);
    ensure!(sent(&w, request).await?.is_some(), "a mark that saves cost is refused");
    Ok(())
}

async fn options(w: World) -> Kept {
    let talk = talk();
    let plain = Request::new(talk.sealed()?);
    let Some(without) = sent(&w, plain).await? else {
        return Err(Stop::Broken("a plain request is refused".into()));
    };
    let other = Options::new().with("another-protocol", json!({"top_mark": 7}));
    let body = sent(&w, plain.options(&other)).await?;
    same!("what is sent with the options of another", body, Some(without));
    let own = Options::new().with(w.wire.protocol(), json!({"mark_of_options": "own-mark"}));
    holds(&w, "an option of its own", plain.options(&own), "own-mark").await?;
    let setup = w.setup([Play::Reply(texts(&["x"]))]).await?;
    let bad = Options::new().with(w.wire.protocol(), json!("text"));
    let result = setup.model.complete(plain.options(&bad), &CallCx::detached()).await;
    let kind = result.err().map(|error| error.kind());
    same!("the error of options that are text", kind, Some(LlmErrorKind::InvalidRequest));
    same!("how many requests were sent", setup.server.seen().len(), 0);
    Ok(())
}

async fn opaque(w: World) -> Kept {
    let Some(data) = w.wire.opaque("opaque-mark") else {
        return Err(Stop::Skipped("the protocol has no opaque blocks".into()));
    };
    let own = w.wire.adapter("http://127.0.0.1:1", "").id();
    let other = ModelId::new(own.provider(), format!("{}-other", own.model()));
    let cases = [
        (w.wire.protocol(), own.clone(), true),
        (w.wire.protocol(), other, false),
        ("another-protocol", own, false),
    ];
    for (protocol, model, goes_back) in cases {
        let data = data.clone();
        let block = Block::Opaque { protocol: protocol.into(), model: model.clone(), data };
        let turn = Turn::new([Block::Reasoning("hm".into()), block, "so".into()]);
        let talk = Transcript::from_iter([user(PROMPT), turn.into(), user("and?")]);
        let body = sent(&w, Request::new(talk.sealed()?)).await?;
        let found = body.is_some_and(|body| body.to_string().contains("opaque-mark"));
        same!(format!("whether a block of `{protocol}` and `{model}` goes back"), found, goes_back);
    }
    Ok(())
}

/// Reasoning of another model may only go back as reasoning, never as what the model has said.
async fn reasoning(w: World) -> Kept {
    let turn = Turn::new([Block::Reasoning("thought-mark".into()), "so".into()]);
    let talk = Transcript::from_iter([user(PROMPT), turn.into(), user("and?")]);
    let Some(body) = sent(&w, Request::new(talk.sealed()?)).await? else {
        return Err(Stop::Broken("a turn with reasoning is refused".into()));
    };
    ensure!(!as_text(&body), "reasoning is sent as text: {body}");
    Ok(())
}

/// A reply that was cut before its text has nothing, or reasoning alone. The session resumes with the
/// next input.
async fn nothing_said(w: World) -> Kept {
    let own = w.wire.adapter("http://127.0.0.1:1", "").id();
    let opaque = w.wire.opaque("opaque-mark").map(|data| Block::Opaque {
        protocol: w.wire.protocol().into(),
        model: own,
        data,
    });
    let reasoned: Vec<_> = [Block::Reasoning("hm".into())].into_iter().chain(opaque).collect();
    for turn in [Turn::new([]), Turn::new([Block::Reasoning("hm".into())]), Turn::new(reasoned)] {
        let talk = Transcript::from_iter([user(PROMPT), turn.into(), user("said-after")]);
        let Some(body) = sent(&w, Request::new(talk.sealed()?)).await? else {
            return Err(Stop::Broken("a turn without text is refused".into()));
        };
        ensure!(body.to_string().contains("said-after"), "what follows is not sent: {body}");
    }
    Ok(())
}

async fn choice_alone(w: World) -> Kept {
    let talk = talk();
    let plain = Request::new(talk.sealed()?);
    let without = sent(&w, plain).await?;
    ensure!(without.is_some(), "a plain request is refused");
    for choice in [ToolChoice::None, ToolChoice::Required, ToolChoice::Tool("first")] {
        let body = sent(&w, plain.tool_choice(choice)).await?;
        same!(format!("what is sent with {choice:?}"), body, without);
    }
    Ok(())
}

/// Whether the mark is the value of a field that holds what was said.
fn as_text(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| match value {
            Value::String(text) => {
                ["content", "text"].contains(&key.as_str())
                    && text.contains("thought-mark")
                    && !map.contains_key("thought")
            }
            _ => as_text(value),
        }),
        Value::Array(items) => items.iter().any(as_text),
        _ => false,
    }
}
