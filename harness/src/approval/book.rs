//! Rules of an agent: a session of a loop that keeps them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::declare::Harness;
use crate::graph::BuildError;
use crate::inspect::{Sessions, SessionsError};
use crate::run::{OnBusy, RunError};
use crate::state::State;
use crate::step::{Answers, StepId};
use crate::store::SessionStore;

use super::Rule;

/// The agent whose sessions keep rules.
const RULES: &str = "harness.rules";

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Rules {
    #[state(reduce = upsert(id))]
    rules: Vec<Rule>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Keep,
}

/// The rules that hold for all sessions of an agent. They are the state of a session in a store, whose
/// log says when each was added and revoked.
///
/// ```
/// use harness::approval::{Arguments, Condition, Rule, RuleBook};
/// use harness::llm::ToolSpec;
/// use harness::store::MemoryStore;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let book = RuleBook::new(MemoryStore::new(), "support")?;
/// let send = ToolSpec::new("send", "Sends a note", json!({"type": "object"}));
/// let rule = Rule::allow(&send, Arguments::new().with("/to", Condition::equals("sam")));
/// book.add(rule.clone()).await?;
/// assert_eq!(book.list().await?, [rule.clone()]);
///
/// book.revoke(&rule.id).await?;
/// assert!(book.list().await?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RuleBook {
    agent: Agent<(), Rules>,
    sessions: Sessions,
    session: String,
}

/// A rule of an agent cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleBookError {
    /// The session that keeps the rules does not run.
    #[error("failed to change the rules of an agent: {0}")]
    Run(#[from] RunError),
    /// The session that keeps the rules does not settle.
    #[error("failed to change the rules of an agent: {0} (try again)")]
    Unsettled(String),
    /// The session that keeps the rules cannot be read.
    #[error("failed to read the rules of an agent: {0}")]
    Read(#[from] SessionsError),
    /// A rule was written by another version of this library.
    #[error("the rules of an agent do not decode: {0} (use the version that wrote them)")]
    Decode(String),
}

impl RuleBook {
    /// The rules of an agent, by its id, in a store.
    ///
    /// # Errors
    /// The loop that keeps them is not valid, which is a fault of this library.
    pub fn new(store: impl SessionStore, agent: impl Into<String>) -> Result<Self, BuildError> {
        Self::shared(Arc::new(store), agent)
    }

    /// [`new`](Self::new) for a store that is already shared.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn shared(
        store: Arc<dyn SessionStore>,
        agent: impl Into<String>,
    ) -> Result<Self, BuildError> {
        let session = format!("{RULES}/{}", agent.into());
        let agent = Harness::<(), Rules>::builder(RULES)
            .start(Step::Keep)
            .steps(|define, Step::Keep| {
                define.run(|_rules, _cx| async move { Ok(Rules::update()) }).end()
            })
            .build()?
            .agent(RULES, ())
            .shared_store(Arc::clone(&store));
        Ok(Self { agent, sessions: Sessions::shared(store), session })
    }

    /// The rules that have effect, in the order in which they were first added.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self) -> Result<Vec<Rule>, RuleBookError> {
        let mut rules = self.all().await?;
        rules.retain(|rule| !rule.is_revoked);
        Ok(rules)
    }

    /// Adds a rule, or gives a revoked one its effect back.
    ///
    /// # Errors
    /// The store failed.
    pub async fn add(&self, rule: Rule) -> Result<(), RuleBookError> {
        self.keep(rule).await
    }

    /// Revokes a rule. Returns whether there was one with effect.
    ///
    /// # Errors
    /// The store failed.
    pub async fn revoke(&self, id: &str) -> Result<bool, RuleBookError> {
        let rule = self.list().await?.into_iter().find(|rule| rule.id == id);
        match rule {
            Some(rule) => self.keep(rule.revoked()).await.map(|()| true),
            None => Ok(false),
        }
    }

    async fn all(&self) -> Result<Vec<Rule>, RuleBookError> {
        match self.sessions.state(&self.session).await {
            Ok(state) => serde_json::from_value::<Rules>(state)
                .map(|rules| rules.rules)
                .map_err(|error| RuleBookError::Decode(error.to_string())),
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    async fn keep(&self, rule: Rule) -> Result<(), RuleBookError> {
        let input = || Rules::update().rules([rule.clone()]);
        let run = || self.agent.run(input(), ()).session(&*self.session).on_busy(OnBusy::Wait);
        let outcome = match run().await {
            // The process of an earlier change has died. Its change is made first.
            Err(error) if error.is_unsettled() => {
                let resume = self.agent.resume(&*self.session, Answers::none(), ());
                resume.on_busy(OnBusy::Wait).await?;
                run().await?
            }
            outcome => outcome?,
        };
        match outcome.ended() {
            Ok(_) => Ok(()),
            Err(other) => Err(RuleBookError::Unsettled(other.to_string())),
        }
    }
}

impl fmt::Debug for RuleBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleBook").field("session", &self.session).finish_non_exhaustive()
    }
}
