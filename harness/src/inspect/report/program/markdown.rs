//! The execution state graph as Markdown.

use std::fmt::Write as _;

use super::html::{channels, known};
use super::{CodeStatus, ProgramReport, origin, programs, took};
use crate::inspect::report::fence::{fenced, span};
use crate::inspect::report::lines::LineChange;
use crate::inspect::report::words::{duration, many};

pub(in crate::inspect::report) fn write(
    state: &serde_json::Value,
    out: &mut String,
) -> std::fmt::Result {
    programs(state).iter().try_for_each(|program| one(program, out))
}

fn one(program: &ProgramReport, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n## Execution state graph {}\n", span(&program.field))?;
    let waits = program.count(CodeStatus::Stale) + program.count(CodeStatus::New);
    let (ran, kept, failed) = program.last_replay();
    match program.replay {
        Some(replay) => writeln!(
            out,
            "Replay {replay} ran {ran}, kept {kept}, and {failed} failed; stale or not run: {waits} of {}.\n",
            many(program.steps.len() as u64, "step", "steps")
        )?,
        None => writeln!(out, "The program has not run.\n")?,
    }
    fenced(out, "mermaid", program.ledger.program().edges().to_mermaid().trim_end())?;
    writeln!(out, "| step | status | why | version | time |\n|---|---|---|---|---:|")?;
    for step in &program.steps {
        let (id, status, version) = (span(&step.id), step.status.name(), step.version);
        let why = step.why.as_deref().map(span).unwrap_or_default();
        let time = step.execution.as_deref().map(|it| duration(took(it))).unwrap_or_default();
        writeln!(out, "| {id} | {status} | {why} | {version} | {time} |")?;
    }
    if let Some(diagnosis) = &program.diagnosis {
        match program.outdated() {
            Some(why) => writeln!(out, "\nEarlier diagnosis ({}):\n", span(&why))?,
            None => writeln!(out, "\nDiagnosis:\n")?,
        }
        fenced(out, "text", &diagnosis.to_string())?;
    }
    if !program.edges.is_empty() {
        writeln!(out, "\n| step | needs | what | kind | known from |\n|---|---|---|---|---|")?;
    }
    for edge in &program.edges {
        let (reader, producer) = (span(&edge.reader), span(&edge.producer.to_string()));
        let (what, kind) = (span(&channels(edge)), edge.kind);
        writeln!(out, "| {reader} | {producer} | {what} | {kind} | {} |", known(edge))?;
    }
    writeln!(out, "\n### Versions\n")?;
    for version in program.versions.iter().rev() {
        let it = &version.version;
        let present = if version.current { ", present" } else { "" };
        let origin = span(&origin(&it.provenance));
        writeln!(out, "- {} of {}{present}: {origin}\n", it.id, span(&it.step))?;
        let sign = |change| match change {
            LineChange::Kept => ' ',
            LineChange::Added => '+',
            LineChange::Removed => '-',
            LineChange::LeftOut => '@',
        };
        let lines = version.lines.iter().map(|line| format!("{}{}", sign(line.change), line.text));
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            fenced(out, "diff", &lines.join("\n"))?;
        }
    }
    for (to, provenance) in &program.rollbacks {
        let by = provenance.agent.as_deref().map(span).unwrap_or_default();
        writeln!(out, "- rolled back to {to} {by}")?;
    }
    Ok(())
}
