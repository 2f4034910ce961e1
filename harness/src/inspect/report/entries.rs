//! Entries of a log in words.

use crate::session::{Change, End, Entry, ItemResult, Resolution};
use crate::step::{Interrupt, TOOL};
use crate::text::{prose, shown};

use super::changes::json;
#[cfg(feature = "code")]
use super::program::effect;
use super::tools;
use super::words::many;

/// The most bytes of a value in a line.
const MAX_VALUE: usize = 120;

/// An entry in a line of words, without what it did to the state. The line is text: a page has to escape
/// it as any other.
///
/// ```
/// use harness::inspect::report::describe;
/// use harness::session::Entry;
///
/// let entry = Entry::decode(br#"{"t":1,"commit":{"n":"Send"}}"#)?;
/// assert_eq!(describe(&entry), "committed, next Send");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn describe(entry: &Entry) -> String {
    let item = |item: Option<u32>| item.map(|at| format!(" of item {at}")).unwrap_or_default();
    match &entry.change {
        Change::Opened(opened) => match (&opened.from, &opened.parent) {
            (Some(from), _) => {
                format!("forked from {} at {}", shown(from.session.as_str()), from.seq)
            }
            (None, Some(parent)) => format!("started by {}", shown(parent.session.as_str())),
            (None, None) => format!("opened by agent {}", shown(opened.agent.as_str())),
        },
        Change::Adopted(_) => "adopted by another version of the program".to_owned(),
        Change::RunStarted(run) => match &run.start {
            Some(start) => format!("a turn begins at {}", shown(start)),
            None => "a run resumes".to_owned(),
        },
        Change::Recovered(_) => "recovered: the run before it did not settle".to_owned(),
        Change::Attempt(it) => {
            let message = prose(&it.failure.message);
            format!("attempt {}{} failed and is repeated: {message}", it.n, item(it.item))
        }
        Change::Intent(it) => format!("effect {}{} begins", shown(&it.key), item(it.item)),
        #[cfg(feature = "code")]
        Change::Effect(it) if let Some(words) = effect(it) => words,
        Change::Effect(it) => {
            let tool = it.key.starts_with(TOOL).then(|| tools::outcome(&it.value)).flatten();
            let value = match tool {
                Some(outcome) => prose(&outcome).into_owned(),
                None => json(&it.value, MAX_VALUE, false),
            };
            format!("effect {}{}: {value}", shown(&it.key), item(it.item))
        }
        Change::NotDone(it) => format!("effect {}{} did not happen", shown(&it.key), item(it.item)),
        Change::Asked(asked) => {
            let ask = |it: &Interrupt| {
                format!("asked {}: {}", shown(&it.name), json(&it.question, MAX_VALUE, false))
            };
            asked.interrupts.iter().map(ask).collect::<Vec<_>>().join("; ")
        }
        Change::Resolved(it) => resolution(&it.resolution),
        Change::Timer(_) => "waits for a timer".to_owned(),
        Change::Child(it) => {
            format!("session {} of agent {}", shown(it.session.as_str()), shown(it.agent.as_str()))
        }
        Change::ChildDone(it) => format!("session under {}: {}", shown(&it.key), end(&it.end)),
        Change::Planned(it) => many(it.items.len() as u64, "item", "items"),
        Change::Item(it) => match &it.result {
            ItemResult::Done(value) => {
                let value = match tools::done(value) {
                    Some(outcome) => prose(&outcome).into_owned(),
                    None => json(value, MAX_VALUE, false),
                };
                format!("item {} done: {value}", it.index)
            }
            ItemResult::Failed(failure) => {
                format!("item {} failed: {}", it.index, prose(&failure.message))
            }
        },
        Change::Committed(commit) => match &commit.next {
            Some(next) => format!("committed, next {}", shown(next)),
            None => "committed, the last step of the turn".to_owned(),
        },
        Change::Diverted(it) => {
            let message = prose(&it.failure.message);
            format!("{} failed, next {}: {message}", shown(&it.failure.step), shown(&it.next))
        }
        Change::Finishing(it) => format!("the last steps begin at {}", shown(&it.next)),
        Change::Settled(it) => end(&it.end),
        Change::Edited(it) => format!("{} edited the state: {}", shown(&it.by), prose(&it.why)),
        Change::Snapshot(_) => "snapshot".to_owned(),
        Change::Reserved(it) => shown(&it.kind).into_owned(),
    }
}

/// How a question was resolved.
pub(super) fn resolution(resolution: &Resolution) -> String {
    match resolution {
        Resolution::Answered { value, by, .. } => {
            let by = by.as_deref().unwrap_or("an unnamed user");
            format!("answered by {}: {}", shown(by), json(value, MAX_VALUE, false))
        }
        Resolution::Expired => "expired without an answer".to_owned(),
        Resolution::Withdrawn => "withdrawn".to_owned(),
    }
}

fn end(end: &End) -> String {
    match end {
        End::Failed { failure } => {
            format!("failed at {}: {}", shown(&failure.step), prose(&failure.message))
        }
        End::Ended { by: Some((_, signal)) } => format!("ended by {}", shown(signal)),
        End::Interrupted => "waits for an answer".to_owned(),
        other => other.to_string(),
    }
}
