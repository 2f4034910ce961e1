//! The names of attributes, spans and metrics: each is written here once.
//!
//! The conventions for generative AI are not stable. [`Names`] selects which of them are used: by
//! default those that back ends know, as an option the newest. What has no convention has the prefix
//! `harness.`.

/// Which names of the conventions for generative AI are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Names {
    /// The names up to version 1.41 of the conventions, which back ends know.
    #[default]
    Supported,
    /// The names of the newest version.
    Newest,
}

/// The operation: [`CHAT`], [`EXECUTE_TOOL`], [`INVOKE_AGENT`], [`INVOKE_WORKFLOW`].
pub const OPERATION: &str = "gen_ai.operation.name";
/// A model call.
pub const CHAT: &str = "chat";
/// A tool call.
pub const EXECUTE_TOOL: &str = "execute_tool";
/// A run of an agent.
pub const INVOKE_AGENT: &str = "invoke_agent";
/// A run that no other run has started, by the newest names.
pub const INVOKE_WORKFLOW: &str = "invoke_workflow";
/// The agent.
pub const AGENT: &str = "gen_ai.agent.name";
/// The loop of the agent.
pub const WORKFLOW: &str = "gen_ai.workflow.name";
/// The session.
pub const CONVERSATION: &str = "gen_ai.conversation.id";
/// The provider of the model.
pub const PROVIDER: &str = "gen_ai.provider.name";
/// The model that was called.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// The model that replied.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// Why the reply stopped.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// The tool.
pub const TOOL: &str = "gen_ai.tool.name";
/// The id of a tool call.
pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
/// The messages of a request, as JSON.
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// The reply, as JSON.
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
/// The system prompt, as JSON.
pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
/// The arguments of a tool call.
pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
/// The result of a tool call.
pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
/// The attributes that have the content of calls, which are cut where they are made.
pub(crate) const CONTENT: [&str; 5] =
    [INPUT_MESSAGES, OUTPUT_MESSAGES, SYSTEM_INSTRUCTIONS, TOOL_ARGUMENTS, TOOL_RESULT];
/// Tokens of the input.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens of the output.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Tokens of the input that were read from the provider's cache.
pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
/// Tokens of the output that the model reasoned with.
pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
/// `input` or `output`.
pub const TOKEN_TYPE: &str = "gen_ai.token.type";
/// The kind of an error.
pub const ERROR_TYPE: &str = "error.type";

/// Tokens of the input that were written to the provider's cache.
pub fn cache_write_tokens(names: Names) -> &'static str {
    match names {
        Names::Supported => "gen_ai.usage.cache_creation.input_tokens",
        Names::Newest => "gen_ai.usage.cache_write.input_tokens",
    }
}

/// A histogram of the tokens of model calls.
pub const TOKEN_USAGE: &str = "gen_ai.client.token.usage";
/// A histogram of the time of tool calls, in seconds.
pub const TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
/// A histogram of the time of runs, in seconds.
pub const AGENT_DURATION: &str = "gen_ai.invoke_agent.duration";

/// A histogram of the time of model calls, in seconds.
pub fn operation_duration(names: Names) -> &'static str {
    match names {
        Names::Supported => "gen_ai.client.operation.duration",
        Names::Newest => "gen_ai.client.inference.duration",
    }
}

