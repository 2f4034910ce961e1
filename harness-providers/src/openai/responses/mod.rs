//! The Responses API.

mod decode;
mod encode;

use super::error::said;
use crate::bill::Bill;
use crate::endpoint::{Endpoint, settings};
use crate::{EnvError, Secret, exchange, sse};
use harness::async_trait;
use harness::llm::{CallCx, Caps, Llm, LlmError, ModelId, Reply, Request};

/// The name of the protocol, for opaque blocks and options.
const PROTOCOL: &str = "openai-responses";

/// A model that speaks the Responses API of OpenAI: `openai-responses`.
///
/// ```
/// use harness_providers::{OpenAiResponses, Price, Prices, Secret};
///
/// let model = OpenAiResponses::new("gpt-5.1", Secret::new("sk-.."))
///     .prices(Prices::new().with("gpt-5.1", Price::new(1.25, 10.0).cache_read(0.125)));
/// # let _ = model;
/// ```
///
/// A base URL has the version of the API, as in `https://api.openai.com/v1`. Nothing is stored at the
/// provider (`store` is false): each request has the whole transcript.
///
/// # Settings
///
/// | of the request | is sent as |
/// |---|---|
/// | `system` | `instructions` |
/// | `max_tokens` | `max_output_tokens` |
/// | `effort` | `reasoning.effort`; `Off` is `none` |
/// | `schema` | `text.format`, strict where strict schemas can say it: every object is closed and every property required, so that an optional one is written too. Others guide the model, and do not bind it |
/// | `cache` | not at all: the provider caches by itself, and a mark changes no reply |
/// | `seed`, `stop_sequences` | not at all: they fail as `Unsupported` |
/// | options of `openai-responses` | fields of the body, merged: `{"reasoning": {"summary": "auto"}}`, `service_tier` |
///
/// Reasoning goes back as its encrypted items, in order, to the same model. A model that does not reason
/// rejects a request for them, so they are asked for only if the [`caps`](Self::caps) have `reasoning`:
/// by default, unless the name begins with `gpt-3`, `gpt-4` or `chatgpt`, or has `-chat`. Reasoning at the
/// end of a turn that has nothing after it does not go back, because the provider rejects it.
///
/// The protocol does not mark an outcome as a failure, so the text of a failure begins with `error: `.
#[derive(Debug)]
pub struct OpenAiResponses {
    id: ModelId,
    caps: Caps,
    endpoint: Endpoint,
}

settings!(OpenAiResponses);

impl OpenAiResponses {
    /// Creates a model by its name at the provider.
    pub fn new(model: impl Into<String>, key: impl Into<Secret>) -> Self {
        let model = model.into();
        let caps = Caps::default()
            .streaming(true)
            .tools(true)
            .tool_choice(true)
            .parallel_calls(true)
            .structured_output(true)
            .images(true)
            .documents(true)
            .reasoning(reasons(&model));
        Self { id: ModelId::new("openai", model), caps, endpoint: super::endpoint(&key.into()) }
    }

    /// Creates a model with the key of `OPENAI_API_KEY`, at `OPENAI_BASE_URL` if that is set.
    ///
    /// # Errors
    ///
    /// The key is not set.
    pub fn from_env(model: impl Into<String>) -> Result<Self, EnvError> {
        let (key, url) = super::from_env()?;
        let made = Self::new(model, key);
        Ok(match url {
            Some(url) => made.base_url(url),
            None => made,
        })
    }
}

/// Whether a model of this name reasons.
fn reasons(model: &str) -> bool {
    let is_older = ["gpt-3", "gpt-4", "chatgpt"].iter().any(|older| model.starts_with(older));
    !is_older && !model.contains("-chat")
}

#[async_trait]
impl Llm for OpenAiResponses {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let streams = cx.is_listened_to() && self.caps.streaming;
        let body = encode::body(&self.id, self.caps.reasoning, &request, streams)?;
        let mut bill = Bill::new(cx, &self.endpoint.prices, self.id.model());
        let response =
            self.endpoint.post("/responses", &body, cx, &self.id, &mut bill, said).await?;
        if streams {
            let events = sse::events(response.parts(), self.id.clone());
            let decoder = decode::Events::new(self.id.clone());
            return exchange::reply(self.id.clone(), events, decoder, cx, &mut bill).await;
        }
        let deltas = decode::response(&self.id, &response.whole().await?)?;
        exchange::whole(self.id.clone(), deltas, &mut bill)
    }
}

#[cfg(test)]
mod tests {
    use super::reasons;

    #[test]
    fn models_that_reason_are_known_by_their_names() {
        assert!(
            ["gpt-5.1", "o3", "o4-mini", "gpt-oss-120b", "ft-x"].map(reasons).iter().all(|is| *is)
        );
        let plain = ["gpt-4o", "gpt-4.1-mini", "chatgpt-4o-latest", "gpt-5-chat-latest"];
        assert!(!plain.map(reasons).contains(&true));
    }
}
