//! The types with derives.

use super::*;

pub(super) fn from_v1(old: Old) -> Result<Chat, String> {
    match old.line.as_str() {
        "" => Err("no line".to_owned()),
        _ => Ok(Chat { lines: vec![old.line], ..Chat::default() }),
    }
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[state(version = 2, migrate = from_v1)]
pub(super) struct Chat {
    #[state(provides, reduce = append)]
    pub(super) lines: Vec<String>,
    #[state(reduce = add, provides)]
    pub(super) turns: u32,
    #[state(provides)]
    pub(super) answer: Option<String>,
    #[state(provides)]
    pub(super) r#type: String,
}

#[derive(Context, Debug, PartialEq)]
pub(super) struct Ctx {
    pub(super) tools: Vec<u8>,
    #[slot(fixed)]
    pub(super) size: usize,
    #[slot(runtime)]
    pub(super) model: Box<str>,
}

#[derive(Signal, Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    CallTools,
    Answer,
}

#[derive(StepId, Clone, Debug, PartialEq)]
pub(super) enum Step {
    Think,
    Act,
}

#[derive(Question, Debug, PartialEq, Serialize, Deserialize)]
#[question(answer = Option<bool>)]
pub(super) struct ApproveCall {
    pub(super) tool: String,
}

#[derive(Question, Serialize, Deserialize)]
#[question(name = "named", answer = u8)]
pub(super) enum Named {
    One,
}
