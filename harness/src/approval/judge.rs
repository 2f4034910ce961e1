//! Rules on a call, before anything is asked or done.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::{ToolCall, ToolCallId, ToolFailure, ToolOutcome, ToolSet, ToolSpec};
use crate::question::mismatch;

use super::{Arguments, Decision, Policy, Rule, Sha256};

/// What was decided about a call. It is plain data: a step commits it before another step acts by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ruling {
    /// The call.
    pub call: ToolCallId,
    /// The digest of the tool.
    pub tool: Sha256,
    /// The digest of the tool and the arguments.
    pub digest: Sha256,
    /// What was decided.
    pub decision: Decision,
    /// What edited arguments must not be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Arguments>,
}

impl Ruling {
    /// The outcome of the call, if it is denied.
    pub fn outcome(&self) -> Option<ToolOutcome> {
        (self.decision == Decision::Deny).then(denied)
    }
}

/// A call of a tool that there is, with arguments that match.
pub(super) struct Seen<'a> {
    pub(super) spec: &'a ToolSpec,
    pub(super) arguments: Value,
    pub(super) tool: Sha256,
    pub(super) digest: Sha256,
}

/// Looks the tool up and checks the arguments.
pub(super) fn seen<'a>(tools: &'a ToolSet, call: &ToolCall) -> Result<Seen<'a>, ToolOutcome> {
    let Some(spec) = tools.spec(&call.name) else {
        return Err(ToolOutcome::failed(ToolFailure::UnknownTool, tools.unknown(&call.name)));
    };
    let arguments = call.json().map_err(|error| bad(spec, &error.to_string()))?;
    if let Some(why) = mismatch(&spec.input_schema, &arguments) {
        return Err(bad(spec, &format!("the arguments of `{}` do not match: {why}", spec.name)));
    }
    let tool = Sha256::of_tool(spec);
    let digest = Sha256::of_call(&tool, &arguments);
    Ok(Seen { spec, arguments, tool, digest })
}

pub(super) fn bad(spec: &ToolSpec, why: &str) -> ToolOutcome {
    let text = format!("{why} (the arguments have to match {})", spec.input_schema);
    ToolOutcome::failed(ToolFailure::BadArguments, text)
}

pub(super) fn denied() -> ToolOutcome {
    ToolOutcome::Denied { reason: Some("the policy does not allow this call".to_owned()) }
}

impl Policy {
    /// Rules on a call. `rules` are those that were remembered: of the session, and
    /// [of the agent](Self::agent_rules).
    ///
    /// ```
    /// use harness::approval::{Decision, Policy};
    /// use harness::llm::{ToolCall, tool};
    /// use harness::prelude::*;
    /// use serde_json::Value;
    ///
    /// let pay = tool("pay", "Pays", async |_: Value| Ok("paid"));
    /// let tools = ToolSet::builder().with(pay).build()?;
    /// let ruling = Policy::new().judge(&tools, &ToolCall::new("c1", "pay", "{}"), &[]);
    /// assert_eq!(ruling.unwrap().decision, Decision::Ask);
    /// # Ok::<(), harness::llm::ToolSetError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such tool, or the arguments do not match it: the outcome for the model. No person is
    /// asked about such a call.
    pub fn judge(
        &self,
        tools: &ToolSet,
        call: &ToolCall,
        rules: &[Rule],
    ) -> Result<Ruling, ToolOutcome> {
        let Seen { spec, arguments, tool, digest } = seen(tools, call)?;
        let question = tools.approval(call).map_err(|error| bad(spec, &error.to_string()))?;
        let by_rule = |decision| {
            let of = (&call.name, &tool);
            rules.iter().any(|rule| rule.decides(decision, of, &arguments))
        };
        let decision = if self.denies(spec, &arguments) || by_rule(Decision::Deny) {
            Decision::Deny
        } else if self.asks(spec, &arguments) || by_rule(Decision::Ask) {
            Decision::Ask
        } else if by_rule(Decision::Allow) {
            Decision::Allow
        } else if question.is_some() {
            Decision::Ask
        } else if self.allows(spec, &arguments) {
            Decision::Allow
        } else {
            self.otherwise(spec)
        };
        let denied = match decision {
            Decision::Ask => {
                let rules = rules.iter().filter(|rule| {
                    !rule.is_revoked && rule.decision == Decision::Deny && rule.tool == spec.name
                });
                let rules = rules.map(|rule| rule.arguments.clone());
                self.denied_arguments(spec).chain(rules).collect()
            }
            Decision::Allow | Decision::Deny => Vec::new(),
        };
        Ok(Ruling { call: call.id.clone(), tool, digest, decision, denied })
    }
}
