//! What a model is asked.

use super::{Sealed, ToolSet, ToolSpec};

/// What a model is asked: the talk so far, and what it may do about it.
///
/// It borrows everything, so making one costs nothing. A provider that cannot express something in
/// it fails with [`LlmErrorKind::Unsupported`](super::LlmErrorKind) and leaves nothing out.
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
    /// The talk so far.
    pub transcript: Sealed<'a>,
    /// The tools the model may call.
    pub tools: &'a [ToolSpec],
    /// What the model is told before the talk.
    pub system: Option<&'a str>,
    /// How long the reply may be, in tokens.
    pub max_tokens: Option<u32>,
    /// How far the reply may stray from what is likeliest.
    pub temperature: Option<f32>,
}

impl<'a> Request<'a> {
    /// Makes a request of a transcript, without tools, and with the provider's defaults.
    pub fn new(transcript: Sealed<'a>) -> Self {
        Self { transcript, tools: &[], system: None, max_tokens: None, temperature: None }
    }

    /// Sets the tools the model may call.
    #[must_use]
    pub fn tools(mut self, tools: &'a ToolSet) -> Self {
        self.tools = tools.specs();
        self
    }

    /// Sets what the model is told before the talk.
    #[must_use]
    pub fn system(mut self, text: &'a str) -> Self {
        self.system = Some(text);
        self
    }

    /// Sets how long the reply may be, in tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets how far the reply may stray from what is likeliest.
    #[must_use]
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }
}
