//! The Chat Completions API.

mod decode;
mod encode;

use super::error::said;
use crate::bill::Bill;
use crate::endpoint::{Endpoint, settings};
use crate::{EnvError, Secret, env, exchange, sse};
use harness::async_trait;
use harness::llm::{CallCx, Caps, Llm, LlmError, ModelId, Reply, Request};

/// The name of the protocol, for options.
const PROTOCOL: &str = "openai-chat";

/// What differs between OpenAI and servers that speak its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    OpenAi,
    Compatible,
}

/// A model that speaks the Chat Completions API of OpenAI: `openai-chat`.
///
/// Many other servers speak it too:
///
/// ```
/// use harness_providers::{OpenAiChat, Secret};
///
/// let model = OpenAiChat::new("gpt-4.1", Secret::new("sk-.."));
/// let local = OpenAiChat::compatible("qwen3", "http://localhost:8000/v1");
/// let hosted = OpenAiChat::compatible("m-1", "https://api.example.com/v1").key("..");
/// # let _ = (model, local, hosted);
/// ```
///
/// A base URL has the version of the API, as in `https://api.openai.com/v1`.
///
/// # Settings
///
/// | of the request | is sent as |
/// |---|---|
/// | `max_tokens` | `max_completion_tokens`; to other servers `max_tokens`, because not all know the new name |
/// | `effort` | `reasoning_effort`; `Off` is `none` |
/// | `schema` | `response_format`, strict where strict schemas can say it: every object is closed and every property required, so that an optional one is written too. Others guide the model, and do not bind it |
/// | `stop_sequences` | `stop`; OpenAI takes four |
/// | `cache` | not at all: servers cache by themselves, and a mark changes no reply |
/// | options of `openai-chat` | fields of the body, merged: `top_p`, `verbosity` |
///
/// Images go by URL or inline, documents inline and as PDF only, outcomes of tools as text and JSON only.
/// The protocol does not mark an outcome as a failure, so the text of a failure begins with `error: `.
/// Reasoning that a server shows is read, and never sent back: the protocol has no place for it. A model
/// of OpenAI that reasons between its calls is better served by `OpenAiResponses`.
#[derive(Debug)]
pub struct OpenAiChat {
    id: ModelId,
    caps: Caps,
    dialect: Dialect,
    endpoint: Endpoint,
}

settings!(OpenAiChat);

impl OpenAiChat {
    /// Creates a model of OpenAI by its name.
    pub fn new(model: impl Into<String>, key: impl Into<Secret>) -> Self {
        let endpoint = super::endpoint(&key.into());
        let id = ModelId::new("openai", model);
        Self { id, caps: caps(), dialect: Dialect::OpenAi, endpoint }
    }

    /// Creates a model of another server that speaks the protocol, without a key.
    ///
    /// Its [`caps`](Self::caps) say that it can do what the protocol can; set them where it cannot.
    pub fn compatible(model: impl Into<String>, base_url: impl Into<String>) -> Self {
        let endpoint = Endpoint { base_url: base_url.into(), ..Endpoint::default() };
        let id = ModelId::new("openai-compatible", model);
        Self { id, caps: caps(), dialect: Dialect::Compatible, endpoint }
    }

    /// Creates a model of OpenAI with the key of `OPENAI_API_KEY`, at `OPENAI_BASE_URL` if that is
    /// set.
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

    /// Creates a model of the server at `OPENAI_COMPATIBLE_BASE_URL`, with the key of
    /// `OPENAI_COMPATIBLE_API_KEY` if that is set.
    ///
    /// # Errors
    ///
    /// The base URL is not set.
    pub fn compatible_from_env(model: impl Into<String>) -> Result<Self, EnvError> {
        const URL: &str = "OPENAI_COMPATIBLE_BASE_URL";
        let url = env::base_url(URL).ok_or(EnvError::NoBaseUrl { variable: URL })?;
        let made = Self::compatible(model, url);
        Ok(match env::optional_key("OPENAI_COMPATIBLE_API_KEY") {
            Some(key) => made.key(key),
            None => made,
        })
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Secret>) -> Self {
        super::authorize(&mut self.endpoint, &key.into());
        self
    }
}

fn caps() -> Caps {
    Caps::default()
        .streaming(true)
        .tools(true)
        .tool_choice(true)
        .parallel_calls(true)
        .structured_output(true)
        .images(true)
        .documents(true)
        .reasoning(true)
}

#[async_trait]
impl Llm for OpenAiChat {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let streams = cx.is_listened_to() && self.caps.streaming;
        let body = encode::body(&self.id, self.dialect, &request, streams)?;
        let mut bill = Bill::new(cx, &self.endpoint.prices, self.id.model());
        let response =
            self.endpoint.post("/chat/completions", &body, cx, &self.id, &mut bill, said).await?;
        if streams {
            let events = sse::events(response.parts(), self.id.clone());
            let decoder = decode::Events::new(self.id.clone());
            return exchange::reply(self.id.clone(), events, decoder, cx, &mut bill).await;
        }
        let deltas = decode::completion(&self.id, &response.whole().await?)?;
        exchange::whole(self.id.clone(), deltas, &mut bill)
    }
}
