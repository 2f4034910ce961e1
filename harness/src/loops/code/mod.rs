//! The loop of an agent that writes a program, runs it and repairs it.
//!
//! ```text
//! Plan -> Write -> Run -> Review -> the end
//!                  |  ^
//!                  v  |
//!            Diagnose -> Patch
//! ```
//!
//! `Plan` asks the model for the parts of the program, and `Write` for their code. `Run` runs what an
//! edit affects. While the program fails, `Diagnose` finds the cause and `Patch` repairs it: by rules if
//! they know how, by the model if not. What cannot be patched is written again. `Review` asks a person,
//! if the loop is to.

mod settings;
mod state;

use std::fmt;
use std::sync::Arc;

use harness::code::{self, Bench, LlmPatcher, Reviewed};
use harness::context::Context;
use harness::declare::StepDef;
use harness::llm::{Llm, Request, Transcript, user};
use harness::{
    Budget, BuildError, Cx, Define, Harness, ResultExt as _, Retry, Signal, StepId, StepResult,
    View, end, to,
};

pub use state::{Assigned, Assignment, Coding, Part};

use settings::Settings;
use state::{assignment, code_of, update};

/// A step of the code loop.
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum CodeStep {
    /// The model is asked for the parts of the program.
    Plan,
    /// It is asked for the program.
    Write,
    /// What the last change affects is run.
    Run,
    /// The cause of a failure is looked for.
    Diagnose,
    /// The program is patched.
    Patch,
    /// A person is asked whether the program is right.
    Review,
    /// The turn fails: the program still does.
    GiveUp,
}

/// How the program ran.
#[derive(Signal, Clone, Copy, Debug)]
enum Ran {
    /// Every code step ended well.
    Works,
    /// One failed.
    Fails,
}

/// What a person decided.
#[derive(Signal, Clone, Copy, Debug)]
enum Decided {
    /// The program is right.
    Right,
    /// It is to be written again.
    Wrong,
}

/// The model was asked for the program as often as it may be, and the program still fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program was written {written} times and still fails: {error}")]
#[non_exhaustive]
pub struct Unrepaired {
    /// How often the program was written.
    pub written: u32,
    /// The error of its last run.
    pub error: String,
}

fn ran<S: Assigned>(state: &S) -> Ran {
    if code_of(state).is_ok() { Ran::Works } else { Ran::Fails }
}

fn decided<S: Assigned>(state: &S) -> Decided {
    match code_of(state).reviewed() {
        Some(Reviewed::Approved) => Decided::Right,
        _ => Decided::Wrong,
    }
}

/// The loop of an agent that writes a program, which [`code_loop`] makes: a harness of its own
/// ([`build`](Self::build)), or steps to nest into another loop ([`steps`](Self::steps)). Cheap to clone.
#[must_use = "a loop has no effect until it is built or nested"]
pub struct CodeLoop<S: Assigned, C: Context = ()> {
    settings: Arc<Settings<C>>,
    state: std::marker::PhantomData<fn(S)>,
}

/// Makes the loop of an agent that writes a program for a task, runs it, and repairs it until it works
/// and a person approves it.
///
/// ```
/// use harness::code::{Bench, ReviewCode, Reviewed};
/// use harness::esg::{Blobs, CPython, Trust};
/// use harness::loops::{Coding, code_loop};
/// use harness::prelude::*;
/// # use harness::llm::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// // A model would be an adapter. This one replies from a script, and misspells a name.
/// let model = Scripted::new([
///     r#"{"parts": [{"name": "load", "does": "the rows"}, {"name": "total", "does": "their sum"}]}"#,
///     "```python\n# %% load\nrows = [3, 1]\n# %% total\ntotal = sum(row)\n```",
/// ]);
/// let bench = Bench::new(|| CPython::find().trust(Trust::Mine).start(), Blobs::memory());
/// let agent = code_loop::<Coding>(model, bench).build()?.agent("analyst", ());
///
/// let run = agent.run(Coding::task("Add the rows up."), ());
/// let Outcome::Interrupted(waiting) = run.await? else { panic!("a person is asked") };
/// let review = waiting.pending::<ReviewCode>()?;
/// assert!(review.question.script.contains("total = sum(rows)"));
///
/// let ended = agent.resume(&waiting, review.answer(Reviewed::Approved), ()).await?.ended()?;
/// assert!(ended.state.code.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn code_loop<S: Assigned>(model: impl Llm, bench: Bench) -> CodeLoop<S> {
    let model: Arc<dyn Llm> = Arc::new(model);
    CodeLoop::from_context(move |()| Arc::clone(&model), move |()| bench.clone())
}

impl<S: Assigned, C: Context> CodeLoop<S, C> {
    /// The same for a context with slots, for example of a model that is given at each run.
    pub fn from_context(
        model: impl Fn(&C) -> Arc<dyn Llm> + Send + Sync + 'static,
        bench: impl Fn(&C) -> Bench + Send + Sync + 'static,
    ) -> Self {
        let settings = Arc::new(Settings::new(Arc::new(model), Arc::new(bench)));
        Self { settings, state: std::marker::PhantomData }
    }

