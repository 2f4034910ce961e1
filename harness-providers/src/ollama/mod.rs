//! The chat API of Ollama.

mod decode;
mod encode;
mod host;

use crate::bill::Bill;
use crate::endpoint::{Endpoint, settings};
use crate::made_ids::MadeIds;
use crate::{EnvError, Secret, env, exchange, ndjson};
use harness::async_trait;
use harness::llm::{CallCx, Caps, Llm, LlmError, ModelId, Reply, Request};

/// The name of the protocol, for opaque blocks and options.
const PROTOCOL: &str = "ollama-chat";

/// A model that a server of Ollama runs: `ollama-chat`.
///
/// ```
/// use harness_providers::Ollama;
///
/// let model = Ollama::new("qwen3").base_url("http://gpu-box:11434");
/// # let _ = model;
/// ```
///
/// # Settings
///
/// | of the request | is sent as |
/// |---|---|
/// | `max_tokens`, `temperature`, `seed`, `stop_sequences` | `options.num_predict`, `.temperature`, `.seed`, `.stop` |
/// | `effort` | `think`: `Off` is `false`, `Minimal` is `low` |
/// | `schema` | `format` |
/// | `tool_choice` | without tools for `None`; to require a call fails as `Unsupported` |
/// | `cache` | not at all: the server caches by itself |
/// | options of `ollama-chat` | fields of the body, merged: `keep_alive`, `options` such as `num_ctx` |
///
/// Images go inline only, and documents not at all. A request that is longer than the context fails as
/// `ContextLength`: by itself, the server would leave out the beginning of the conversation. The option
/// `{"truncate": true}` asks for that.
///
/// Thoughts go back to the same model. A call without an id gets one. Arguments that are not a JSON object
/// go back as `{}`.
#[derive(Debug)]
pub struct Ollama {
    id: ModelId,
    caps: Caps,
    endpoint: Endpoint,
}

settings!(Ollama);

impl Ollama {
    /// Creates a model by its name, at the server on this machine.
    pub fn new(model: impl Into<String>) -> Self {
        let endpoint = Endpoint { base_url: host::base_url(""), ..Endpoint::default() };
        let caps = Caps::default()
            .streaming(true)
            .tools(true)
            .parallel_calls(true)
            .structured_output(true)
            .images(true)
            .reasoning(true);
        Self { id: ModelId::new("ollama", model), caps, endpoint }
    }

    /// Creates a model at the server of `OLLAMA_HOST`, in the forms that the server takes itself, or else
    /// at the one on this machine. The key of `OLLAMA_API_KEY` is sent if it is set.
    ///
    /// # Errors
    ///
    /// None now. It returns a result as the other adapters do.
    pub fn from_env(model: impl Into<String>) -> Result<Self, EnvError> {
        let host = env::base_url("OLLAMA_HOST").unwrap_or_default();
        let made = Self::new(model).base_url(host::base_url(&host));
        Ok(match env::optional_key("OLLAMA_API_KEY") {
            Some(key) => made.key(key),
            None => made,
        })
    }

    /// Sends a key, which servers in a cloud require.
    #[must_use]
    pub fn key(mut self, key: impl Into<Secret>) -> Self {
        let bearer = format!("Bearer {}", key.into().expose());
        self.endpoint.set_header("authorization", &bearer);
        self
    }
}

#[async_trait]
impl Llm for Ollama {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let streams = cx.is_listened_to() && self.caps.streaming;
        let body = encode::body(&self.id, &request, streams)?;
        let ids = MadeIds::after(&request.transcript);
        let mut bill = Bill::new(cx, &self.endpoint.prices, self.id.model());
        let response =
            self.endpoint.post("/api/chat", &body, cx, &self.id, &mut bill, decode::said).await?;
        let decoder = decode::Events::new(self.id.clone(), ids);
        if streams {
            let lines = ndjson::lines(response.parts(), self.id.clone());
            return exchange::reply(self.id.clone(), lines, decoder, cx, &mut bill).await;
        }
        let deltas = decoder.whole(&response.whole().await?)?;
        exchange::whole(self.id.clone(), deltas, &mut bill)
    }
}
