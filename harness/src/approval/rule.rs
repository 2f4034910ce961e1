//! Rules that are remembered.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::llm::{ToolName, ToolSpec};

use super::{Arguments, Decision, Sha256};

/// A rule about later calls of one tool, in a session or a [`RuleBook`](super::RuleBook).
///
/// One that allows is bound to the tool as it was: after a change of its description, its schema or
/// its class, a person is asked again.
///
/// ```
/// use harness::approval::{Arguments, Condition, Rule};
/// use harness::llm::ToolSpec;
/// use serde_json::json;
///
/// let spec = ToolSpec::new("send", "Sends a note", json!({"type": "object"}));
/// let rule = Rule::allow(&spec, Arguments::new().with("/to", Condition::equals("sam")));
/// assert!(rule.clone().revoked().is_revoked);
/// # let _ = rule;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rule {
    /// The id, which is a digest of the rule.
    pub id: String,
    /// The tool.
    pub tool: ToolName,
    /// The digest of the tool.
    pub identity: Sha256,
    /// What becomes of a call.
    pub decision: Decision,
    /// The calls.
    pub arguments: Arguments,
    /// Whether it was revoked. It has no effect then.
    #[serde(default, rename = "revoked", skip_serializing_if = "is_false")]
    pub is_revoked: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(it: &bool) -> bool {
    !it
}

impl Rule {
    /// A rule that allows calls with such arguments.
    pub fn allow(tool: &ToolSpec, arguments: Arguments) -> Self {
        Self::new(tool, Decision::Allow, arguments)
    }

    /// A rule that denies calls with such arguments.
    pub fn deny(tool: &ToolSpec, arguments: Arguments) -> Self {
        Self::new(tool, Decision::Deny, arguments)
    }

    /// A rule that asks about calls with such arguments.
    pub fn ask(tool: &ToolSpec, arguments: Arguments) -> Self {
        Self::new(tool, Decision::Ask, arguments)
    }

    /// The same rule, without effect.
    #[must_use]
    pub fn revoked(mut self) -> Self {
        self.is_revoked = true;
        self
    }

    fn new(tool: &ToolSpec, decision: Decision, arguments: Arguments) -> Self {
        let identity = Sha256::of_tool(tool);
        let whole = Sha256::of(&json!({
            "tool": tool.name,
            "identity": identity,
            "decision": decision,
            "arguments": arguments,
        }));
        let id = whole.as_str().chars().take(16).collect();
        Self { id, tool: tool.name.clone(), identity, decision, arguments, is_revoked: false }
    }

    /// Whether it decides so about a call of a tool.
    pub(super) fn decides(
        &self,
        decision: Decision,
        tool: (&ToolName, &Sha256),
        arguments: &Value,
    ) -> bool {
        let (name, identity) = tool;
        let matches = || match decision {
            Decision::Allow => self.identity == *identity && self.arguments.allow(arguments),
            Decision::Ask | Decision::Deny => self.arguments.catch(arguments),
        };
        !self.is_revoked && self.decision == decision && self.tool == *name && matches()
    }
}
