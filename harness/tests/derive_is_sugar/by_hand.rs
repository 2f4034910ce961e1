//! The same types, implemented by hand.

use super::*;

fn from_v1(old: Old) -> Result<Chat, String> {
    match old.line.as_str() {
        "" => Err("no line".to_owned()),
        _ => Ok(Chat { lines: vec![old.line], ..Chat::default() }),
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Chat {
    pub(super) lines: Vec<String>,
    pub(super) turns: u32,
    pub(super) answer: Option<String>,
    pub(super) r#type: String,
}

fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ChatUpdate {
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<String>>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    turns: Option<u32>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    answer: Option<Option<String>>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    r#type: Option<String>,
}

impl ChatUpdate {
    pub(super) fn lines(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.lines.get_or_insert_default().extend(lines);
        self
    }

    pub(super) fn turns(mut self, turns: u32) -> Self {
        self.turns = Some(self.turns.unwrap_or(0).saturating_add(turns));
        self
    }

    pub(super) fn answer(mut self, answer: Option<String>) -> Self {
        self.answer = Some(answer);
        self
    }

    pub(super) fn r#type(mut self, r#type: impl Into<String>) -> Self {
        self.r#type = Some(r#type.into());
        self
    }
}

impl Debug for ChatUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let set = [
            ("lines", self.lines.is_some()),
            ("turns", self.turns.is_some()),
            ("answer", self.answer.is_some()),
            ("type", self.r#type.is_some()),
        ];
        let set: Vec<&str> = set.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
        match set.is_empty() {
            true => f.write_str("ChatUpdate {}"),
            false => write!(f, "ChatUpdate {{ {} }}", set.join(", ")),
        }
    }
}

impl State for Chat {
    type Update = ChatUpdate;

    const VERSION: u32 = 2;

    fn apply(&mut self, update: ChatUpdate, ops: &mut Ops) {
        if let Some(lines) = update.lines {
            self.lines.append_items(lines, &mut ops.field("lines"));
        }
        if let Some(turns) = update.turns {
            self.turns = self.turns.saturating_add(turns);
            ops.field("turns").set(&self.turns);
        }
        if let Some(answer) = update.answer {
            self.answer = answer;
            ops.field("answer").set(&self.answer);
        }
        if let Some(r#type) = update.r#type {
            self.r#type = r#type;
            ops.field("type").set(&self.r#type);
        }
    }

    fn schema() -> Schema {
        Schema::new(2)
            .field("lines", "Vec<String>", "append")
            .field("turns", "u32", "add")
            .field("answer", "Option<String>", "replace")
            .field("type", "String", "replace")
    }

    fn migration() -> Option<Migration<Self>> {
        Some(Migration::new(from_v1))
    }
}

impl Has<Vec<String>> for Chat {
    type Change = Vec<String>;

    fn part(&self) -> &Vec<String> {
        &self.lines
    }

    fn change(update: ChatUpdate, change: Vec<String>) -> ChatUpdate {
        update.lines(change)
    }
}

impl Has<u32> for Chat {
    type Change = u32;

    fn part(&self) -> &u32 {
        &self.turns
    }

    fn change(update: ChatUpdate, change: u32) -> ChatUpdate {
        update.turns(change)
    }
}

impl Has<Option<String>> for Chat {
    type Change = Option<String>;

    fn part(&self) -> &Option<String> {
        &self.answer
    }

    fn change(update: ChatUpdate, change: Option<String>) -> ChatUpdate {
        update.answer(change)
    }
}

impl Has<String> for Chat {
    type Change = String;

    fn part(&self) -> &String {
        &self.r#type
    }

    fn change(update: ChatUpdate, change: String) -> ChatUpdate {
        update.r#type(change)
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct Ctx {
    pub(super) tools: Vec<u8>,
    pub(super) size: usize,
    pub(super) model: Box<str>,
}

impl Context for Ctx {
    type Fixed = (Vec<u8>, usize);
    type Required = ();
    type Runtime = Box<str>;

    fn assemble((tools, size): Self::Fixed, (): (), model: Box<str>) -> Self {
        Self { tools, size, model }
    }

    fn slots() -> &'static [Slot] {
        &[
            Slot { name: "tools", when: When::Fixed, type_name: "Vec<u8>" },
            Slot { name: "size", when: When::Fixed, type_name: "usize" },
            Slot { name: "model", when: When::Runtime, type_name: "Box<str>" },
        ]
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    CallTools,
    Answer,
}

impl Signal for Next {
    const NAME: &'static str = "Next";
    const ALL: &'static [Self] = &[Self::CallTools, Self::Answer];

    fn name(self) -> &'static str {
        match self {
            Self::CallTools => "CallTools",
            Self::Answer => "Answer",
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Think,
    Act,
}

impl StepId for Step {
    type End = ();

    const NAME: &'static str = "Step";

    fn all() -> Vec<Self> {
        vec![Self::Think, Self::Act]
    }

    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Think => "Think".into(),
            Self::Act => "Act".into(),
        }
    }

    fn index(&self) -> usize {
        match self {
            Self::Think => 0,
            Self::Act => 1,
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ApproveCall {
    pub(super) tool: String,
}

impl Question for ApproveCall {
    const NAME: &'static str = "approve_call";
    type Answer = Option<bool>;
}
