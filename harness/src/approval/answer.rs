//! What a person answers, and the schema that an answer has to match.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::question::{DENIED, Question};

use super::Arguments;

/// The answer to the question whether a tool may be called.
///
/// As JSON it is an object with one field: `{"approve": {}}`, `{"reject": {"message": ".."}}` or
/// `{"steer": {"text": ".."}}`. Nothing else approves: an empty text, an empty object and an unknown
/// field are refused when the answer is given.
///
/// ```
/// use harness::approval::Approval;
/// use serde_json::json;
///
/// let smaller = Approval::approve().edited(json!({"order": "o-7", "cents": 500}));
/// let json = serde_json::to_value(&smaller)?;
/// assert_eq!(json, json!({"approve": {"edited": {"order": "o-7", "cents": 500}}}));
/// assert!(serde_json::from_value::<Approval>(json!({})).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Approval {
    /// The tool is called.
    Approve {
        /// The arguments to call it with, in place of those that were asked about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Value>,
        /// A rule for later calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<Remember>,
    },
    /// The tool is not called.
    Reject {
        /// The reason, which the model is sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The tool is not called, and the model is sent instructions in place of a result.
    Steer {
        /// The instructions.
        text: String,
    },
}

impl Approval {
    /// The tool is called with the arguments that were asked about.
    pub fn approve() -> Self {
        Self::Approve { edited: None, remember: None }
    }

    /// The same with other arguments. They have to match the schema of the tool, and no rule may deny
    /// them: the answer is refused otherwise. Has no effect on a rejection.
    #[must_use]
    pub fn edited(mut self, arguments: Value) -> Self {
        if let Self::Approve { edited, .. } = &mut self {
            *edited = Some(arguments);
        }
        self
    }

    /// The same, and later calls with such arguments are not asked about. Has no effect on a rejection.
    #[must_use]
    pub fn remember(mut self, scope: Scope, arguments: Arguments) -> Self {
        if let Self::Approve { remember, .. } = &mut self {
            *remember = Some(Remember { scope, arguments });
        }
        self
    }

    /// The tool is not called.
    pub fn reject() -> Self {
        Self::Reject { message: None }
    }

    /// The tool is not called, for this reason.
    pub fn reject_because(message: impl Into<String>) -> Self {
        Self::Reject { message: Some(message.into()) }
    }

    /// The tool is not called, and the model is sent instructions in place of a result.
    pub fn steer(text: impl Into<String>) -> Self {
        Self::Steer { text: text.into() }
    }
}

/// A rule for later calls of the same tool, as part of an [`Approval`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// How far it reaches.
    pub scope: Scope,
    /// The calls that it allows. It has to name every argument.
    pub arguments: Arguments,
}

/// How far a rule reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// This session.
    Session,
    /// All sessions of the agent, if it has a [`RuleBook`](super::RuleBook).
    Agent,
}

/// The question about a call of a tool that has no question of its own.
///
/// ```
/// use harness::Question;
/// use harness::approval::ApproveCall;
///
/// assert_eq!(ApproveCall::NAME, "approve_call");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApproveCall {
    /// The tool.
    pub tool: String,
    /// What the tool does.
    pub description: String,
    /// What a call does to the world, such as `external`.
    pub effect: String,
    /// The arguments.
    pub arguments: Value,
}

// Not derived, for the attribute: see `EffectInDoubt`.
#[diagnostic::do_not_recommend]
impl Question for ApproveCall {
    const NAME: &'static str = "approve_call";
    type Answer = Approval;
}

impl ApproveCall {
    pub(super) fn new(tool: &crate::llm::ToolSpec, arguments: Value) -> Self {
        Self {
            tool: tool.name.to_string(),
            description: tool.description.clone(),
            effect: tool.effect.to_string(),
            arguments,
        }
    }
}

impl JsonSchema for Approval {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Approval")
    }

    fn schema_id() -> Cow<'static, str> {
        Cow::Borrowed(concat!(module_path!(), "::Approval"))
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let schema = answers(json!({"type": "object"}), &[Scope::Session, Scope::Agent]);
        Schema::try_from(schema).unwrap_or_default()
    }
}

/// The schema of an answer about a call of a tool: edited arguments have to match the tool's schema,
/// and `denied` must not catch them.
pub(super) fn answer_schema(input_schema: &Value, denied: &[Arguments], scopes: &[Scope]) -> Value {
    let mut edited = input_schema.clone();
    if let Some(edited) = edited.as_object_mut() {
        // Its references are to itself.
        edited.entry("$id").or_insert_with(|| json!("urn:arguments"));
        if !denied.is_empty() {
            edited.insert(DENIED.to_owned(), json!(denied));
        }
    }
    answers(edited, scopes)
}

fn answers(edited: Value, scopes: &[Scope]) -> Value {
    let one = |name: &str, what: &str, fields: Value, required: Value| {
        json!({
            "description": what,
            "type": "object",
            "properties": {name: {
                "type": "object",
                "properties": fields,
                "required": required,
                "additionalProperties": false,
            }},
            "required": [name],
            "additionalProperties": false,
        })
    };
    json!({
        "title": "Approval",
        "description": "Whether a tool may be called.",
        "anyOf": [
            one("approve", "Call the tool.", json!({
                "edited": edited,
                "remember": remember(scopes),
            }), json!([])),
            one("reject", "Do not call the tool.", json!({
                "message": {"description": "The reason, for the model.", "type": "string"},
            }), json!([])),
            one("steer", "Do not call the tool, and instruct the model.", json!({
                "text": {"description": "The instructions.", "type": "string", "minLength": 1},
            }), json!(["text"])),
        ],
    })
}

fn remember(scopes: &[Scope]) -> Value {
    let one = |name: &str, of: Value| {
        json!({
            "type": "object",
            "properties": {name: of},
            "required": [name],
            "additionalProperties": false,
        })
    };
    json!({
        "description": "A rule for later calls: conditions by JSON pointer, one for every argument.",
        "type": "object",
        "properties": {
            "scope": {"enum": scopes},
            "arguments": {
                "type": "object",
                "additionalProperties": {"anyOf": [
                    {"const": "any"},
                    one("equals", json!(true)),
                    one("one_of", json!({"type": "array"})),
                    one("under", json!({"type": "string", "minLength": 1})),
                ]},
            },
        },
        "required": ["scope", "arguments"],
        "additionalProperties": false,
    })
}
