//! The Gemini API of Google.

mod decode;
mod encode;
mod schema;

use crate::bill::Bill;
use crate::endpoint::{Endpoint, settings};
use crate::made_ids::MadeIds;
use crate::{EnvError, Secret, env, exchange, sse};
use harness::async_trait;
use harness::llm::{CallCx, Caps, Llm, LlmError, ModelId, Reply, Request};

/// The name of the protocol, for opaque blocks and options.
const PROTOCOL: &str = "gemini-generate-content";

/// A model that speaks the Gemini API of Google: `gemini-generate-content`.
///
/// ```
/// use harness_providers::{Gemini, Secret};
///
/// let model = Gemini::new("gemini-2.5-flash", Secret::new(".."));
/// # let _ = model;
/// ```
///
/// # Settings
///
/// | of the request | is sent as |
/// |---|---|
/// | `max_tokens`, `temperature` | `generationConfig.maxOutputTokens`, `.temperature` |
/// | `stop_sequences`, `seed` | `generationConfig.stopSequences`, at most five, and `.seed`, at most 2³¹ - 1 |
/// | `effort` | `generationConfig.thinkingConfig`, with summaries of thoughts: a budget of 1,024, 8,192 or 24,576 tokens for models of generation 2, a level for later ones, which cannot be `Off` |
/// | `schema` | `generationConfig.responseJsonSchema`. A keyword that the API does not apply fails as `Unsupported` |
/// | `tool_choice` | `toolConfig.functionCallingConfig` |
/// | `cache` | not at all: the API caches by itself |
/// | options of `gemini-generate-content` | fields of the body, merged: `safetySettings`, `cachedContent`, `generationConfig`, `tools` |
///
/// Images and documents go inline, or as the URI of a file that the API can load. An image in the outcome
/// of a tool goes inline only. The name of a document is not sent.
///
/// Thought signatures go back at their places, to the same model. A call without an id gets one. Arguments
/// that are not a JSON object go back as `{}`. A reply whose function call the model wrote wrongly fails
/// as `BadReply`, because the API withholds the call; one that is blocked has
/// [`StopReason::ContentFilter`](harness::llm::StopReason).
#[derive(Debug)]
pub struct Gemini {
    id: ModelId,
    caps: Caps,
    endpoint: Endpoint,
}

settings!(Gemini);

impl Gemini {
    /// Creates a model by its name at the provider.
    pub fn new(model: impl Into<String>, key: impl Into<Secret>) -> Self {
        let mut endpoint = Endpoint {
            base_url: "https://generativelanguage.googleapis.com".to_owned(),
            ..Endpoint::default()
        };
        endpoint.set_header("x-goog-api-key", key.into().expose());
        let caps = Caps::default()
            .streaming(true)
            .tools(true)
            .tool_choice(true)
            .parallel_calls(true)
            .structured_output(true)
            .images(true)
            .documents(true)
            .reasoning(true);
        Self { id: ModelId::new("gemini", model), caps, endpoint }
    }

    /// Creates a model with the key of `GEMINI_API_KEY`, at `GEMINI_BASE_URL` if that is set.
    ///
    /// # Errors
    ///
    /// The key is not set.
    pub fn from_env(model: impl Into<String>) -> Result<Self, EnvError> {
        let made = Self::new(model, env::key("GEMINI_API_KEY")?);
        Ok(match env::base_url("GEMINI_BASE_URL") {
            Some(url) => made.base_url(url),
            None => made,
        })
    }
}

#[async_trait]
impl Llm for Gemini {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let streams = cx.is_listened_to() && self.caps.streaming;
        let path = encode::path(&self.id, streams)?;
        let body = encode::body(&self.id, &request)?;
        let ids = MadeIds::after(&request.transcript);
        let mut bill = Bill::new(cx, &self.endpoint.prices, self.id.model());
        let response =
            self.endpoint.post(&path, &body, cx, &self.id, &mut bill, decode::said).await?;
        let decoder = decode::Events::new(self.id.clone(), ids);
        if streams {
            let events = sse::events(response.parts(), self.id.clone());
            let reply = exchange::reply(self.id.clone(), events, decoder, cx, &mut bill).await?;
            return decode::with_calls(reply);
        }
        let deltas = decoder.whole(&response.whole().await?)?;
        decode::with_calls(exchange::whole(self.id.clone(), deltas, &mut bill)?)
    }
}
