//! The report as Markdown.
//!
//! What the session holds is in code spans and in fenced blocks, whose fences are longer than any that
//! the text has, so that none of it is read as Markdown or HTML.

use std::fmt::Write as _;

use crate::text::shown;

use super::changes::json;
use super::drawing::mermaid;
use super::entries::resolution;
use super::fence::{fenced, span};
use super::html::{after, kind, kind_of};
use super::lines::LineChange;
use super::words::{duration, many, moment, phase, spent};
use super::{Report, StateChange};

/// The most bytes of the state and of a question that are shown.
const MAX_VALUE: usize = 16 << 10;
pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a `String` cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    let status = &report.status;
    writeln!(out, "# Session {}\n", span(status.session.as_str()))?;
    writeln!(out, "| | |\n|---|---|")?;
    let mut row = |name: &str, value: String| writeln!(out, "| {name} | {value} |");
    row("Agent", span(status.agent.as_str()))?;
    row("Phase", phase(status.phase).to_owned())?;
    row("Step", span(&status.step))?;
    row("Turn", format!("{}, {}", status.turn, many(status.steps, "step", "steps")))?;
    row("Entries", status.head.to_string())?;
    row("Began", moment(status.created))?;
    row("Last change", moment(status.updated))?;
    if let Some(spent) = spent(&status.total) {
        row("Spent", spent)?;
    }
    if let Some(from) = &status.from {
        row("Forked from", format!("{} at {}", span(from.session.as_str()), from.seq))?;
    }
    writeln!(out, "\n## Loop\n")?;
    fenced(out, "mermaid", mermaid(report).trim_end())?;
    writeln!(out, "| step | kind | visits | retries | time | spent |")?;
    writeln!(out, "|---|---|---:|---:|---:|---:|")?;
    for step in &report.steps {
        let (name, kind) = (span(&step.name), step.kind.map_or("former", kind));
        let (time, spent) = (duration(step.active), spent(&step.spent).unwrap_or_default());
        let (visits, retries) = (step.visits, step.retries);
        writeln!(out, "| {name} | {kind} | {visits} | {retries} | {time} | {spent} |")?;
    }
    super::items::write(report, out)?;
    if !report.questions.is_empty() {
        writeln!(out, "\n## Questions and answers")?;
    }
    for asked in &report.questions {
        let it = &asked.interrupt;
        let (name, step, at) = (span(&it.name), span(&it.step), moment(it.asked_at));
        writeln!(out, "\n- {name}, asked by {step} at {at} (entry {})\n", asked.seq)?;
        fenced(out, "json", &json(&it.question, MAX_VALUE, true))?;
        match &asked.resolved {
            Some((seq, how)) => writeln!(out, "  {} (entry {seq})", span(&resolution(how)))?,
            None if asked.open => writeln!(out, "  Open.")?,
            None => {}
        }
    }
    if !report.failures.is_empty() {
        writeln!(out, "\n## Failures\n")?;
    }
    for failed in &report.failures {
        let failure = &failed.failure;
        let (step, kind) = (span(&failure.step), kind_of(failure.kind));
        let (message, then) = (span(&failure.message), span(&after(&failed.then)));
        writeln!(out, "- {step}, {kind} (entry {}): {message}; {then}", failed.seq)?;
        for cause in &failure.causes {
            writeln!(out, "  - {}", span(cause))?;
        }
    }
    #[cfg(feature = "code")]
    super::program::write(&report.state, out)?;
    writeln!(out, "\n## Timeline\n")?;
    if report.omitted > 0 {
        let omitted = many(report.omitted, "earlier entry", "earlier entries");
        writeln!(out, "{omitted} left out.\n")?;
    }
    for entry in &report.timeline {
        let time = entry.active.map(|time| format!(" ({})", duration(time))).unwrap_or_default();
        let spent = entry.spent.as_ref().and_then(spent);
        let spent = spent.map(|spent| format!(" ({spent})")).unwrap_or_default();
        let (at, words) = (moment(entry.at), span(&entry.words));
        writeln!(out, "- {} {at} {words}{time}{spent}", entry.seq)?;
        if !entry.changes.is_empty() {
            writeln!(out)?;
            fenced(out, "diff", diff(&entry.changes, entry.more_changes).trim_end())?;
        }
    }
    writeln!(out, "\n## State\n")?;
    fenced(out, "json", &json(&report.state, MAX_VALUE, true))
}

fn diff(changes: &[StateChange], more: usize) -> String {
    let mut out = String::new();
    for change in changes {
        let path = shown(&change.path);
        if change.lines.is_empty() {
            let side = |sign: char, value: &Option<String>| match value {
                Some(value) => format!("{sign} {path} = {}\n", value.replace('\n', "\\n")),
                None => String::new(),
            };
            out.push_str(&side('-', &change.before));
            out.push_str(&side('+', &change.after));
            continue;
        }
        let _ = writeln!(out, "@@ {path} @@");
        for line in &change.lines {
            let (sign, text) = match line.change {
                LineChange::Kept => (' ', &*line.text),
                LineChange::Added => ('+', &*line.text),
                LineChange::Removed => ('-', &*line.text),
                LineChange::LeftOut => ('@', "@"),
            };
            let _ = writeln!(out, "{sign}{text}");
        }
    }
    if more > 0 {
        let more = many(more as u64, "more change", "more changes");
        let _ = writeln!(out, "@@ {more} @@");
    }
    out
}
