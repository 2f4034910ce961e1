//! Asks a model for a patch, and asks again with the reason if the reply cannot be used.
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use harness_esg::patcher::{Patcher, PatcherError, Proposing, judge};
use harness_esg::{
    Diagnosis, Patch, Program, ProgramError, Provenance, ProvenanceKind, RulePatcher,
};

use super::calls::StepModel;
use super::patch::is_new;
use super::prompt::{SYSTEM, question, refused};
use super::reply;
use crate::context::Context;
use crate::llm::{CallCx, CallId, Llm, Request, Transcript, user};
use crate::step::Cx;

/// How often a model is asked for one patch, unless the program says otherwise.
const ROUNDS: u32 = 3;

/// Asks a model for a patch.
///
/// The model sees the diagnosis and the steps it involves, and no other code. A reply that is no patch,
/// does not apply, changes a step that it was not shown, hides the failure, or repeats what was
/// tried before is refused: the model receives the reason, for a bounded number of rounds. A patch that comes back
/// applies to the program as it is; whether it helps is known when the program has run.
///
/// ```
/// use harness::code::LlmPatcher;
/// use harness::esg::{Blobs, CPython, CodeGraph, Patcher as _, Program, Trust};
/// use harness::llm::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let program = Program::from_script("# %% load\nrows = [3, 1]\n# %% total\ntotal = sum(row)")?;
/// let python = CPython::find().trust(Trust::Mine).start()?;
/// let mut graph = CodeGraph::new(program, python, Blobs::memory());
/// graph.replay()?;
///
/// let model = Scripted::new(["The list is called `rows`.\n\nSTEP total\n<<<<<<< SEARCH\n\
///     total = sum(row)\n=======\ntotal = sum(rows)\n>>>>>>> REPLACE\n"]);
/// let patcher = LlmPatcher::new(model).agent("fixer").call("fix-1");
/// let Some(diagnosis) = graph.diagnose()? else { panic!("it fails") };
/// let patches = patcher.propose(&diagnosis, graph.program()).await?;
/// graph.edit(|program| program.patch(&patches[0]))?;
/// assert!(graph.replay()?.ok());
/// assert_eq!(graph.credit()[0].provenance.call.as_deref(), Some("fix-1-1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LlmPatcher {
    model: Arc<dyn Llm>,
    agent: Arc<str>,
    run: Option<Arc<str>>,
    call: Option<CallId>,
    cx: CallCx,
    rounds: u32,
    after_rules: bool,
    read_only: BTreeSet<Arc<str>>,
}

impl LlmPatcher {
    /// A patcher that asks this model.
    pub fn new(model: impl Llm) -> Self {
        Self {
            agent: model.id().to_string().into(),
            model: Arc::new(model),
            run: None,
            call: None,
            cx: CallCx::detached(),
            rounds: ROUNDS,
            after_rules: false,
            read_only: BTreeSet::new(),
        }
    }

