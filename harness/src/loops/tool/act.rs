//! Rules on calls, and makes them.

use std::sync::Arc;

use harness::approval::{Decision, Rule, Ruling, Scope, Settled};
use harness::context::Context;
use harness::llm::{Message, ToolCall, ToolCallId, ToolOutcome, Transcript};
use harness::{Cx, StepError, StepResult, View};
use serde::{Deserialize, Serialize};

use crate::loops::state::{Converses, ToolUse, kept, talk, update};

use super::settings::Settings;

/// A call that may be made or asked about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    call: ToolCall,
    ruling: Ruling,
}

impl Task {
    /// The id of its call.
    pub(super) fn key(&self) -> String {
        self.call.id.to_string()
    }
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Done {
    call: ToolCallId,
    outcome: ToolOutcome,
    /// A rule for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<Rule>,
}

/// Rules on the open calls. Those that are wrong or denied have their outcome.
pub(super) async fn rule<S: Converses, C: Context>(
    of: Arc<Settings<S, C>>,
    state: View<S>,
    cx: Cx<C>,
) -> StepResult<S> {
    let tools = (of.tools)(&cx);
    let mut rules = kept(&*state).rules.clone();
    rules.extend(of.policy.agent_rules().await?);
    let (mut rulings, mut outcomes) = (Vec::new(), Vec::new());
    for call in talk(&*state).open_calls() {
        let outcome = match of.policy.judge(&tools, &call, &rules) {
            Ok(ruling) => {
                let outcome = ruling.outcome();
                rulings.push(ruling);
                outcome
            }
            Err(outcome) => Some(outcome),
        };
        outcomes.extend(outcome.map(|outcome| Message::Outcome { call: call.id, outcome }));
    }
    Ok(update::<S>(outcomes, ToolUse::update().rulings(rulings)))
}

/// The open calls, each with its ruling.
pub(super) fn tasks(talk: &Transcript, kept: &ToolUse) -> Vec<Task> {
    let mut rulings = kept.rulings.iter().filter(|ruling| ruling.decision != Decision::Deny);
    let calls = talk.open_calls().into_iter();
    // Both are in the order of the calls.
    let ruled = calls.filter_map(|call| {
        let ruling = rulings.find(|ruling| ruling.call == call.id)?.clone();
        Some(Task { call, ruling })
    });
    ruled.collect()
}

/// Asks a person where the ruling says so, and makes the call.
pub(super) async fn act<S: Converses, C: Context>(
    of: Arc<Settings<S, C>>,
    Task { call, ruling }: Task,
    cx: Cx<C>,
) -> Result<Done, StepError> {
    let tools = (of.tools)(&cx);
    let id = call.id.clone();
    let (call, edited, remember) = match of.policy.settle(&cx, &tools, &call, &ruling).await? {
        Settled::Call { call, edited, remember } => (call, edited, remember),
        Settled::Outcome(outcome) => return Ok(Done { call: id, outcome, rule: None }),
    };
    let rule = match remember {
        Some((Scope::Agent, rule)) => {
            let policy = of.policy.clone();
            cx.once("remember", async move || Ok(policy.remember(rule).await?)).await?;
            None
        }
        Some((_, rule)) => Some(rule),
        None => None,
    };
    let calls = cx.call_tools(&tools, [call.clone()]);
    let calls = of.values.iter().fold(calls, |calls, give| give(&cx, calls));
    let made = calls.await?.into_iter().find_map(|message| match message {
        Message::Outcome { outcome, .. } => Some(outcome),
        _ => None,
    });
    let outcome = Settled::noted(&call, edited, made.unwrap_or(ToolOutcome::Skipped));
    Ok(Done { call: id, outcome, rule })
}

/// The outcomes of all calls, in their order.
pub(super) fn fold<S: Converses>(done: Vec<Done>) -> S::Update {
    let (mut outcomes, mut rules) = (Vec::new(), Vec::new());
    for Done { call, outcome, rule } in done {
        outcomes.push(Message::Outcome { call, outcome });
        rules.extend(rule);
    }
    update::<S>(outcomes, ToolUse::update().rulings(Vec::new()).rules(rules))
}
