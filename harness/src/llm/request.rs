//! Requests to models.

use super::{Sealed, ToolSet, ToolSpec};

/// A request to a model: the transcript, the tools and the options.
///
/// It borrows everything, so it is cheap to create. A provider that does not support part of a
/// request fails with [`LlmErrorKind::Unsupported`](super::LlmErrorKind) and omits nothing.
///
/// ```
/// use harness::llm::{Request, Transcript, user};
///
/// let talk = Transcript::from_iter([user("hi")]);
/// let request = Request::new(talk.sealed()?).system("be brief").max_tokens(100);
/// assert_eq!(request.max_tokens, Some(100));
/// # Ok::<(), harness::llm::Open>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The transcript.
    pub transcript: Sealed<'a>,
    /// The tools the model may call.
    pub tools: &'a [ToolSpec],
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The token limit of the reply.
    pub max_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
}

impl<'a> Request<'a> {
    /// Creates a request without tools and with the provider's defaults.
    pub fn new(transcript: Sealed<'a>) -> Self {
        Self { transcript, tools: &[], system: None, max_tokens: None, temperature: None }
    }

    /// Sets the tools the model may call.
    #[must_use]
    pub fn tools(mut self, tools: &'a ToolSet) -> Self {
        self.tools = tools.specs();
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(mut self, text: &'a str) -> Self {
        self.system = Some(text);
        self
    }

    /// Sets the token limit of the reply.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the sampling temperature.
    #[must_use]
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }
}
