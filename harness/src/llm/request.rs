//! Requests to models.

use super::{CacheMark, Effort, Options, ResponseSchema, Sealed, ToolChoice, ToolSet, ToolSpec};
use serde::Serialize;
use serde_json::Value;

/// A request to a model: the transcript, the tools and the options.
///
/// It borrows everything, so it is cheap to create. Its JSON has all of it, so requests with the same
/// JSON are equal. A provider that does not support part of a
/// request fails with [`LlmErrorKind::Unsupported`](super::LlmErrorKind) and omits nothing.
///
/// ```
/// use harness::llm::{Effort, Request, Transcript, user};
///
/// let talk = Transcript::from_iter([user("hi")]);
/// let request =
///     Request::new(talk.sealed()?).system("be brief").max_tokens(100).effort(Effort::Low);
/// assert_eq!(request.max_tokens, Some(100));
/// # Ok::<(), harness::llm::Open>(())
/// ```
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The transcript.
    pub transcript: Sealed<'a>,
    /// The tools the model may call.
    pub tools: &'a [ToolSpec],
    /// Whether it may or must call them.
    pub tool_choice: ToolChoice<&'a str>,
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The token limit of the reply.
    pub max_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
    /// The schema that the text of the reply has to follow.
    pub schema: Option<ResponseSchema<'a>>,
    /// Texts at which the model stops.
    pub stop_sequences: &'a [&'a str],
    /// The seed of the sampling.
    pub seed: Option<u64>,
    /// How much it reasons.
    pub effort: Option<Effort>,
    /// Up to where the provider caches the request.
    pub cache: &'a [CacheMark],
    /// Options of single protocols.
    pub options: Option<&'a Options>,
}

impl<'a> Request<'a> {
    /// Creates a request without tools and with the provider's defaults.
    pub fn new(transcript: Sealed<'a>) -> Self {
        Self {
            transcript,
            tools: &[],
            tool_choice: ToolChoice::Auto,
            system: None,
            max_tokens: None,
            temperature: None,
            schema: None,
            stop_sequences: &[],
            seed: None,
            effort: None,
            cache: &[],
            options: None,
        }
    }

    /// Sets the tools the model may call.
    #[must_use]
    pub fn tools(mut self, tools: &'a ToolSet) -> Self {
        self.tools = tools.specs();
        self
    }

    /// Sets whether the model may or must call tools. Without tools it has no effect.
    #[must_use]
    pub fn tool_choice(mut self, choice: ToolChoice<&'a str>) -> Self {
        self.tool_choice = choice;
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

    /// Makes the text of the reply JSON that follows `schema`. In a step,
    /// [`extract`](crate::step::Calling::extract) does this, checks the reply and decodes it, with
    /// models that have no such setting too.
    #[must_use]
    pub fn schema(mut self, name: &'a str, schema: &'a Value) -> Self {
        self.schema = Some(ResponseSchema::new(name, schema));
        self
    }

    /// Sets texts at which the model stops.
    #[must_use]
    pub fn stop_sequences(mut self, texts: &'a [&'a str]) -> Self {
        self.stop_sequences = texts;
        self
    }

    /// Sets the seed of the sampling.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how much the model reasons.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = Some(effort);
        self
    }

    /// Sets up to where the provider caches the request.
    #[must_use]
    pub fn cache(mut self, marks: &'a [CacheMark]) -> Self {
        self.cache = marks;
        self
    }

    /// Sets options of single protocols.
    #[must_use]
    pub fn options(mut self, options: &'a Options) -> Self {
        self.options = Some(options);
        self
    }
}
