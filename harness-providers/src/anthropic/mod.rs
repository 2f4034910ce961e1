//! The Messages API of Anthropic.

mod decode;
mod encode;
mod schema;

use crate::bill::Bill;
use crate::endpoint::{Endpoint, settings};
use crate::{EnvError, Secret, env, exchange, sse};
use harness::async_trait;
use harness::llm::{CallCx, Caps, Llm, LlmError, ModelId, Reply, Request};

/// The name of the protocol, for opaque blocks and options.
const PROTOCOL: &str = "anthropic-messages";

/// A model that speaks the Messages API of Anthropic: `anthropic-messages`.
///
/// ```
/// use harness_providers::{Anthropic, Price, Prices, Secret};
///
/// let model = Anthropic::new("claude-sonnet-4-5", Secret::new("sk-ant-.."))
///     .max_tokens(16_384)
///     .prices(Prices::new().with("claude-sonnet-4-5", Price::new(3.0, 15.0)));
/// # let _ = model;
/// ```
///
/// # Settings
///
/// | of the request | is sent as |
/// |---|---|
/// | `max_tokens` | `max_tokens`, which the protocol requires: [`max_tokens`](Self::max_tokens) of the adapter if it is not set |
/// | `effort` | `output_config.effort`; `Minimal` is `low`, `Off` disables `thinking` |
/// | `schema` | `output_config.format`, with every object closed to other fields. What the API does not apply, such as `minimum`, `maxLength` or a recursive schema, fails as `Unsupported` |
/// | `tool_choice` | `tool_choice`; to require a call of a model that thinks fails as `Unsupported` |
/// | `cache` | `cache_control` of the last block up to the mark |
/// | `seed` | not at all: it fails as `Unsupported` |
/// | options of `anthropic-messages` | fields of the body, merged: `thinking`, `top_k`, more `tools` |
///
/// Reasoning goes back with its signature, to the same model, unless nothing follows it in its turn, which
/// the provider rejects. Arguments of a call that are not a JSON
/// object go back as `{}`, because the protocol takes nothing else.
#[derive(Debug)]
pub struct Anthropic {
    id: ModelId,
    caps: Caps,
    max_tokens: u32,
    endpoint: Endpoint,
}

settings!(Anthropic);

impl Anthropic {
    /// Creates a model by its name at the provider.
    pub fn new(model: impl Into<String>, key: impl Into<Secret>) -> Self {
        let mut endpoint =
            Endpoint { base_url: "https://api.anthropic.com".to_owned(), ..Endpoint::default() };
        endpoint.set_header("anthropic-version", "2023-06-01");
        endpoint.set_header("x-api-key", key.into().expose());
        let caps = Caps::default()
            .streaming(true)
            .tools(true)
            .tool_choice(true)
            .parallel_calls(true)
            .structured_output(true)
            .images(true)
            .documents(true)
            .reasoning(true);
        Self { id: ModelId::new("anthropic", model), caps, max_tokens: 8_192, endpoint }
    }

    /// Creates a model with the key of `ANTHROPIC_API_KEY`, at `ANTHROPIC_BASE_URL` if that is set.
    ///
    /// # Errors
    ///
    /// The key is not set.
    pub fn from_env(model: impl Into<String>) -> Result<Self, EnvError> {
        let made = Self::new(model, env::key("ANTHROPIC_API_KEY")?);
        Ok(match env::base_url("ANTHROPIC_BASE_URL") {
            Some(url) => made.base_url(url),
            None => made,
        })
    }

    /// Sets the token limit of replies to requests that have none. The default is 8,192.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }
}

#[async_trait]
impl Llm for Anthropic {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let streams = cx.is_listened_to() && self.caps.streaming;
        let body = encode::body(&self.id, self.max_tokens, &request, streams)?;
        let mut bill = Bill::new(cx, &self.endpoint.prices, self.id.model());
        let response = self
            .endpoint
            .post("/v1/messages", &body, cx, &self.id, &mut bill, decode::said)
            .await?;
        if streams {
            let events = sse::events(response.parts(), self.id.clone());
            let decoder = decode::Events::new(self.id.clone());
            return exchange::reply(self.id.clone(), events, decoder, cx, &mut bill).await;
        }
        let deltas = decode::message(&self.id, &response.whole().await?)?;
        exchange::whole(self.id.clone(), deltas, &mut bill)
    }
}
