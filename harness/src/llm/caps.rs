//! What a model can do.

/// What a model can do. The default is nothing but text, with an unknown context size.
///
/// It informs, and forbids nothing: an adapter fails with
/// [`Unsupported`](super::LlmErrorKind::Unsupported) if it cannot express a request.
///
/// ```
/// use harness::llm::Caps;
///
/// let caps = Caps::default().tools(true).context_tokens(200_000);
/// assert!(caps.tools && !caps.images);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caps {
    /// Replies arrive in parts.
    pub streaming: bool,
    /// It calls tools.
    pub tools: bool,
    /// It can be made to call a tool, or one by name.
    pub tool_choice: bool,
    /// It calls several tools in one turn.
    pub parallel_calls: bool,
    /// Its replies can follow a JSON schema.
    pub structured_output: bool,
    /// It reads images.
    pub images: bool,
    /// It reads documents.
    pub documents: bool,
    /// It reasons before it replies.
    pub reasoning: bool,
    /// The most tokens of a request and its reply, if known.
    pub context_tokens: Option<u64>,
}

macro_rules! setters {
    ($($name:ident),+) => {$(
        #[doc = concat!("Sets `", stringify!($name), "`.")]
        #[must_use]
        pub const fn $name(mut self, can: bool) -> Self {
            self.$name = can;
            self
        }
    )+};
}

impl Caps {
    setters!(
        streaming,
        tools,
        tool_choice,
        parallel_calls,
        structured_output,
        images,
        documents,
        reasoning
    );

    /// Sets `context_tokens`.
    #[must_use]
    pub const fn context_tokens(mut self, tokens: u64) -> Self {
        self.context_tokens = Some(tokens);
        self
    }
}
