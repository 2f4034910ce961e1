//! Replies as typed values.

use std::borrow::Cow;
use std::fmt;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::llm::{
    Advice, Block, Caps, LlmError, Message, Reply, Request, StopReason, ToolChoice, ToolFailure,
    ToolOutcome, ToolSpec, Transcript, schema_of, user,
};
use crate::question::mismatch;
use crate::text::bounded;

/// The name of the schema, and of the tool that takes the place of one.
const ANSWER: &str = "answer";
/// The greatest length of a violation.
const LONGEST: usize = 400;

/// Why a reply is no value of the type asked for.
///
/// ```
/// use harness::step::ExtractError;
///
/// fn shown(error: &ExtractError) -> String {
///     match error {
///         ExtractError::Mismatch { violation, .. } => format!("not as asked: {violation}"),
///         other => other.to_string(),
///     }
/// }
/// # let _ = shown;
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ExtractError {
    /// The model call failed.
    Llm(LlmError),
    /// The model refused, or the provider withheld the reply.
    Refused {
        /// Why it stopped.
        stop: StopReason,
        /// Whether a retry can help: no.
        advice: Advice,
    },
    /// Two replies did not match.
    Mismatch {
        /// What was wrong with the second one.
        violation: String,
        /// Whether a retry can help: yes, since models vary.
        advice: Advice,
    },
}

impl fmt::Display for ExtractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Llm(error) => fmt::Display::fmt(error, f),
            Self::Refused { .. } => {
                f.write_str("the model refused to reply (change the request or use another model)")
            }
            Self::Mismatch { violation, .. } => write!(
                f,
                "two replies of the model do not match the type asked for: {violation} (simplify \
                 the type or use another model)"
            ),
        }
    }
}

impl std::error::Error for ExtractError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Llm(error) => error.source(),
            Self::Refused { advice, .. } | Self::Mismatch { advice, .. } => Some(advice),
        }
    }
}

impl From<LlmError> for ExtractError {
    fn from(error: LlmError) -> Self {
        Self::Llm(error)
    }
}

/// Something that answers requests.
pub(super) trait Ask: Sync {
    type Error: Send;

    /// Answers a request, for the first time or `again`.
    fn ask<'a>(
        &'a self,
        request: Request<'a>,
        again: u32,
    ) -> BoxFuture<'a, Result<Reply, Self::Error>>;

    /// Whether the request was refused before anything was sent.
    fn is_unsupported(error: &Self::Error) -> bool;
}

/// Why there is no value: no reply, or none that can be read.
pub(super) enum Failed<E> {
    Asking(E),
    Reading(ExtractError),
}

/// How the model gets the schema.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// As a setting.
    Native,
    /// As the input of a tool.
    Tool,
    /// In its instructions.
    Text,
}

impl Mode {
    /// The first way of `caps`, or the next one after another.
    fn after(before: Option<Self>, caps: Caps) -> Option<Self> {
        let tool = (caps.tools && caps.tool_choice).then_some(Self::Tool);
        match before {
            None if caps.structured_output => Some(Self::Native),
            None | Some(Self::Native) => tool.or(Some(Self::Text)),
            Some(Self::Tool) => Some(Self::Text),
            Some(Self::Text) => None,
        }
    }
}

/// The schema of a type, as an object, which providers require.
struct Shape {
    schema: Value,
    /// Whether the value is the field `value` of the object.
    wrapped: bool,
}

impl Shape {
    fn of<T: JsonSchema>() -> Self {
        let mut schema = schema_of::<T>();
        if schema["type"] == "object" {
            return Self { schema, wrapped: false };
        }
        let defs = schema.as_object_mut().and_then(|schema| schema.remove("$defs"));
        let mut object = json!({
            "type": "object",
            "properties": {"value": schema},
            "required": ["value"],
            "additionalProperties": false,
        });
        if let Some(defs) = defs {
            object["$defs"] = defs;
        }
        Self { schema: object, wrapped: true }
    }

    /// The value in the JSON of a reply, or what is wrong with it.
    fn read<T: DeserializeOwned>(&self, json: Value) -> Result<T, String> {
        if let Some(wrong) = mismatch(&self.schema, &json) {
            return Err(wrong);
        }
        let value = match (self.wrapped, json) {
            (true, Value::Object(mut fields)) => fields.remove("value").unwrap_or_default(),
            (_, json) => json,
        };
        T::deserialize(value).map_err(|error| error.to_string())
    }
}

/// Asks for a `T`, and once more with what was wrong.
pub(super) async fn extract<T, A>(
    asks: &A,
    caps: Caps,
    request: Request<'_>,
) -> Result<T, Failed<A::Error>>
where
    T: DeserializeOwned + JsonSchema,
    A: Ask,
{
    let shape = Shape::of::<T>();
    let mut mode = Mode::after(None, caps).unwrap_or(Mode::Text);
    let reply = ask(asks, caps, &mut mode, &shape, request, 0).await.map_err(Failed::Asking)?;
    let wrong = match read(&shape, &reply).map_err(Failed::Reading)? {
        Ok(value) => return Ok(value),
        Err(wrong) => wrong,
    };
    let talk = with_violation(request.transcript.transcript(), reply, &wrong);
    let mut second = request;
    second.transcript = match talk.sealed() {
        Ok(sealed) => sealed,
        // Every call has its outcome.
        Err(_) => return Err(Failed::Reading(mismatched(wrong))),
    };
    let reply = ask(asks, caps, &mut mode, &shape, second, 1).await.map_err(Failed::Asking)?;
    match read(&shape, &reply).map_err(Failed::Reading)? {
        Ok(value) => Ok(value),
        Err(wrong) => Err(Failed::Reading(mismatched(wrong))),
    }
}

