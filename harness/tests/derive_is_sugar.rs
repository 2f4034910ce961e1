//! Each derive against the same thing written by hand.
#![allow(missing_docs, clippy::unwrap_used)]

use std::borrow::Cow;
use std::fmt::Debug;

use harness::context::{Slot, When};
use harness::state::{Append, Migration, Ops, Schema, encode, fold};
use harness::{Context, Question, Signal, State, StepId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// What an older version stored.
#[derive(Deserialize)]
struct Old {
    line: String,
}

mod derived {
    use super::*;

    pub(super) fn from_v1(old: Old) -> Result<Chat, String> {
        match old.line.as_str() {
            "" => Err("no line".to_owned()),
            _ => Ok(Chat {
                lines: vec![old.line],
                ..Chat::default()
            }),
        }
    }

    #[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[state(version = 2, migrate = from_v1)]
    pub(super) struct Chat {
        #[state(reduce = append)]
        pub(super) lines: Vec<String>,
        #[state(reduce = add)]
        pub(super) turns: u32,
        pub(super) answer: Option<String>,
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
}

mod by_hand {
    use super::*;

    fn from_v1(old: Old) -> Result<Chat, String> {
        match old.line.as_str() {
            "" => Err("no line".to_owned()),
            _ => Ok(Chat {
                lines: vec![old.line],
                ..Chat::default()
            }),
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
            let set: Vec<&str> = set
                .iter()
                .filter(|(_, set)| *set)
                .map(|(name, _)| *name)
                .collect();
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
                Slot {
                    name: "tools",
                    when: When::Fixed,
                    type_name: "Vec<u8>",
                },
                Slot {
                    name: "size",
                    when: When::Fixed,
                    type_name: "usize",
                },
                Slot {
                    name: "model",
                    when: When::Runtime,
                    type_name: "Box<str>",
                },
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
}

/// What can be seen of a state type: everything must agree.
fn observe<S: State + Debug>(updates: Vec<S::Update>) -> Vec<String> {
    let mut seen = vec![format!("{:?} {}", S::schema(), S::VERSION)];
    let mut state = S::default();
    for update in updates {
        let mut folded = encode(&state).unwrap();
        seen.push(format!("{update:?} {}", encode(&update).unwrap()));
        let mut ops = Ops::on();
        state.apply(update, &mut ops);
        let ops = ops.finish().unwrap();
        fold(&mut folded, &ops).unwrap();
        assert_eq!(folded, encode(&state).unwrap());
        seen.push(format!("{state:?} {ops:?}"));
    }
    for stored in [json!({"line": "x"}), json!({"line": ""}), json!(1)] {
        seen.push(match S::migration().unwrap().run(stored) {
            Ok(state) => format!("{state:?}"),
            Err(error) => error.to_string(),
        });
    }
    seen
}

fn decoded<T: DeserializeOwned + Debug>(stored: &Value) -> Result<T, String> {
    serde_json::from_value(stored.clone()).map_err(|error| error.to_string())
}

#[test]
fn state() {
    macro_rules! observed {
        ($chat:ty) => {{
            let update = <$chat>::update;
            let mut updates = vec![
                update(),
                update().lines(["a".to_owned()]).lines(vec!["b".to_owned()]),
                update().turns(1).turns(2).answer(Some("yes".to_owned())),
                update().answer(Some(String::new())).answer(None).r#type("x"),
            ];
            let mut refused = Vec::new();
            for stored in [
                json!({}),
                json!({"answer": null}),
                json!({"lines": [], "type": "t"}),
                json!({"lines": null}),
                json!({"line": []}),
                json!({"turns": -1}),
            ] {
                match decoded(&stored) {
                    Ok(update) => updates.push(update),
                    Err(error) => refused.push(error),
                }
            }
            let mut seen = observe::<$chat>(updates);
            seen.extend(refused);
            seen
        }};
    }
    let derived = observed!(derived::Chat);
    assert_eq!(derived, observed!(by_hand::Chat));
    assert_eq!(derived.len(), 1 + 2 * 7 + 3 + 3);
}

#[test]
fn context() {
    let fixed = derived::Ctx::fixed().size(3).tools(vec![1]).build();
    let runtime = derived::Ctx::runtime().model("m".into()).build();
    let derived = derived::Ctx::assemble(fixed.clone(), (), runtime);
    let by_hand = by_hand::Ctx::assemble((vec![1], 3), (), "m".into());
    assert_eq!(format!("{derived:?}"), format!("{by_hand:?}"));
    assert_eq!(derived::Ctx::slots(), by_hand::Ctx::slots());
    assert_eq!(<() as Context>::slots(), &[]);
}

#[test]
fn signal() {
    fn seen<S: Signal + Debug>() -> Vec<String> {
        let all = S::ALL
            .iter()
            .map(|one| format!("{one:?} {} {}", one.name(), one.index()));
        all.chain([S::NAME.to_owned()]).collect()
    }
    assert_eq!(seen::<derived::Next>(), seen::<by_hand::Next>());
}

#[test]
fn step_id() {
    fn seen<S: StepId>() -> Vec<String> {
        let all = S::all();
        let all = all
            .iter()
            .map(|one| format!("{one:?} {} {}", one.name(), one.index()));
        all.chain([S::NAME.to_owned()]).collect()
    }
    assert_eq!(seen::<derived::Step>(), seen::<by_hand::Step>());
}

#[test]
fn question() {
    fn seen<Q: Question>(question: Q) -> (String, &'static str, Value) {
        let schema = schemars::schema_for!(Q::Answer).to_value();
        (serde_json::to_string(&question).unwrap(), Q::NAME, schema)
    }
    let tool = "rm".to_owned();
    assert_eq!(
        seen(derived::ApproveCall { tool: tool.clone() }),
        seen(by_hand::ApproveCall { tool })
    );
    assert_eq!(seen(derived::Named::One).1, "named");
}
