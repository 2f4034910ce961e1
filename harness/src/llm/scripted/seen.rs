use crate::llm::{
    CacheMark, CallCx, CallId, Effort, Options, Request, ToolChoice, ToolSpec, Transcript,
};
use serde_json::Value;

/// A request that a [`Scripted`](super::Scripted) model received.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Seen {
    /// The id of the call.
    pub call: Option<CallId>,
    /// The transcript.
    pub transcript: Transcript,
    /// The tools the model could call.
    pub tools: Vec<ToolSpec>,
    /// Whether it could or had to call them.
    pub tool_choice: ToolChoice,
    /// The system prompt.
    pub system: Option<String>,
    /// The token limit of the reply.
    pub max_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
    /// The schema of the reply.
    pub schema: Option<Value>,
    /// The texts at which the model stops.
    pub stop_sequences: Vec<String>,
    /// The seed of the sampling.
    pub seed: Option<u64>,
    /// How much the model reasons.
    pub effort: Option<Effort>,
    /// Up to where the request is cached.
    pub cache: Vec<CacheMark>,
    /// The options of single protocols.
    pub options: Option<Options>,
    /// Whether the reply was listened to.
    pub streamed: bool,
}

impl Seen {
    pub(super) fn new(request: Request<'_>, cx: &CallCx) -> Self {
        Self {
            call: cx.id().cloned(),
            transcript: request.transcript.transcript().clone(),
            tools: request.tools.to_vec(),
            tool_choice: request.tool_choice.to_owned(),
            system: request.system.map(str::to_owned),
            max_tokens: request.max_tokens,
            temperature: request.temperature,
            schema: request.schema.map(|schema| schema.schema.clone()),
            stop_sequences: request.stop_sequences.iter().map(|&text| text.to_owned()).collect(),
            seed: request.seed,
            effort: request.effort,
            cache: request.cache.to_vec(),
            options: request.options.cloned(),
            streamed: cx.is_listened_to(),
        }
    }
}
