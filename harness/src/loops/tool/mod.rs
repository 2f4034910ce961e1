//! The loop of an agent with tools.
//!
//! ```text
//! Think -> Rule -> Act -> Think -> .. -> the end
//! ```
//!
//! `Think` calls the model. `Rule` decides about each call, once, and commits what it decided. `Act` has
//! an item for each call: it asks a person where the ruling says so, and makes the call as an effect of
//! its class, so that wherever the process dies, no call and no approval happens twice.

mod act;
mod settings;
mod text;
mod think;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness::approval::Policy;
use harness::context::Context;
use harness::declare::StepDef;
use harness::llm::{Edit, Llm, Request, ToolSet, Transcript};
use harness::step::CallTools;
use harness::{Budget, BuildError, Cx, Define, Harness, Retry, Signal, StepError, StepId, end, to};

use super::state::{Converses, kept, talk};
use settings::{Compaction, Settings};

/// A step of the tool loop.
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The model is called.
    Think,
    /// Its calls of tools are ruled on.
    Rule,
    /// They are approved and made, each as an item of its own.
    Act,
    /// The model is called for the last time in a turn, without tools.
    Conclude,
}

/// Where a reply leads.
#[derive(Signal, Clone, Copy, Debug)]
enum Reply {
    /// It calls tools.
    Calls,
    /// It calls tools, but cannot be read: the model is asked again.
    Again,
    /// It is an answer.
    Answer,
}

/// Where rulings lead.
#[derive(Signal, Clone, Copy, Debug)]
enum Ruled {
    /// Some calls may be made, or asked about.
    Some,
    /// All calls have their outcome.
    None,
}

fn reply<S: Converses>(state: &S) -> Reply {
    let talk = talk(state);
    let last = talk.entries().last();
    if talk.has_open_calls() {
        Reply::Calls
    } else if last.is_some_and(|entry| matches!(entry, harness::llm::Entry::User(_))) {
        Reply::Again
    } else {
        Reply::Answer
    }
}

fn ruled<S: Converses>(state: &S) -> Ruled {
    if talk(state).has_open_calls() { Ruled::Some } else { Ruled::None }
}

/// The loop of an agent with tools, which [`tool_loop`] makes: a harness of its own
/// ([`build`](Self::build)), or steps to nest into another loop ([`steps`](Self::steps)). Cheap to
/// clone.
#[must_use = "a loop has no effect until it is built or nested"]
pub struct ToolLoop<S: Converses, C: Context = ()> {
    settings: Arc<Settings<S, C>>,
}

/// Makes the loop of an agent with tools, on any state with a [`Transcript`] and a
/// [`ToolUse`](super::ToolUse).
///
/// The model's calls are checked, ruled on by the [policy](ToolLoop::policy), approved by a person where
/// the policy asks, and made as effects of their class. A turn ends with a reply that calls no tool. The
/// next run of the session continues the conversation.
///
/// ```
/// use harness::approval::{Approval, Approve};
/// use harness::llm::tool;
/// use harness::loops::{Conversation, tool_loop};
/// use harness::prelude::*;
/// # use harness::llm::scripted::{Scripted, call, say};
/// # use serde_json::json;
///
/// #[derive(Deserialize, schemars::JsonSchema)]
/// struct Refund { order: String, cents: u64 }
///
/// #[derive(Question, Serialize, Deserialize)]
/// #[question(answer = Approval)]
/// struct ApproveRefund { order: String, cents: u64 }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let model = Scripted::new([call("refund", json!({"order": "o-7", "cents": 900})), say("Done.")]);
/// let refund = tool("refund", "Pays the money for an order back", async |refund: Refund| {
///     Ok(format!("paid {} cents for {}", refund.cents, refund.order))
/// })
/// .approve_with(|refund: &Refund| ApproveRefund {
///     order: refund.order.clone(),
///     cents: refund.cents,
/// });
/// let tools = ToolSet::builder().with(refund).build()?;
/// let agent = tool_loop::<Conversation>(model, tools)
///     .system("You help customers of a shop.")
///     .build()?
///     .agent("support", ());
///
/// let Outcome::Interrupted(waiting) = agent.run(Conversation::say("Refund o-7!"), ()).await? else {
///     panic!("a person is asked first");
/// };
/// let refund = waiting.pending::<ApproveRefund>()?;
/// assert_eq!(refund.question.cents, 900);
///
/// let less = Approval::approve().edited(json!({"order": "o-7", "cents": 500}));
/// let ended = agent.resume(&waiting, refund.answer(less).by("sam"), ()).await?.ended()?;
/// assert_eq!(ended.state.answer().as_deref(), Some("Done."));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub fn tool_loop<S: Converses>(model: impl Llm, tools: ToolSet) -> ToolLoop<S> {
    let model: Arc<dyn Llm> = Arc::new(model);
    ToolLoop::from_context(move |()| Arc::clone(&model), move |()| tools.clone())
}