    /// A patcher that asks this model on behalf of a step: the calls count in the budget of the run, their
    /// replies are recorded, and the provenance of patches has the agent, the run and the call.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use harness::code::{self, Code};
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Analysis { #[state(esg)] code: Code }
    /// # #[derive(Context)] struct Ctx { #[slot(runtime)] model: Arc<dyn Llm> }
    /// use harness::code::LlmPatcher;
    ///
    /// let repair = code::patch(|cx: &Cx<Ctx>| LlmPatcher::of_step(cx, &cx.model));
    /// # fn is_step(_: impl harness::step::Handler<Ctx, Analysis>) {}
    /// # is_step(repair);
    /// ```
    pub fn of_step<C: Context>(cx: &Cx<C>, model: &Arc<dyn Llm>) -> Self {
        Self::new(StepModel::new(cx, model))
            .agent(cx.agent_id().as_str())
            .run(cx.run_id().as_ref())
            .call(cx.op_id().to_string())
    }

    /// Sets the agent in the provenance of patches. By default it is the id of the model.
    #[must_use]
    pub fn agent(mut self, agent: &str) -> Self {
        self.agent = agent.into();
        self
    }

    /// Sets the run in the provenance of patches.
    #[must_use]
    pub fn run(mut self, run: &str) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Sets the id of the model calls, to which the number of the round is added. By default each
    /// proposal has a new one.
    #[must_use]
    pub fn call(mut self, id: impl Into<CallId>) -> Self {
        self.call = Some(id.into());
        self
    }

    /// Sets the context of the model calls: their meter, deadline and listener.
    #[must_use]
    pub fn context(mut self, cx: CallCx) -> Self {
        self.cx = cx;
        self
    }

    /// Sets how often the model is asked for one patch: at least once.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Proposes what [`RulePatcher`] knows, and asks the model only if no patch of it is new.
    #[must_use]
    pub fn after_rules(mut self) -> Self {
        self.after_rules = true;
        self
    }

    /// Adds code steps that no patch may change, such as tests. The model sees them where they are
    /// involved, and a reply that changes one is refused.
    #[must_use]
    pub fn read_only(mut self, steps: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.read_only.extend(steps.into_iter().map(Into::into));
        self
    }

    /// The first step of the patch that it must not change.
    fn forbidden<'a>(&self, patch: &'a Patch) -> Option<&'a Arc<str>> {
        patch.steps().find(|id| self.read_only.contains(*id))
    }

    async fn ask(&self, diagnosis: &Diagnosis, program: &Program) -> Result<Patch, PatcherError> {
        let shown = diagnosis.involved();
        let mut talk = Transcript::from_iter([user(question(diagnosis, program, &shown))]);
        let base = self.call.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string().into());
        let mut replies: Vec<String> = Vec::new();
        for round in 1..=self.rounds {
            let id = format!("{}-{round}", base.as_str());
            let request = Request::new(talk.sealed().map_err(PatcherError::new)?).system(SYSTEM);
            let cx = self.cx.clone().with_id(id.as_str());
            let reply = self.model.complete(request, &cx).await.map_err(PatcherError::new)?;
            let text = reply.text().unwrap_or_default();
            let why = match self.patch(&text, &id, diagnosis, program, &shown) {
                Ok(patch) => return Ok(patch),
                Err(why) => why,
            };
            if round == self.rounds || replies.contains(&text) {
                let repeats = replies.contains(&text);
                return Err(PatcherError::new(NoPatch { rounds: round, repeats, why }));
            }
            // Not the reply itself: it may hold tool calls, which nothing answers.
            talk.push(user(refused(&text, &why)));
            replies.push(text);
        }
        Err(PatcherError::new(NoPatch { rounds: self.rounds, repeats: false, why: String::new() }))
    }

    /// The patch of a reply, or why it cannot be used.
    fn patch(
        &self,
        text: &str,
        call: &str,
        diagnosis: &Diagnosis,
        program: &Program,
        shown: &[Arc<str>],
    ) -> Result<Patch, String> {
        let mut provenance = Provenance::new(ProvenanceKind::Patched)
            .agent(&self.agent)
            .call(call)
            .diagnosis(&diagnosis.error());
        provenance.run.clone_from(&self.run);
        let patch = reply::patch(text, shown)?.signed(provenance).pinned(program);
        if let Some(id) = self.forbidden(&patch) {
            return Err(format!("step `{id}` must stay as it is (change what it uses)"));
        }
        program.accepts(&patch).map_err(|error: ProgramError| error.to_string())?;
        for id in patch.steps() {
            let step = program.step(id).map_err(|error| error.to_string())?;
            let new = patch.preview(id, &step.source).map_err(|refusal| refusal.to_string())?;
            if let Some(version) = program.versions().iter().find(|version| {
                version.step == *id && *version.source == *new && version.id != step.version
            }) {
                return Err(format!(
                    "step `{id}` had exactly this source as {}, and it did not help (find another cause)",
                    version.id
                ));
            }
            if *id == diagnosis.raised_at().step {
                judge(&step.source, &new, &diagnosis.fault)
                    .map_err(|evasion| evasion.to_string())?;
            }
        }
        Ok(patch)
    }
}

impl Patcher for LlmPatcher {
    fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a> {
        Box::pin(async move {
            if self.after_rules {
                let mut known = RulePatcher.propose(diagnosis, program).await?;
                known.retain(|patch| self.forbidden(patch).is_none() && is_new(patch, program));
                if !known.is_empty() {
                    return Ok(known);
                }
            }
            Ok(vec![self.ask(diagnosis, program).await?])
        })
    }
}

impl fmt::Debug for LlmPatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmPatcher")
            .field("model", &self.model.id())
            .field("agent", &self.agent)
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}

/// A model returned no usable patch: the source of a [`PatcherError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model returned no usable patch in {rounds} rounds{}: the last reply was refused: {why}",
    if *.repeats { ", and repeats itself" } else { "" }
)]
#[non_exhaustive]
pub struct NoPatch {
    /// How often it was asked.
    pub rounds: u32,
    /// Whether it gave the same reply again, after the reason why it cannot be used.
    pub repeats: bool,
    /// Why the last reply cannot be used.
    pub why: String,
}
