//! Results of servers' tools, for models.

use harness::llm::{Content, Document, Image, Part, ToolError, ToolFailure, ToolOutcome};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// The content of a result, or the error that it reports. Beyond `most` bytes it is cut, and says so:
/// the tool has run, so its result is not lost altogether.
pub(super) fn read(result: CallToolResult, most: usize) -> Result<Content, ToolError> {
    let mut blocks = result.content;
    let structured = result.structured_content.filter(|value| !value.is_null());
    let structured = structured.and_then(|value| beside(&mut blocks, value));
    let parts = blocks.into_iter().map(part).chain(structured.map(Part::Json));
    let content = bounded(parts.collect(), most);
    if result.is_error != Some(true) {
        return Ok(content);
    }
    let content = match content.is_empty() {
        true => "the tool failed and does not say why".into(),
        false => content,
    };
    Err(ToolError::outcome(ToolOutcome::failed(ToolFailure::Errored, content)))
}

/// The structured content, unless the blocks say the same. Servers repeat it as text for clients that
/// do not know it, and a model would read it twice.
fn beside(blocks: &mut [ContentBlock], structured: Value) -> Option<Value> {
    let json = |block: &ContentBlock| serde_json::from_str::<Value>(text(block)?).ok();
    let same = |block: &ContentBlock, value: &Value| {
        value.as_str().is_some_and(|value| text(block) == Some(value))
            || json(block).as_ref() == Some(value)
    };
    if blocks.iter().any(|block| same(block, &structured)) {
        return None;
    }
    // A plain value is wrapped, because structured content must be an object in older versions.
    let wrapped = match &structured {
        Value::Object(map) if map.len() == 1 => map.get("result"),
        _ => None,
    };
    let said = match wrapped {
        Some(Value::Array(items)) if items.len() == blocks.len() => {
            items.iter().zip(blocks.iter()).all(|(item, block)| same(block, item))
        }
        Some(value) => blocks.iter().any(|block| same(block, value)),
        None => false,
    };
    (!said).then_some(structured)
}

fn text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

fn part(block: ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::Text(text.text),
        ContentBlock::Image(image) => {
            Image::Inline { media_type: image.mime_type, base64: image.data }.into()
        }
        ContentBlock::Audio(audio) => {
            Part::Text(not_shown("audio", Some(&audio.mime_type), audio.data.len()))
        }
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            let mut text = format!("resource `{}`: {}", link.name, link.uri);
            if let Some(kind) = &link.mime_type {
                text.push_str(&format!(" ({kind})"));
            }
            if let Some(about) = &link.description {
                text.push_str(&format!(": {about}"));
            }
            Part::Text(text)
        }
        _ => Part::Text("[content of a kind that is not supported]".to_owned()),
    }
}

fn resource(resource: ResourceContents) -> Part {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            Part::Text(format!("resource {uri}:\n{text}"))
        }
        ResourceContents::BlobResourceContents { mime_type: Some(media_type), blob, .. }
            if media_type.starts_with("image/") =>
        {
            Image::Inline { media_type, base64: blob }.into()
        }
        ResourceContents::BlobResourceContents {
            uri, mime_type: Some(media_type), blob, ..
        } if media_type == "application/pdf" => {
            Document::Inline { media_type, base64: blob, name: Some(uri) }.into()
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let what = not_shown("data", mime_type.as_deref(), blob.len());
            Part::Text(format!("resource {uri}: {what}"))
        }
        _ => Part::Text("[a resource of a kind that is not supported]".to_owned()),
    }
}

fn not_shown(what: &str, kind: Option<&str>, base64: usize) -> String {
    let kind = kind.unwrap_or("unknown type");
    format!("[{what} of about {} bytes, {kind}, not shown]", base64 / 4 * 3)
}

/// Cuts what is beyond the limit: text at a character, everything else as a whole.
fn bounded(parts: Vec<Part>, most: usize) -> Content {
    let size: usize = parts.iter().map(size).sum();
    if size <= most {
        return Content::new(parts);
    }
    let mut left = most;
    let mut kept = Vec::new();
    for part in parts {
        let part = match part {
            Part::Json(value) if self::size(&Part::Json(value.clone())) > left => {
                Part::Text(value.to_string())
            }
            part => part,
        };
        match part {
            Part::Text(mut text) if text.len() > left => {
                let end = (0..=left).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
                text.truncate(end);
                kept.push(Part::Text(text));
                break;
            }
            part if self::size(&part) > left => break,
            part => {
                left -= self::size(&part);
                kept.push(part);
            }
        }
    }
    kept.retain(|part| *part != Part::Text(String::new()));
    let note = format!("[cut: the result has {size} bytes, and {most} are allowed]");
    kept.push(Part::Text(note));
    Content::new(kept)
}

