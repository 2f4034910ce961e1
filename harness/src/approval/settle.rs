//! Acts by a ruling: asks where it says so, and gives the call that may be made.

use serde_json::{Value, json};

use crate::context::Context;
use crate::llm::{Content, Part, ToolCall, ToolOutcome, ToolSet};
use crate::question::mismatch;
use crate::step::{APPROVE, Cx, StepError};

use super::answer::answer_schema;
use super::judge::{Seen, bad, denied, seen};
use super::{Approval, ApproveCall, Decision, Policy, Remember, Rule, Ruling, Scope, Sha256};

/// What came of a ruling.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// The call may be made.
    Call {
        /// The call, with the arguments that were allowed or approved.
        call: ToolCall,
        /// Whether a person has changed the arguments.
        edited: bool,
        /// A rule that the person wants to be remembered, and how far it reaches.
        remember: Option<(Scope, Rule)>,
    },
    /// The call must not be made. It has this outcome.
    Outcome(ToolOutcome),
}

impl Settled {
    /// The outcome of a call that was made, with a note to the model if its arguments were changed.
    pub fn noted(call: &ToolCall, edited: bool, outcome: ToolOutcome) -> ToolOutcome {
        let note = |content: Content| {
            let text =
                format!("A person changed the arguments of this call to {}.\n", call.arguments);
            let parts = std::iter::once(Part::Text(text)).chain(content.iter().cloned());
            Content::from(parts.collect::<Vec<_>>())
        };
        match outcome {
            ToolOutcome::Ok(content) if edited => ToolOutcome::Ok(note(content)),
            ToolOutcome::Failed { kind, content } if edited => {
                ToolOutcome::Failed { kind, content: note(content) }
            }
            outcome => outcome,
        }
    }
}

impl Policy {
    /// Acts by a ruling: asks a person if it says so, or if the tool has changed since.
    ///
    /// The call that comes back has the arguments as the person saw them. Make it in the same attempt,
    /// with [`Cx::call_tools`](crate::Cx::call_tools).
    ///
    /// ```
    /// use harness::approval::{Policy, Ruling, Settled};
    /// use harness::llm::{Message, ToolCall};
    /// use harness::prelude::*;
    /// # #[derive(Context)] struct Ctx { tools: ToolSet, policy: Policy }
    ///
    /// async fn act(call: ToolCall, ruling: Ruling, cx: Cx<Ctx>) -> Result<Vec<Message>, StepError> {
    ///     match cx.policy.settle(&cx, &cx.tools, &call, &ruling).await? {
    ///         Settled::Call { call, .. } => cx.call_tools(&cx.tools, [call]).await,
    ///         Settled::Outcome(outcome) => Ok(vec![Message::Outcome { call: call.id, outcome }]),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// The question cannot be asked: see [`Cx::ask`](crate::Cx::ask).
    pub async fn settle<C: Context>(
        &self,
        cx: &Cx<C>,
        tools: &ToolSet,
        call: &ToolCall,
        ruling: &Ruling,
    ) -> Result<Settled, StepError> {
        let seen = match seen(tools, call) {
            Ok(seen) => seen,
            Err(outcome) => return Ok(Settled::Outcome(outcome)),
        };
        let same = seen.digest == ruling.digest;
        match ruling.decision {
            Decision::Deny => Ok(Settled::Outcome(denied())),
            Decision::Allow if same => {
                let call = with_arguments(call, &seen.arguments);
                Ok(Settled::Call { call, edited: false, remember: None })
            }
            Decision::Allow | Decision::Ask => self.ask_person(cx, tools, call, ruling, seen).await,
        }
    }

    async fn ask_person<C: Context>(
        &self,
        cx: &Cx<C>,
        tools: &ToolSet,
        call: &ToolCall,
        ruling: &Ruling,
        seen: Seen<'_>,
    ) -> Result<Settled, StepError> {
        let Seen { spec, arguments, digest, .. } = seen;
        let own = match tools.approval(call) {
            Ok(own) => own,
            Err(error) => return Ok(Settled::Outcome(bad(spec, &error.to_string()))),
        };
        let scopes: &[Scope] = match self.book {
            Some(_) => &[Scope::Session, Scope::Agent],
            None => &[Scope::Session],
        };
        let schema = answer_schema(&spec.input_schema, &ruling.denied, scopes);
        // An answer is to this tool, these arguments and this choice of answers: another one is
        // another question.
        let bound = Sha256::of(&json!([digest, schema]));
        let key = format!("{APPROVE}{}/{bound}", call.id);
        let question = ApproveCall::new(spec, arguments.clone());
        let mut ask = cx.ask(key, question).accepts(schema);
        if let Some(own) = own {
            ask = ask.worded(own.name, own.question);
        }
        if let Some(after) = self.expires {
            ask = ask.expires(after);
        }
        let (edited, remember) = match ask.await {
            Ok(Approval::Approve { edited, remember }) => (edited, remember),
            Ok(Approval::Reject { message }) => {
                return Ok(Settled::Outcome(ToolOutcome::Denied { reason: message }));
            }
            Ok(Approval::Steer { text }) => {
                return Ok(Settled::Outcome(ToolOutcome::Steered { content: text.into() }));
            }
            Err(error) if error.is_expired() => {
                let reason = Some("no person approved it in time".to_owned());
                return Ok(Settled::Outcome(ToolOutcome::Denied { reason }));
            }
            Err(error) => return Err(error.into()),
        };
        // Checked when the answer was given, too.
        if let Some(edited) = &edited {
            if let Some(why) = mismatch(&spec.input_schema, edited) {
                return Ok(Settled::Outcome(bad(spec, &why)));
            }
            if ruling.denied.iter().any(|conditions| conditions.catch(edited)) {
                return Ok(Settled::Outcome(denied()));
            }
        }
        let remember = remember.map(|Remember { scope, arguments }| {
            let rule = Rule::allow(spec, arguments);
            (scope, rule)
        });
        let call = with_arguments(call, edited.as_ref().unwrap_or(&arguments));
        Ok(Settled::Call { call, edited: edited.is_some(), remember })
    }
}

/// The call with arguments as they were ruled on: a tool never parses the model's text another way.
fn with_arguments(call: &ToolCall, arguments: &Value) -> ToolCall {
    ToolCall::new(call.id.clone(), call.name.clone(), arguments.to_string())
}