/// The run.
pub const RUN: &str = "harness.run.id";
/// The run whose step started the run.
pub const PARENT_RUN: &str = "harness.run.parent";
/// How a run has settled.
pub const END: &str = "harness.run.end";
/// The steps that the turn has committed.
pub const STEPS: &str = "harness.run.steps";
/// The step.
pub const STEP: &str = "harness.step.name";
/// The entry into the step.
pub const POSITION: &str = "harness.step.position";
/// The item of a step.
pub const ITEM: &str = "harness.item.index";
/// What the item is called; of a tool loop's, the id of the call.
pub const ITEM_KEY: &str = "harness.item.key";
/// The attempt that opened the span.
pub const ATTEMPT: &str = "harness.step.attempt";
/// What came of a step, an item or a tool call.
pub const OUTCOME: &str = "harness.outcome";
/// The signal that a route returned.
pub const SIGNAL: &str = "harness.signal";
/// The next step.
pub const NEXT: &str = "harness.step.next";
/// The code steps that a replay has run.
pub const RAN: &str = "harness.replay.ran";
/// The code steps that an earlier attempt at the replay has run.
pub const RECORDED: &str = "harness.replay.recorded";
/// The entry in the log.
pub const SEQ: &str = "harness.commit.seq";
/// The size of that entry.
pub const BYTES: &str = "harness.commit.bytes";
/// The id of a model call.
pub const CALL: &str = "harness.call.id";
/// Whether a reply came from a cache.
pub const CACHED: &str = "harness.call.cached";
/// What a tool does to the world.
pub const TOOL_CLASS: &str = "harness.tool.class";
/// The cost in US dollars.
pub const COST: &str = "harness.cost.usd";
/// What a link leads to: `previous`, the run before; `answer` and `input`, where these were given;
/// `caller`, the step of another process that has called the run.
pub const RELATION: &str = "harness.relation";

/// A histogram of the time of steps, in seconds.
pub const STEP_DURATION: &str = "harness.step.duration";
/// Counts commits.
pub const COMMITS: &str = "harness.commits";
/// A histogram of the sizes of the entries of commits, in bytes.
pub const COMMIT_BYTES: &str = "harness.commit.size";
/// Counts interrupts by their [state](INTERRUPT_STATE).
pub const INTERRUPTS: &str = "harness.interrupts";
/// `asked`, `resolved` or `expired`.
pub const INTERRUPT_STATE: &str = "harness.interrupt.state";
/// Counts attempts that failed and are repeated.
pub const RETRIES: &str = "harness.retries";
/// Counts runs that have lost their lease.
pub const LEASE_LOSSES: &str = "harness.lease.losses";
/// Runs at work.
pub const ACTIVE_RUNS: &str = "harness.runs.active";
/// Runs of workers at work: how many of their places are taken.
pub const BUSY_WORKERS: &str = "harness.workers.busy";
/// A histogram of how long an input, an answer or a timer waited for a run, in seconds.
pub const QUEUE_AGE: &str = "harness.queue.age";
/// Why a run began.
pub const CAUSE: &str = "harness.run.cause";
/// Counts the cost of model calls in US dollars.
pub const SPENT: &str = "harness.cost";

/// The attribute for a field of one of the spans of `harness`; of `harness.run`, say, in the span `run`.
pub(crate) fn attribute(span: &str, field: &str, names: Names) -> Option<&'static str> {
    Some(match (span, field) {
        (_, "agent") => AGENT,
        (_, "harness") => WORKFLOW,
        (_, "session") => CONVERSATION,
        (_, "run") => RUN,
        (_, "parent_run") => PARENT_RUN,
        (_, "end") => END,
        (_, "steps") => STEPS,
        (_, "signal") => SIGNAL,
        (_, "step") => STEP,
        (_, "position") => POSITION,
        (_, "item") => ITEM,
        (_, "item_key") => ITEM_KEY,
        (_, "attempt") => ATTEMPT,
        (_, "outcome") => OUTCOME,
        (_, "next") => NEXT,
        (_, "seq") => SEQ,
        (_, "bytes") => BYTES,
        ("replay", "ran") => RAN,
        ("replay", "recorded") => RECORDED,
        ("tool", "call") => TOOL_CALL,
        (_, "call") => CALL,
        (_, "tool") => TOOL,
        (_, "class") => TOOL_CLASS,
        (_, "model") => REQUEST_MODEL,
        (_, "replied") => RESPONSE_MODEL,
        (_, "stop") => FINISH_REASONS,
        (_, "cached") => CACHED,
        (_, "error_kind") => ERROR_TYPE,
        (_, "input_tokens") => INPUT_TOKENS,
        (_, "output_tokens") => OUTPUT_TOKENS,
        (_, "cache_read_tokens") => CACHE_READ_TOKENS,
        (_, "cache_write_tokens") => cache_write_tokens(names),
        (_, "reasoning_tokens") => REASONING_TOKENS,
        (_, "cost_micros") => COST,
        _ => return None,
    })
}