fn size(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.len(),
        Part::Json(value) => value.to_string().len(),
        Part::Image(Image::Inline { base64, .. })
        | Part::Document(Document::Inline { base64, .. }) => base64.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn of(result: Value) -> CallToolResult {
        serde_json::from_value(result).unwrap()
    }

    fn shown(result: Value) -> Value {
        serde_json::to_value(read(of(result), 1000).unwrap()).unwrap()
    }

    #[test]
    fn every_kind_of_content_is_shown_or_described() {
        for (block, expected) in [
            (json!({"type": "text", "text": "hi"}), json!({"text": "hi"})),
            (
                json!({"type": "image", "data": "QUJD", "mimeType": "image/png"}),
                json!({"image": {"inline": {"media_type": "image/png", "base64": "QUJD"}}}),
            ),
            (
                json!({"type": "audio", "data": "QUJDQUJD", "mimeType": "audio/wav"}),
                json!({"text": "[audio of about 6 bytes, audio/wav, not shown]"}),
            ),
            (
                json!({"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/css",
                       "description": "A style"}),
                json!({"text": "resource `a`: file:///a (text/css): A style"}),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}),
                json!({"text": "resource file:///a:\ninside"}),
            ),
            (
                json!({"type": "resource", "resource":
                      {"uri": "file:///a", "blob": "QUJD", "mimeType": "image/gif"}}),
                json!({"image": {"inline": {"media_type": "image/gif", "base64": "QUJD"}}}),
            ),
            (
                json!({"type": "resource", "resource":
                      {"uri": "file:///a", "blob": "QUJD", "mimeType": "application/pdf"}}),
                json!({"document": {"inline":
                      {"media_type": "application/pdf", "base64": "QUJD", "name": "file:///a"}}}),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///a", "blob": "QUJD"}}),
                json!({"text": "resource file:///a: [data of about 3 bytes, unknown type, not shown]"}),
            ),
        ] {
            assert_eq!(shown(json!({"content": [block]})), json!([expected]));
        }
    }

    #[test]
    fn structured_content_is_shown_once() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let both = |blocks: Value, structured: Value| {
            shown(json!({"content": blocks, "structuredContent": structured}))
        };
        assert_eq!(both(json!([]), json!({"a": 1})), json!([{"json":{"a":1}}]));
        assert_eq!(
            both(json!([text("{\"a\": 1}")]), json!({"a": 1})),
            json!([{"text":"{\"a\": 1}"}])
        );
        assert_eq!(both(json!([text("42")]), json!({"result": 42})), json!([{"text":"42"}]));
        assert_eq!(both(json!([text("hi")]), json!({"result": "hi"})), json!([{"text":"hi"}]));
        assert_eq!(
            both(json!([text("1"), text("b")]), json!({"result": [1, "b"]})),
            json!([{"text":"1"},{"text":"b"}])
        );
        assert_eq!(
            both(json!([text("a summary")]), json!({"a": 1})),
            json!([{"text":"a summary"},{"json":{"a":1}}])
        );
    }

    #[test]
    fn a_reported_error_is_a_failure_with_its_content() {
        for (content, expected) in [
            (json!([{"type": "text", "text": "the disk is full"}]), "the disk is full"),
            (json!([]), "the tool failed and does not say why"),
        ] {
            let error = read(of(json!({"content": content, "isError": true})), 1000).unwrap_err();
            assert_eq!(error.failure(), ToolFailure::Errored);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_result_that_is_too_large_is_cut() {
        let blocks = json!([
            {"type": "text", "text": "żółw".repeat(10)},
            {"type": "image", "data": "QUJD".repeat(100), "mimeType": "image/png"},
            {"type": "text", "text": "end"},
        ]);
        let cut = |most| read(of(json!({"content": blocks})), most).unwrap();
        let note = |most| format!("[cut: the result has 473 bytes, and {most} are allowed]");
        assert_eq!(cut(473).len(), 3);
        assert_eq!(cut(472)[2..], [Part::from("en"), Part::from(note(472))]);
        assert_eq!(cut(100)[1..], [Part::from(note(100))]);
        assert_eq!(cut(10)[..], [Part::from("żółwż"), Part::from(note(10))]);
        assert_eq!(cut(0)[..], [Part::from(note(0))]);
    }

    proptest! {
        #[test]
        fn no_result_is_larger_than_allowed(
            texts in proptest::collection::vec("(?s).{0,40}", 0..5),
            structured in proptest::option::of("[a-z]{0,60}"),
            most in 0usize..120,
        ) {
            let blocks: Vec<_> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            let structured = structured.map(|text| json!({"value": text}));
            let result = of(json!({"content": blocks, "structuredContent": structured}));
            let content = read(result, most).unwrap();
            let total: usize = content.iter().map(size).sum();
            prop_assert!(total <= most + 70, "{total} of {most}");
        }
    }
}