impl<S: Converses, C: Context> ToolLoop<S, C> {
    /// The same for a context with slots, for example of a model that is given at each run.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use harness::loops::{Conversation, ToolLoop};
    /// use harness::prelude::*;
    ///
    /// #[derive(Context)]
    /// struct Ctx {
    ///     #[slot(required)]
    ///     tools: ToolSet,
    ///     #[slot(runtime)]
    ///     model: Arc<dyn Llm>,
    /// }
    ///
    /// let assistant = ToolLoop::<Conversation, Ctx>::from_context(
    ///     |cx| cx.model.clone(),
    ///     |cx| cx.tools.clone(),
    /// )
    /// .build()?;
    /// # let _ = assistant;
    /// # Ok::<(), harness::BuildError>(())
    /// ```
    pub fn from_context(
        model: impl Fn(&C) -> Arc<dyn Llm> + Send + Sync + 'static,
        tools: impl Fn(&C) -> ToolSet + Send + Sync + 'static,
    ) -> Self {
        Self { settings: Arc::new(Settings::new(Arc::new(model), Arc::new(tools))) }
    }

    /// The name of the harness. The default is `tool-loop`.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.change(|settings| settings.name = name.into())
    }

    /// Decides about calls. The default allows tools that read or write, and asks about the rest.
    pub fn policy(self, policy: Policy) -> Self {
        self.change(|settings| settings.policy = policy)
    }

    /// The instructions of the model.
    pub fn system(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.system_with(move |_| text.clone())
    }

    /// The instructions of the model, made of the state for each request.
    pub fn system_with(self, system: impl Fn(&S) -> String + Send + Sync + 'static) -> Self {
        self.change(|settings| settings.system = Some(Arc::new(system)))
    }

    /// Changes each request before it is sent: limits, a temperature, options.
    ///
    /// ```
    /// # use harness::loops::{Conversation, tool_loop};
    /// # let (model, tools) = (harness::llm::Scripted::new(["hi"]), harness::llm::ToolSet::default());
    /// let brief = tool_loop::<Conversation>(model, tools)
    ///     .request(|request| request.max_tokens(500).temperature(0.2));
    /// # let _ = brief;
    /// ```
    pub fn request(
        self,
        change: impl for<'a> Fn(Request<'a>) -> Request<'a> + Send + Sync + 'static,
    ) -> Self {
        self.change(|settings| settings.request = Some(Arc::new(change)))
    }

    /// How often the model is called with tools in one turn: 50 times without this. After that it is
    /// called once more, without tools, so that it concludes.
    pub fn max_turns(self, turns: u32) -> Self {
        self.change(|settings| settings.max_turns = turns)
    }

    /// The budget of a turn of the session, if the loop is built. It counts tokens and cost of every
    /// model call.
    pub fn budget(self, budget: Budget) -> Self {
        self.change(|settings| settings.budget = Some(budget))
    }

    /// How often a model call that failed is retried, and rules that could not be read. The default is [`Retry::exponential`].
    pub fn retry(self, retry: Retry) -> Self {
        self.change(|settings| settings.retry = retry)
    }

    /// The longest time of one model call.
    pub fn within(self, limit: Duration) -> Self {
        self.change(|settings| settings.within = Some(limit))
    }

    /// How many calls are made at a time: 8 without this. One that waits for an answer does not count.
    pub fn concurrency(self, calls: usize) -> Self {
        self.change(|settings| settings.concurrency = calls)
    }

    /// Streams also if no observer wants tokens.
    pub fn streamed(self) -> Self {
        self.change(|settings| settings.streamed = true)
    }

    /// Whether the model calls tools by JSON in its text. Without this, one does whose
    /// [`caps`](Llm::caps) lack tools.
    pub fn tools_in_text(self, in_text: bool) -> Self {
        self.change(|settings| settings.in_text = Some(in_text))
    }

    /// Gives the tools a value, which a parameter with `#[inject]` reads by its type.
    pub fn with<T: Clone + Send + Sync + 'static>(self, value: T) -> Self {
        self.with_from(move |_| value.clone())
    }

    /// The same with a value from the context.
    pub fn with_from<T: Send + Sync + 'static>(
        self,
        value: impl Fn(&C) -> T + Send + Sync + 'static,
    ) -> Self {
        self.change(|settings| {
            settings
                .values
                .push(Arc::new(move |cx: &Cx<C>, calls: CallTools<'_, C>| calls.with(value(cx))));
        })
    }

    /// Shortens the transcript before a request when the last one took more than `above` tokens, and
    /// when the model says that it is too long. `edits` says how; what it returns is committed with the
    /// reply.
    ///
    /// ```
    /// use harness::llm::{Edit, Transcript};
    /// use harness::loops::{Conversation, tool_loop};
    /// use harness::prelude::*;
    ///
    /// async fn forget(talk: Transcript, _cx: Cx<()>) -> Result<Vec<Edit>, StepError> {
    ///     Ok(vec![Edit::summarize(0..talk.len() - 2, "The user asked about the weather.")])
    /// }
    ///
    /// # let (model, tools) = (harness::llm::Scripted::new(["hi"]), ToolSet::default());
    /// let assistant = tool_loop::<Conversation>(model, tools).compact(100_000, forget);
    /// # let _ = assistant;
    /// ```
    ///
    /// An edit that cannot be made fails the step, and so does a transcript that stays too long.
    pub fn compact<F, Fut>(self, above: u64, edits: F) -> Self
    where
        F: Fn(Transcript, Cx<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Edit>, StepError>> + Send + 'static,
    {
        let edits: settings::Edits<C> = Arc::new(move |talk, cx| Box::pin(edits(talk, cx)));
        self.change(|settings| settings.compaction = Some(Compaction { above, edits }))
    }

    /// Defines a step, to nest the loop into another:
    ///
    /// ```
    /// use harness::loops::{self, Conversation, tool_loop};
    /// use harness::prelude::*;
    ///
    /// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// struct Report {
    ///     #[state(nest)]
    ///     research: Conversation,
    ///     text: Option<String>,
    /// }
    ///
    /// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    /// enum Step {
    ///     #[step(nest)]
    ///     Research(loops::Step),
    ///     Write,
    /// }
    ///
    /// async fn write(report: View<Report>, _cx: Cx<()>) -> StepResult<Report> {
    ///     Ok(Report::update().text(report.research.answer()))
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let (model, tools) = (harness::llm::Scripted::new(["It rains."]), ToolSet::default());
    /// let research = tool_loop::<Conversation>(model, tools);
    /// let reports = Harness::<(), Report>::builder("reports")
    ///     .start(Step::Research(loops::Step::Think))
    ///     .steps(|define, step| match step {
    ///         Step::Research(step) => define
    ///             .part(|report| &report.research, |research| Report::update().research(research))
    ///             .nest(Step::Research, |define, step| research.steps(define, step), step)
    ///             .then(Step::Write),
    ///         Step::Write => define.run(write).end(),
    ///     })
    ///     .build()?;
    /// let input = Report::update().research(Conversation::say("How is the weather?"));
    /// let ended = reports.agent("r", ()).run(input, ()).await?.ended()?;
    /// assert_eq!(ended.state.text.as_deref(), Some("It rains."));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// The first step is [`Step::Think`].
    pub fn steps(&self, define: Define<C, S, Step>, step: Step) -> StepDef<C, S, Step> {
        let of = Arc::clone(&self.settings);
        match step {
            Step::Think => {
                let (retry, most) = (of.retry, of.max_turns);
                define
                    .run(move |state, cx| think::think(Arc::clone(&of), state, cx, true))
                    .retry(retry)
                    .at_most(most, Step::Conclude)
                    .route(reply::<S>, |reply| match reply {
                        Reply::Calls => to(Step::Rule),
                        Reply::Again => to(Step::Think),
                        Reply::Answer => end(),
                    })
            }
            Step::Rule => define.run(move |state, cx| act::rule(Arc::clone(&of), state, cx)).route(
                ruled::<S>,
                |ruled| match ruled {
                    Ruled::Some => to(Step::Act),
                    Ruled::None => to(Step::Think),
                },
            ),
            Step::Act => {
                let concurrency = of.concurrency;
                define
                    .each(|state, _cx| async move { Ok(act::tasks(talk(&*state), kept(&*state))) })
                    .key(act::Task::key)
                    .concurrency(concurrency)
                    .run(move |task, _state, cx| act::act(Arc::clone(&of), task, cx))
                    .fold(|_state, done| Ok(act::fold::<S>(done)))
                    .then(Step::Think)
            }
            Step::Conclude => {
                let retry = of.retry;
                define
                    .run(move |state, cx| think::think(Arc::clone(&of), state, cx, false))
                    .retry(retry)
                    .end()
            }
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Settings<S, C>)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl<S: Converses, C: Context<Fixed = ()>> ToolLoop<S, C> {
    /// Builds a harness of the loop alone.
    ///
    /// # Errors
    /// The loop is not valid, which is a fault of this library.
    pub fn build(self) -> Result<Harness<C, S>, BuildError> {
        let builder = Harness::<C, S>::builder(self.settings.name.clone()).start(Step::Think);
        let builder = match self.settings.budget {
            Some(budget) => builder.budget(budget),
            None => builder,
        };
        builder.steps(|define, step| self.steps(define, step)).build()
    }
}

impl<S: Converses, C: Context> Clone for ToolLoop<S, C> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings) }
    }
}

impl<S: Converses, C: Context> fmt::Debug for ToolLoop<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolLoop").field("name", &self.settings.name).finish_non_exhaustive()
    }
}
