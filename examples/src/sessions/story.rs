//! The entries of a log, in words.

use harness::UtcMillis;
use harness::session::{Change, Entry, HowEnded, End, Resolution};
use harness::state::Op;
use serde_json::Value;

use crate::repair::shown;

/// How much of a value is shown.
const MOST: usize = 60;

/// What an entry says, in a line.
#[must_use]
pub fn tell(entry: &Entry) -> String {
    match &entry.kind {
        Change::Opened(opened) => match &opened.from {
            Some(from) => format!("forked from {} at {}", shown(from.session.as_str()), from.seq),
            None => format!("opened by agent {}", shown(opened.agent.as_str())),
        },
        Change::Adopted(_) => "taken over by another version of the program".to_owned(),
        Change::RunStarted(run) => match &run.start {
            Some(start) => format!("a turn begins at {start}{}", changes(&run.ops)),
            None => "a run goes on".to_owned(),
        },
        Change::Recovered(_) => "the run before ended without a word: taken over".to_owned(),
        Change::Attempt(attempt) => {
            let failure = shown(&attempt.failure.message);
            format!("attempt {} at {} failed: {failure}", attempt.n, attempt.failure.step)
        }
        Change::Intent(intent) => format!("about to do {}", shown(&intent.key)),
        Change::Effect(effect) => {
            format!("did {}: {}", shown(&effect.key), short(&effect.value))
        }
        Change::Asked(asked) => {
            let ask = |question: &harness::Interrupt| {
                format!("asked {}: {}", shown(&question.name), short(&question.question))
            };
            asked.questions.iter().map(ask).collect::<Vec<_>>().join("; ")
        }
        Change::Resolved(resolved) => match &resolved.resolution {
            Resolution::Answered { value, by, .. } => {
                let by = by.as_deref().unwrap_or("somebody");
                format!("answered by {}: {}", shown(by), short(value))
            }
            Resolution::Expired => "not answered in time".to_owned(),
            Resolution::Withdrawn => "the question was withdrawn".to_owned(),
            _ => "the question was resolved".to_owned(),
        },
        Change::Committed(commit) => match &commit.next {
            Some(next) => format!("step done, next {next}{}", changes(&commit.ops)),
            None => format!("last step done{}", changes(&commit.ops)),
        },
        Change::Diverted(diverted) => {
            let Failed { step, message } = Failed::of(&diverted.failure);
            format!("{step} failed, next {}: {message}", diverted.next)
        }
        Change::Finishing(finishing) => format!("the last steps begin at {}", finishing.next),
        Change::Settled(settled) => settles(&settled.how),
        Change::Snapshot(_) => "snapshot".to_owned(),
        other => other.name().to_owned(),
    }
}

struct Failed<'a> {
    step: &'a str,
    message: String,
}

impl<'a> Failed<'a> {
    fn of(failure: &'a harness::Failure) -> Self {
        Self { step: &failure.step, message: shown(&failure.message) }
    }
}

fn settles(how: &End) -> String {
    match how {
        End::Turn(HowEnded::Ended { by: Some((_, signal)) }) => format!("ended by {signal}"),
        End::Turn(HowEnded::Failed { failure }) => {
            let Failed { step, message } = Failed::of(failure);
            format!("failed at {step}: {message}")
        }
        End::Turn(HowEnded::Exhausted { limit }) => format!("used up its budget of {limit}"),
        End::Turn(_) => "ended".to_owned(),
        End::Interrupted => "waits for an answer".to_owned(),
        End::Stopped => "stopped".to_owned(),
        End::Cancelled => "cancelled".to_owned(),
        _ => "settled".to_owned(),
    }
}

/// What the reducers did.
fn changes(ops: &[Op]) -> String {
    let told: Vec<String> = ops.iter().map(change).collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) }
}

fn change(op: &Op) -> String {
    let path = shown(&op.path().to_string());
    match op {
        Op::Set { value, .. } => format!("{path} = {}", short(value)),
        Op::Push { value, .. } | Op::Insert { value, .. } | Op::Upsert { value, .. } => {
            format!("{path} + {}", short(value))
        }
        Op::Put { key, value, .. } => format!("{path}.{} = {}", shown(key), short(value)),
        Op::Del { key, .. } => format!("{path} - {key:?}"),
    }
}

/// The beginning of a value, without anything that a terminal could obey.
fn short(value: &Value) -> String {
    let text = shown(&value.to_string());
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A moment, to the second, in UTC.
#[must_use]
pub fn moment(at: UtcMillis) -> String {
    match at.to_rfc3339() {
        Some(text) => text.split('.').next().unwrap_or(&text).replace('T', " "),
        None => at.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(entry: &str) -> String {
        tell(&Entry::decode(entry.as_bytes()).unwrap())
    }

    #[test]
    fn entries_are_told_in_words() {
        assert_eq!(
            told(r#"{"t":1,"commit":{"n":"Send","o":[{"push":{"p":["lines"],"v":"hi"}}]}}"#),
            r#"step done, next Send (lines + "hi")"#
        );
        assert_eq!(told(r#"{"t":1,"intent":{"k":"send"}}"#), "about to do send");
        assert_eq!(told(r#"{"t":1,"settle":{"how":"interrupted"}}"#), "waits for an answer");
    }

    #[test]
    fn nothing_of_a_log_is_obeyed_by_a_terminal() {
        let line = told("{\"t\":1,\"effect\":{\"k\":\"\\u001b[2J\",\"v\":\"\\u202e\"}}");
        assert!(!line.contains(['\u{1b}', '\u{202e}']), "{line:?}");
        let long = told(&format!(r#"{{"t":1,"effect":{{"k":"k","v":"{}"}}}}"#, "ä".repeat(99)));
        assert!(long.ends_with('…'), "{long}");
    }

    #[test]
    fn moments_are_told_to_the_second() {
        assert_eq!(moment(UtcMillis(951_782_400_123)), "2000-02-29 00:00:00");
    }
}