    /// The name of the harness. The default is `code-loop`.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.change(|settings| settings.name = name.into())
    }

    /// How often the program is patched in one turn: 12 times without this. After that it is written
    /// again.
    pub fn max_patches(self, patches: u32) -> Self {
        self.change(|settings| settings.patches = patches)
    }

    /// How often the program is written in one turn: 3 times without this. After that the turn fails,
    /// with [`Unrepaired`].
    pub fn max_writes(self, writes: u32) -> Self {
        self.change(|settings| settings.writes = writes)
    }

    /// Whether a person is asked for an approval of the program that works. Without this, one is.
    pub fn reviewed(self, is_reviewed: bool) -> Self {
        self.change(|settings| settings.is_reviewed = is_reviewed)
    }

    /// The budget of a turn of the session, if the loop is built.
    pub fn budget(self, budget: Budget) -> Self {
        self.change(|settings| settings.budget = Some(budget))
    }

    /// The steps of the loop, to nest it into another one. The first step is [`CodeStep::Plan`].
    pub fn steps(&self, define: Define<C, S, CodeStep>, step: CodeStep) -> StepDef<C, S, CodeStep> {
        let of = &self.settings;
        let (model, bench) = (Arc::clone(&of.model), Arc::clone(&of.bench));
        let retry = Retry::exponential();
        match step {
            CodeStep::Plan => define
                .run(move |state, cx| plan::<S, C>(model(&cx), state, cx))
                .retry(retry)
                .then(CodeStep::Write),
            CodeStep::Write => define
                .handler(code::generate(move |cx: &C| model(cx), task_and_plan::<S>))
                .retry(retry)
                .at_most(of.writes, CodeStep::GiveUp)
                .then(CodeStep::Run),
            CodeStep::Run => {
                let works = of.is_reviewed;
                define.handler(code::execute(move |cx: &C| bench(cx))).retry(retry).route(
                    ran::<S>,
                    move |ran| match ran {
                        Ran::Works if works => to(CodeStep::Review),
                        Ran::Works => end(),
                        Ran::Fails => to(CodeStep::Diagnose),
                    },
                )
            }
            CodeStep::Diagnose => define
                .handler(code::diagnose(move |cx: &C| bench(cx)))
                .retry(retry)
                .then(CodeStep::Patch),
            CodeStep::Patch => define
                .handler(code::patch(move |cx: &Cx<C>| {
                    LlmPatcher::of_step(cx, &model(cx)).after_rules()
                }))
                .retry(retry)
                .on_error(CodeStep::Write)
                .at_most(of.patches, CodeStep::Write)
                .then(CodeStep::Run),
            CodeStep::Review if of.is_reviewed => {
                define.handler(code::review()).route(decided::<S>, |decided| match decided {
                    Decided::Right => end(),
                    Decided::Wrong => to(CodeStep::Write),
                })
            }
            CodeStep::Review => define.off("no person is asked for an approval"),
            CodeStep::GiveUp => {
                let written = of.writes;
                define.run(move |state, _cx| give_up::<S>(written, state)).end()
            }
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Settings<C>)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl<S: Assigned, C: Context<Fixed = ()>> CodeLoop<S, C> {
    /// Builds a harness of the loop alone.
    ///
    /// # Errors
    /// The loop is not valid, which is a fault of this library.
    pub fn build(self) -> Result<Harness<C, S>, BuildError> {
        let builder = Harness::<C, S>::builder(self.settings.name.clone()).start(CodeStep::Plan);
        let builder = match self.settings.budget {
            Some(budget) => builder.budget(budget),
            None => builder,
        };
        builder.steps(|define, step| self.steps(define, step)).build()
    }
}

impl<S: Assigned, C: Context> Clone for CodeLoop<S, C> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), state: std::marker::PhantomData }
    }
}

impl<S: Assigned, C: Context> fmt::Debug for CodeLoop<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeLoop").field("name", &self.settings.name).finish_non_exhaustive()
    }
}

/// What the model is asked for before it writes.
const PLAN: &str = "\
You plan a Python program for a task. Name its parts in the order in which they run: few, and each small enough \
that a change of it repeats little work. The name of a part is one word.";

/// A plan as the model returns it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Planned {
    parts: Vec<Part>,
}

async fn plan<S: Assigned, C: Context>(
    model: Arc<dyn Llm>,
    state: View<S>,
    cx: Cx<C>,
) -> StepResult<S> {
    let talk = Transcript::from_iter([user(assignment(&*state).task.clone())]);
    let request = Request::new(talk.sealed()?).system(PLAN);
    let planned: Planned = cx.llm(&*model).recorded("plan").extract_from(request).await?;
    Ok(update::<S>(Assignment::update().plan(planned.parts)))
}

/// The task with the plan: what the model that writes is asked for.
fn task_and_plan<S: Assigned>(state: &S) -> String {
    let Assignment { task, plan } = assignment(state);
    let parts = plan.iter().map(|part| format!("\n- {}: {}", part.name, part.does));
    let parts: String = parts.collect();
    match parts.is_empty() {
        true => task.clone(),
        false => format!("{task}\n\nThe parts of the program:{parts}"),
    }
}

async fn give_up<S: Assigned>(written: u32, state: View<S>) -> StepResult<S> {
    let error = code_of(&*state).diagnosis().map(|it| it.error()).unwrap_or_default();
    Err(Unrepaired { written, error }).fatal()
}
