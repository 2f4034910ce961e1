//! The two protocols of OpenAI, and what they have in common.

#[cfg(feature = "openai-chat")]
mod chat;
mod error;
#[cfg(feature = "openai-responses")]
mod responses;
mod strict;

#[cfg(feature = "openai-chat")]
pub use chat::OpenAiChat;
#[cfg(feature = "openai-responses")]
pub use responses::OpenAiResponses;

use crate::endpoint::Endpoint;
use crate::failure::unsupported;
use crate::{EnvError, Secret, env};
use harness::llm::{
    Content, Document, Effort, Image, LlmError, ModelId, Part, Request, ToolCallId, ToolOutcome,
};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Where OpenAI is, with the version of its API, as in the settings of its own libraries.
const URL: &str = "https://api.openai.com/v1";

/// The servers of OpenAI, with a key.
fn endpoint(key: &Secret) -> Endpoint {
    let mut endpoint = Endpoint { base_url: URL.to_owned(), ..Endpoint::default() };
    authorize(&mut endpoint, key);
    endpoint
}

fn authorize(endpoint: &mut Endpoint, key: &Secret) {
    endpoint.set_header("authorization", &format!("Bearer {}", key.expose()));
}

/// The key of OpenAI, and its base URL if that is set.
fn from_env() -> Result<(Secret, Option<String>), EnvError> {
    Ok((env::key("OPENAI_API_KEY")?, env::base_url("OPENAI_BASE_URL")))
}

fn effort(model: &ModelId, effort: Effort) -> Result<&'static str, LlmError> {
    match effort {
        Effort::Off => Ok("none"),
        Effort::Minimal => Ok("minimal"),
        Effort::Low => Ok("low"),
        Effort::Medium => Ok("medium"),
        Effort::High => Ok("high"),
        _ => Err(unsupported(model, "the protocol does not know this effort")),
    }
}

/// The format of the output that a schema asks for.
fn format(request: &Request<'_>) -> Option<Map<String, Value>> {
    let schema = request.schema?;
    let (strict, sent) = match strict::strict(schema.schema) {
        Some(strict) => (true, strict),
        None => (false, schema.schema.clone()),
    };
    let mut format = Map::new();
    format.insert("name".into(), json!(schema.name));
    format.insert("schema".into(), sent);
    format.insert("strict".into(), json!(strict));
    Some(format)
}

/// A part of content, which each protocol writes in a shape of its own.
enum Sent<'a> {
    Text(Cow<'a, str>),
    /// The URL of an image, which may be the image itself.
    Image(Cow<'a, str>),
    /// A document with its name, as a URL that is the document itself.
    File {
        media_type: &'a str,
        name: &'a str,
        data: String,
    },
    /// The URL of a document.
    FileAt(&'a str),
}

fn parts(
    model: &ModelId,
    content: &Content,
    shape: fn(&ModelId, Sent<'_>) -> Result<Value, LlmError>,
) -> Result<Vec<Value>, LlmError> {
    let part = |part: &Part| {
        let sent = match part {
            Part::Text(text) => Sent::Text(text.into()),
            Part::Json(value) => Sent::Text(value.to_string().into()),
            Part::Image(Image::Url(url)) => Sent::Image(url.into()),
            Part::Image(Image::Inline { media_type, base64 }) => {
                Sent::Image(data_url(media_type, base64).into())
            }
            Part::Image(_) => {
                return Err(unsupported(model, "the protocol does not know this image"));
            }
            Part::Document(Document::Url(url)) => Sent::FileAt(url),
            Part::Document(Document::Inline { media_type, base64, name }) => {
                let other = if media_type == PDF { "document.pdf" } else { "document" };
                let name = name.as_deref().unwrap_or(other);
                Sent::File { media_type, name, data: data_url(media_type, base64) }
            }
            _ => return Err(unsupported(model, "the protocol does not know this part")),
        };
        shape(model, sent)
    };
    content.iter().map(part).collect()
}

const PDF: &str = "application/pdf";

/// The URL of bytes.
fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}

/// A single text as itself, which every compatible server takes. There must be something.
fn simple(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [] => json!(""),
        [one] if one["text"].is_string() => one["text"].take(),
        _ => Value::Array(parts),
    }
}

/// The content of an outcome. The protocols have no mark of a failure, so its text has one.
fn outcome_content(outcome: &ToolOutcome) -> Content {
    let content = outcome.content().into_owned();
    if !matches!(outcome, ToolOutcome::Failed { .. }) {
        return content;
    }
    let mut parts = content.into_parts();
    match parts.first_mut() {
        Some(Part::Text(text)) => text.insert_str(0, "error: "),
        _ => parts.insert(0, "error".into()),
    }
    parts.into()
}

/// Ids of calls that the vendor accepts. Other providers make longer ones.
struct CallIds<'a> {
    longest: usize,
    replaced: Vec<&'a ToolCallId>,
}

impl<'a> CallIds<'a> {
    fn new(longest: usize) -> Self {
        Self { longest, replaced: Vec::new() }
    }

    /// The id that is sent for an id: the same one each time.
    fn of(&mut self, id: &'a ToolCallId) -> String {
        if (1..=self.longest).contains(&id.as_str().len()) {
            return id.as_str().to_owned();
        }
        let place = self.replaced.iter().position(|other| *other == id).unwrap_or_else(|| {
            self.replaced.push(id);
            self.replaced.len() - 1
        });
        format!("harness_call_{place}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_too_long_are_replaced_by_the_same_each_time() {
        let (long, other) = (ToolCallId::new("x".repeat(41)), ToolCallId::new("y".repeat(41)));
        let short = ToolCallId::from("call_1");
        let mut ids = CallIds::new(40);
        let sent = [&long, &short, &other, &long].map(|id| ids.of(id));
        assert_eq!(sent, ["harness_call_0", "call_1", "harness_call_1", "harness_call_0"]);
    }
}