/// Asks in the way of `mode`, or in the next one if the protocol cannot express the schema so: the
/// value is checked here in any case.
async fn ask<A: Ask>(
    asks: &A,
    caps: Caps,
    mode: &mut Mode,
    shape: &Shape,
    request: Request<'_>,
    again: u32,
) -> Result<Reply, A::Error> {
    loop {
        let tools = tools(*mode, &request, shape);
        let system = system(*mode, request.system, shape);
        let mut asked = request;
        (asked.tools, asked.system, asked.schema) = (&tools, system.as_deref(), None);
        asked.tool_choice = match mode {
            Mode::Tool => ToolChoice::Tool(ANSWER),
            // Tools stay known, because the transcript may have calls of them.
            Mode::Native | Mode::Text => ToolChoice::None,
        };
        if *mode == Mode::Native {
            asked = asked.schema(ANSWER, &shape.schema);
        }
        match (asks.ask(asked, again).await, Mode::after(Some(*mode), caps)) {
            (Err(error), Some(next)) if A::is_unsupported(&error) => *mode = next,
            (result, _) => return result,
        }
    }
}

fn mismatched(violation: String) -> ExtractError {
    ExtractError::Mismatch { violation, advice: Advice::retry() }
}

fn tools<'a>(mode: Mode, request: &Request<'a>, shape: &Shape) -> Cow<'a, [ToolSpec]> {
    if mode != Mode::Tool {
        return Cow::Borrowed(request.tools);
    }
    let mut tools = request.tools.to_vec();
    tools.retain(|tool| tool.name.as_str() != ANSWER);
    tools.push(ToolSpec::new(ANSWER, "Gives the answer", shape.schema.clone()));
    Cow::Owned(tools)
}

fn system<'a>(mode: Mode, system: Option<&'a str>, shape: &Shape) -> Option<Cow<'a, str>> {
    if mode != Mode::Text {
        return system.map(Cow::Borrowed);
    }
    let order = format!(
        "Reply with one JSON object and nothing else. It must match this JSON schema: {}",
        shape.schema
    );
    Some(match system {
        Some(before) => format!("{before}\n\n{order}").into(),
        None => order.into(),
    })
}

/// The value of a reply, or what is wrong with it. The error ends the extraction.
fn read<T: DeserializeOwned>(
    shape: &Shape,
    reply: &Reply,
) -> Result<Result<T, String>, ExtractError> {
    if let StopReason::Refusal | StopReason::ContentFilter = reply.stop {
        return Err(ExtractError::Refused { stop: reply.stop.clone(), advice: Advice::give_up() });
    }
    let call = reply.calls().find(|call| call.name.as_str() == ANSWER);
    // A recorded reply may have been asked for in another way.
    let json = match call {
        Some(call) => call.json().map_err(|error| error.to_string()),
        None => json_in(&reply.text().unwrap_or_default()),
    };
    let read = json.and_then(|json| shape.read(json)).map_err(|wrong| {
        let cut = match reply.stop {
            StopReason::MaxTokens => "the reply reached its token limit: ",
            _ => "",
        };
        bounded(format!("{cut}{wrong}"), LONGEST)
    });
    Ok(read)
}

/// The JSON object of a text: all of it, or the first that is in it, for models that add words or a
/// code fence.
fn json_in(text: &str) -> Result<Value, String> {
    let whole = match serde_json::from_str(text) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    let starts = text.match_indices('{').map(|(at, _)| at).take(16);
    let found = starts.into_iter().find_map(|at| {
        let mut read = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Map<_, _>>();
        read.next()?.ok()
    });
    match found {
        Some(object) => Ok(Value::Object(object)),
        None if text.trim().is_empty() => Err("the reply has no text".to_owned()),
        None => Err(format!("the reply is not JSON: {whole}")),
    }
}

/// The transcript with the reply that does not match, and what is wrong with it.
fn with_violation(talk: &Transcript, reply: Reply, wrong: &str) -> Transcript {
    let mut talk = talk.clone();
    if reply.turn.blocks.iter().any(|block| !matches!(block, Block::Reasoning(_))) {
        talk.push(reply.into());
    }
    let text = format!("The answer does not match the schema: {wrong}. Correct it.");
    let open = talk.open_calls();
    match open.is_empty() {
        true => {
            talk.push(user(text));
        }
        false => talk.extend(open.into_iter().map(|call| {
            let outcome = ToolOutcome::failed(ToolFailure::BadArguments, text.as_str());
            Message::Outcome { call: call.id, outcome }
        })),
    }
    talk
}

#[cfg(test)]
mod tests;
