//! What a program decides about calls before it runs.

use std::time::Duration;

use serde_json::Value;

use crate::llm::{EffectClass, ToolName, ToolSpec};

use super::{Arguments, Condition, Decision, Rule, RuleBook, RuleBookError};

/// Some of all possible calls: by the tool, its class, and the arguments.
///
/// ```
/// use harness::approval::{Calls, Condition};
/// use harness::llm::EffectClass;
///
/// let reads = Calls::of_class(EffectClass::Read);
/// let system_files = Calls::of("write_file").with("/path", Condition::under("/etc"));
/// # let _ = (reads, system_files);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    tool: Option<ToolName>,
    class: Option<EffectClass>,
    arguments: Option<Arguments>,
}

impl Calls {
    /// All calls.
    pub fn all() -> Self {
        Self::default()
    }

    /// The calls of a tool.
    pub fn of(tool: impl Into<ToolName>) -> Self {
        Self { tool: Some(tool.into()), ..Self::default() }
    }

    /// The calls of tools of a class.
    pub fn of_class(class: EffectClass) -> Self {
        Self { class: Some(class), ..Self::default() }
    }

    /// Those of them whose argument at a JSON pointer meets a condition. To be allowed, a call has to
    /// have a condition for each of its arguments; to be denied or asked about, it has not: see
    /// [`Arguments`].
    #[must_use]
    pub fn with(mut self, pointer: impl Into<String>, condition: Condition) -> Self {
        let arguments = self.arguments.take().unwrap_or_default();
        self.arguments = Some(arguments.with(pointer, condition));
        self
    }

    pub(super) fn has_tool(&self, spec: &ToolSpec) -> bool {
        self.tool.as_ref().is_none_or(|tool| *tool == spec.name)
            && self.class.is_none_or(|class| class == spec.effect)
    }

    /// The conditions under which a call of a tool that matches is caught.
    pub(super) fn conditions(&self) -> Arguments {
        self.arguments.clone().unwrap_or_default()
    }

    fn allow(&self, spec: &ToolSpec, arguments: &Value) -> bool {
        let named = |conditions: &Arguments| conditions.allow(arguments);
        self.has_tool(spec) && self.arguments.as_ref().is_none_or(named)
    }

    fn catch(&self, spec: &ToolSpec, arguments: &Value) -> bool {
        self.has_tool(spec) && self.arguments.as_ref().is_none_or(|it| it.catch(arguments))
    }
}

/// Decides about calls of tools. The [module](crate::approval) has the order of what decides.
///
/// The default allows reads and writes, and asks about external and destructive calls.
///
/// ```
/// use harness::approval::{Calls, Policy};
///
/// let careful = Policy::ask_all().allow(Calls::of("search")).deny(Calls::of("delete_account"));
/// # let _ = careful;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a policy has no effect until a loop has it"]
pub struct Policy {
    denied: Vec<Calls>,
    asked: Vec<Calls>,
    allowed: Vec<Calls>,
    /// For all classes; by the class if `None`.
    otherwise: Option<Decision>,
    pub(super) expires: Option<Duration>,
    pub(super) book: Option<RuleBook>,
}

impl Policy {
    /// The default: reads and writes are allowed, and a person is asked about the rest.
    pub fn new() -> Self {
        Self::default()
    }

    /// A person is asked about everything that nothing else decides.
    pub fn ask_all() -> Self {
        Self { otherwise: Some(Decision::Ask), ..Self::default() }
    }

    /// Everything that nothing else decides is allowed.
    pub fn allow_all() -> Self {
        Self { otherwise: Some(Decision::Allow), ..Self::default() }
    }

    /// Everything that nothing else decides is denied.
    pub fn deny_all() -> Self {
        Self { otherwise: Some(Decision::Deny), ..Self::default() }
    }

    /// Denies these calls.
    pub fn deny(mut self, calls: Calls) -> Self {
        self.denied.push(calls);
        self
    }

    /// Asks about these calls, each time: no remembered rule allows them.
    pub fn ask(mut self, calls: Calls) -> Self {
        self.asked.push(calls);
        self
    }

    /// Allows these calls, if their tool has no question of its own.
    pub fn allow(mut self, calls: Calls) -> Self {
        self.allowed.push(calls);
        self
    }

    /// How long a question waits for its answer. After that the call is denied.
    pub fn expires(mut self, after: Duration) -> Self {
        self.expires = Some(after);
        self
    }

    /// Lets an approval be remembered for all sessions of the agent, in this book.
    pub fn book(mut self, book: RuleBook) -> Self {
        self.book = Some(book);
        self
    }

    /// The rules of the agent's [book](Self::book), if it has one.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn agent_rules(&self) -> Result<Vec<Rule>, RuleBookError> {
        match &self.book {
            Some(book) => book.list().await,
            None => Ok(Vec::new()),
        }
    }

    /// Adds a rule to the agent's [book](Self::book). Without a book it has no effect.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn remember(&self, rule: Rule) -> Result<(), RuleBookError> {
        match &self.book {
            Some(book) => book.add(rule).await,
            None => Ok(()),
        }
    }

    pub(super) fn denies(&self, spec: &ToolSpec, arguments: &Value) -> bool {
        self.denied.iter().any(|calls| calls.catch(spec, arguments))
    }

    pub(super) fn asks(&self, spec: &ToolSpec, arguments: &Value) -> bool {
        self.asked.iter().any(|calls| calls.catch(spec, arguments))
    }

    pub(super) fn allows(&self, spec: &ToolSpec, arguments: &Value) -> bool {
        self.allowed.iter().any(|calls| calls.allow(spec, arguments))
    }

    /// What is decided about a tool if nothing else does.
    pub(super) fn otherwise(&self, spec: &ToolSpec) -> Decision {
        self.otherwise.unwrap_or(match spec.effect.is_guarded() {
            true => Decision::Ask,
            false => Decision::Allow,
        })
    }

    /// The conditions under which arguments of a tool are denied.
    pub(super) fn denied_arguments(&self, spec: &ToolSpec) -> impl Iterator<Item = Arguments> {
        self.denied.iter().filter(|calls| calls.has_tool(spec)).map(Calls::conditions)
    }
}
