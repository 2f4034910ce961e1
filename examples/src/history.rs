//! The log of a session: reading it, and each entry in words.

use harness::inspect::SessionsError;
use harness::session::{Change, End, Entry, Resolution};
use harness::state::Op;
use harness::{Interrupt, Seq, Sessions, UtcMillis};
use serde_json::Value;

use crate::text::shown;

/// How many entries are read at once.
const PAGE: usize = 256;

/// How many characters of a value are shown.
const MAX_VALUE: usize = 60;

/// The log of a session, oldest entries first, without the entries that were pruned.
///
/// # Errors
/// As of [`Sessions::history`].
pub async fn log(sessions: &Sessions, id: &str) -> Result<Vec<(Seq, Entry)>, SessionsError> {
    let mut entries = Vec::new();
    let mut from = match sessions.history(id, Seq(0), PAGE).await {
        Err(error) if error.is_pruned() => error.pruned(),
        first => {
            let page = first?;
            entries.extend(page.entries);
            page.next
        }
    };
    while let Some(seq) = from {
        let page = sessions.history(id, seq, PAGE).await?;
        entries.extend(page.entries);
        from = page.next;
    }
    Ok(entries)
}

/// The last question of a log, answered or not.
#[must_use]
pub fn last_question(log: &[(Seq, Entry)]) -> Option<&Interrupt> {
    log.iter().rev().find_map(|(_, entry)| match &entry.change {
        Change::Asked(asked) => asked.interrupts.last(),
        _ => None,
    })
}

/// One entry, in a line of words.
#[must_use]
pub fn describe(entry: &Entry) -> String {
    match &entry.change {
        Change::Opened(opened) => match &opened.from {
            Some(from) => format!("forked from {} at {}", shown(from.session.as_str()), from.seq),
            None => format!("opened by agent {}", shown(opened.agent.as_str())),
        },
        Change::Adopted(_) => "adopted by another version of the program".to_owned(),
        Change::RunStarted(run) => match &run.start {
            Some(start) => format!("a turn begins at {start}{}", changes(&run.ops)),
            None => "a run resumes".to_owned(),
        },
        Change::Recovered(_) => "recovered: the run before it did not settle".to_owned(),
        Change::Attempt(attempt) => {
            let message = shown(&attempt.failure.message);
            format!("attempt {} at {} failed: {message}", attempt.n, attempt.failure.step)
        }
        Change::Intent(intent) => format!("effect {} begins", shown(&intent.key)),
        Change::Effect(effect) => {
            format!("effect {}: {}", shown(&effect.key), short(&effect.value))
        }
        Change::Asked(asked) => {
            let ask = |question: &Interrupt| {
                format!("asked {}: {}", shown(&question.name), short(&question.question))
            };
            asked.interrupts.iter().map(ask).collect::<Vec<_>>().join("; ")
        }
        Change::Resolved(resolved) => match &resolved.resolution {
            Resolution::Answered { value, by, .. } => {
                let by = by.as_deref().unwrap_or("an unknown user");
                format!("answered by {}: {}", shown(by), short(value))
            }
            Resolution::Expired => "not answered in time".to_owned(),
            Resolution::Withdrawn => "the question was withdrawn".to_owned(),
            _ => "the question was resolved".to_owned(),
        },
        Change::Committed(commit) => match &commit.next {
            Some(next) => format!("step committed, next {next}{}", changes(&commit.ops)),
            None => format!("last step committed{}", changes(&commit.ops)),
        },
        Change::Diverted(diverted) => {
            let failure = &diverted.failure;
            let message = shown(&failure.message);
            format!("{} failed, next {}: {message}", failure.step, diverted.next)
        }
        Change::Finishing(finishing) => format!("the last steps begin at {}", finishing.next),
        Change::Settled(settled) => settles(&settled.end),
        Change::Edited(edited) => {
            format!("{} edited the state{}", shown(&edited.by), changes(&edited.ops))
        }
        Change::Snapshot(_) => "snapshot".to_owned(),
        other => other.name().to_owned(),
    }
}

fn settles(end: &End) -> String {
    match end {
        End::Ended { by: Some((_, signal)) } => format!("ended by {signal}"),
        End::Failed { failure } => {
            format!("failed at {}: {}", failure.step, shown(&failure.message))
        }
        End::Exhausted { limit } => format!("exhausted its {limit}"),
        End::Ended { .. } => "ended".to_owned(),
        End::Interrupted => "waits for an answer".to_owned(),
        End::Stopped => "stopped".to_owned(),
        End::Cancelled => "cancelled".to_owned(),
        _ => "settled".to_owned(),
    }
}

/// What the reducers did.
fn changes(ops: &[Op]) -> String {
    let changes: Vec<String> = ops.iter().map(change).collect();
    if changes.is_empty() { String::new() } else { format!(" ({})", changes.join(", ")) }
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

/// The beginning of a value.
fn short(value: &Value) -> String {
    let text = shown(&value.to_string());
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A time in UTC, to the second.
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

    fn described(entry: &str) -> String {
        describe(&Entry::decode(entry.as_bytes()).unwrap())
    }

    #[test]
    fn entries_are_described_in_words() {
        assert_eq!(
            described(r#"{"t":1,"commit":{"n":"Send","o":[{"push":{"p":["lines"],"v":"hi"}}]}}"#),
            r#"step committed, next Send (lines + "hi")"#
        );
        assert_eq!(described(r#"{"t":1,"intent":{"k":"send"}}"#), "effect send begins");
        assert_eq!(
            described(r#"{"t":1,"settle":{"end":{"as":"interrupted"}}}"#),
            "waits for an answer"
        );
    }

    #[test]
    fn control_characters_of_a_log_do_not_reach_the_terminal() {
        let line = described("{\"t\":1,\"effect\":{\"k\":\"\\u001b[2J\",\"v\":\"\\u202e\"}}");
        assert!(!line.contains(['\u{1b}', '\u{202e}']), "{line:?}");
        let long =
            described(&format!(r#"{{"t":1,"effect":{{"k":"k","v":"{}"}}}}"#, "ä".repeat(99)));
        assert!(long.ends_with('…'), "{long}");
    }

    #[test]
    fn a_moment_has_no_fraction() {
        assert_eq!(moment(UtcMillis(951_782_400_123)), "2000-02-29 00:00:00");
    }
}
