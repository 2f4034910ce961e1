//! What a test says to the questions of a loop.

use std::any::type_name;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::question::Question;
use crate::state::{encode, to_json};
use crate::step::{Interrupt, StepId};

use super::error::Kind;

/// The question that a scripted answer is for: by the key of an inline question, or by the step of a
/// gate. Texts are keys, or names of steps; steps are those of a [`StepId`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    name: String,
    of: Of,
    item: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Key,
    Step,
    KeyOrStep,
}

impl Who {
    pub(super) fn key(key: impl Into<String>) -> Self {
        Self { name: key.into(), of: Of::Key, item: None }
    }

    pub(super) fn of_item(mut self, item: u32) -> Self {
        self.item = Some(item);
        self
    }

    /// Whether this is who asks.
    fn asks(&self, asked: &Interrupt) -> bool {
        let by_key = || asked.key.as_deref() == Some(&self.name);
        let by_step = || asked.key.is_none() && asked.step == self.name;
        let asks = match self.of {
            Of::Key => by_key(),
            Of::Step => by_step(),
            Of::KeyOrStep => by_key() || by_step(),
        };
        asks && (self.item.is_none() || self.item == asked.item)
    }
}

impl From<&str> for Who {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), of: Of::KeyOrStep, item: None }
    }
}

impl From<String> for Who {
    fn from(name: String) -> Self {
        Self { name, of: Of::KeyOrStep, item: None }
    }
}

impl<St: StepId> From<St> for Who {
    fn from(step: St) -> Self {
        Self { name: step.name().into_owned(), of: Of::Step, item: None }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            Of::Step => write!(f, "the gate `{}`", self.name)?,
            Of::Key | Of::KeyOrStep => write!(f, "`{}`", self.name)?,
        }
        match self.item {
            Some(item) => write!(f, " of item {item}"),
            None => Ok(()),
        }
    }
}

/// What a test says to a question.
#[derive(Clone, Debug)]
pub(super) enum Said {
    Answer(Value),
    /// It expires.
    Nothing,
}

impl Said {
    pub(super) fn answer(to: &Who, answer: &impl Serialize) -> Result<Self, Kind> {
        encode(answer).map(Self::Answer).map_err(|error| {
            let (to, why) = (to.to_string(), error.to_string());
            Kind::Unencodable { to, why }
        })
    }
}

type Replies = Box<dyn Fn(&Interrupt) -> Option<Result<Value, String>> + Send>;

/// What a test says to the questions of a loop, in the order in which it says it.
#[derive(Default)]
pub(super) struct Script {
    once: Vec<Once>,
    always: Vec<Always>,
    /// The first answer that could not be encoded.
    pub(super) broken: Option<Kind>,
}

/// What is said to one question.
struct Once {
    who: Who,
    said: Option<Said>,
}

/// What is said to every question of a type.
struct Always {
    question: &'static str,
    replies: Replies,
    used: bool,
}

impl Script {
    pub(super) fn say(&mut self, who: Who, said: Result<Said, Kind>) {
        match said {
            Ok(said) => self.once.push(Once { who, said: Some(said) }),
            Err(kind) => {
                self.broken.get_or_insert(kind);
            }
        }
    }

    pub(super) fn reply<Q: Question>(&mut self, reply: impl Fn(Q) -> Q::Answer + Send + 'static) {
        let replies = move |asked: &Interrupt| {
            let pending = asked.as_question::<Q>().ok()?;
            Some(to_json(&reply(pending.question)).map_err(|error| error.to_string()))
        };
        self.always.push(Always { question: Q::NAME, replies: Box::new(replies), used: false });
    }

    /// What is said to a question, with the name of who asks; `None` if nothing is.
    pub(super) fn said_to(&mut self, asked: &Interrupt) -> Result<Option<(String, Said)>, Kind> {
        let own = self.once.iter_mut().find(|it| it.said.is_some() && it.who.asks(asked));
        if let Some(Once { who, said }) = own {
            return Ok(said.take().map(|said| (who.to_string(), said)));
        }
        for always in &mut self.always {
            let Some(answer) = (always.replies)(asked) else { continue };
            always.used = true;
            let to = format!("every `{}`", always.question);
            return match answer {
                Ok(value) => Ok(Some((to, Said::Answer(value)))),
                Err(why) => Err(Kind::Unencodable { to, why }),
            };
        }
        Ok(None)
    }

    /// To whom answers were not used.
    pub(super) fn unused(&self) -> Vec<String> {
        let once = self.once.iter().filter(|it| it.said.is_some()).map(|it| it.who.to_string());
        let always = self.always.iter().filter(|it| !it.used);
        once.chain(always.map(|it| format!("every `{}`", it.question))).collect()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.unused()).finish()
    }
}

/// The slots that a test has not given.
#[derive(Debug)]
pub struct NoSlots(pub(super) ());

/// The slots of a step or a loop under test.
#[diagnostic::on_unimplemented(
    message = "the slots of `{C}` are not given",
    label = "call `.slots(..)` before awaiting this test",
    note = "a test of a step takes the context itself: `.slots({C} {{ .. }})`"
)]
pub trait Slotted<C> {
    #[doc(hidden)]
    fn take(self) -> C;
}

impl Slotted<()> for NoSlots {
    fn take(self) {}
}

impl<C> Slotted<C> for Slots<C> {
    fn take(self) -> C {
        self.0
    }
}

/// The slots that a test has given.
pub struct Slots<C>(pub(super) C);

impl<C> fmt::Debug for Slots<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slots({})", type_name::<C>())
    }
}
