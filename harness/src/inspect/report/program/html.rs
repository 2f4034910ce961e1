//! The execution state graph as HTML. Every text goes through the template, which escapes it.

use harness_esg::{Edge, EdgeKind, EdgeSource, Entity};
use maud::{Markup, html};

use super::drawing::{class, svg};
use super::{
    CodeStatus, CodeStep, CodeVersion, ProgramReport, meaning, origin, printed, programs, took,
};
use crate::inspect::report::difference::diff_line;
use crate::inspect::report::lines::clipped;
use crate::inspect::report::words::{duration, many, visible};
use crate::text::shown;

/// The most characters of a source or an output that are shown.
const MAX_TEXT: usize = 16_000;
/// The most of what passes along an edge that is named.
const MAX_CHANNELS: usize = 8;

/// A section for each program of a state.
pub(in crate::inspect::report) fn sections(
    state: &serde_json::Value,
    versions: Option<&str>,
) -> Markup {
    html! { @for (nth, program) in programs(state).iter().enumerate() {
        section class="panel program" aria-labelledby={ "h-program-" (nth) } {
            h2 id={ "h-program-" (nth) } { "Execution state graph " code { (shown(&program.field)) } }
            (summary(program))
            @if let Some(diagnosis) = &program.diagnosis {
                @let outdated = program.outdated();
                details class={ "diagnosis" @if outdated.is_some() { " outdated" } } open[outdated.is_none()] {
                    summary {
                        @match &outdated {
                            Some(why) => { "Earlier diagnosis (" (visible(why)) "): " }
                            None => "Diagnosis: ",
                        }
                        (visible(&clipped(&diagnosis.error(), 300)))
                    }
                    pre dir="auto" tabindex="0" { (text(&diagnosis.to_string())) } }
            }
            div class="split" { div { (svg(program, nth)) (legend()) } (steps(program)) }
            h3 { "Steps in detail" }
            @for step in &program.steps { (self::step(step)) }
            (edges(program))
            (history(program, versions.map(|base| format!("{base}{nth}&version="))))
        }
    } }
}

/// The programs of code steps in a state as HTML sections, for a page that has the
/// [`STYLE`](crate::inspect::report::STYLE). With `versions`, a version that is not the present one has a
/// link, as [`Links`](crate::inspect::report::Links) says.
#[must_use]
pub fn programs_html(state: &serde_json::Value, versions: Option<&str>) -> String {
    sections(state, versions).into_string()
}

fn text(text: &str) -> String {
    visible(&clipped(text, MAX_TEXT)).into_owned()
}

fn summary(program: &ProgramReport) -> Markup {
    let count = |status| program.count(status);
    let waits = count(CodeStatus::Stale) + count(CodeStatus::New);
    let (ran, kept, failed) = program.last_replay();
    html! { p {
        @match program.replay {
            Some(replay) => {
                "Replay " (replay) " ran " (ran) ", kept " (kept)
                @if failed > 0 { ", and " (failed) " failed" } ". "
            }
            None => "The program has not run. "
        }
        @if waits > 0 { strong { "The next replay runs, or may run, " (waits) " of " (many(program.steps.len() as u64, "step", "steps")) "." } }
        @else { "Nothing would run again." }
        @if let Some(reviewed) = &program.reviewed {
            " Reviewed: " (visible(&clipped(&reviewed.to_string(), 300))) "."
        }
    } }
}

fn legend() -> Markup {
    let kinds = [EdgeKind::Flow, EdgeKind::LateBound, EdgeKind::Alias, EdgeKind::Order];
    html! { ul class="legend small" { @for kind in kinds { li {
        svg width="30" height="10" aria-hidden="true" {
            path class={ "edge " (class(kind)) } d="M1 5L29 5" {}
        }
        (kind.to_string()) ": " (meaning(kind))
    } } } }
}

fn badge(status: CodeStatus) -> Markup {
    let class = match status {
        CodeStatus::Ran => "ended",
        CodeStatus::Failed => "failed",
        CodeStatus::Stale => "open",
        CodeStatus::New | CodeStatus::Kept => "",
    };
    html! { span class={ "badge " (class) } { (status.name()) } }
}

fn steps(program: &ProgramReport) -> Markup {
    html! { div class="scroll" tabindex="0" role="region" aria-label="Code steps" { table {
        thead { tr {
            th scope="col" { "Step" } th scope="col" { "Status" } th scope="col" { "Why" }
            th scope="col" { "Version" } th scope="col" class="number" { "Time" }
        } }
        tbody {
            @for (name, json) in &program.inputs { tr {
                td class="wrap" { (shown(name)) }
                td { span class="badge" { "input" } }
                td class="wrap" colspan="3" { code { (visible(&clipped(json, 200))) } }
            } }
            @for step in &program.steps { tr {
                td class="wrap" { (shown(&step.id)) }
                td { (badge(step.status)) }
                td class="wrap" { (visible(&clipped(step.why.as_deref().unwrap_or_default(), 300))) }
                td { (step.version) }
                td class="number" { @if let Some(it) = &step.execution { (duration(took(it))) } }
            } }
        }
    } } }
}

fn step(step: &CodeStep) -> Markup {
    html! { details class="step" {
        summary { (shown(&step.id)) " " (badge(step.status)) " " (step.version) ", " (visible(&origin(&step.provenance))) }
        pre dir="auto" tabindex="0" { (text(&step.source)) }
        @if let Some(it) = &step.execution {
            p class="wrap" { "Last ran in replay " (it.run) ", in " (duration(took(it))) ": " (visible(&clipped(&it.ending.to_string(), 1_000))) }
            @let printed = printed(it);
            @if !printed.is_empty() {
                p class="soft small" { "Printed" }
                pre dir="auto" tabindex="0" { (text(&printed)) }
            }
            @if !it.trace.untracked.is_empty() { ul { @for what in &it.trace.untracked {
                li class="wrap" { "Untracked: " (visible(&clipped(&what.to_string(), 300))) }
            } } }
        }
    } }
}

/// What passes along an edge.
pub(super) fn channels(edge: &Edge) -> String {
    let name = |entity: &Entity| match entity {
        Entity::Name(name) => name.to_string(),
        Entity::Everything => "any name".to_owned(),
        other => other.to_string(),
    };
    let mut names: Vec<String> = edge.channels.iter().take(MAX_CHANNELS).map(name).collect();
    match edge.channels.len().saturating_sub(MAX_CHANNELS) {
        0 => {}
        more => names.push(format!("and {more} more")),
    }
    names.join(", ")
}

pub(super) fn known(edge: &Edge) -> &'static str {
    match edge.source {
        EdgeSource::Traced => "runs",
        _ => "sources",
    }
}

fn edges(program: &ProgramReport) -> Markup {
    html! { @if !program.edges.is_empty() {
        h3 { "Edges" }
        div class="scroll" tabindex="0" role="region" aria-label="Edges" { table {
            thead { tr {
                th scope="col" { "Step" } th scope="col" { "Needs" } th scope="col" { "What" }
                th scope="col" { "Kind" } th scope="col" { "Known from" }
            } }
            tbody { @for edge in &program.edges { tr {
                td class="wrap" { (shown(&edge.reader)) }
                td class="wrap" { (visible(&clipped(&edge.producer.to_string(), 200))) }
                td class="wrap" { code { (visible(&clipped(&channels(edge), 300))) } }
                td { (edge.kind.to_string()) }
                td class="soft" { (known(edge)) }
            } } }
        } }
        @if program.more_edges > 0 { p class="soft small" { (many(program.more_edges as u64, "more edge", "more edges")) " left out." } }
    } }
}

fn history(program: &ProgramReport, versions: Option<String>) -> Markup {
    html! {
        h3 { "Versions and patches" }
        @if program.earlier_versions > 0 {
            p class="soft small" { (many(program.earlier_versions as u64, "earlier version", "earlier versions")) " left out." }
        }
        ol class="versions" { @for one in program.versions.iter().rev() { (version(one, versions.as_deref())) } }
        @if !program.rollbacks.is_empty() {
            h3 { "Rollbacks" }
            ul { @for (to, provenance) in &program.rollbacks {
                li class="wrap" { "To " (to) @if let Some(by) = &provenance.agent { " by " (shown(by)) } }
            } }
        }
    }
}

fn version(one: &CodeVersion, versions: Option<&str>) -> Markup {
    let it = &one.version;
    let number = it.id.to_string();
    html! { li {
        p class="wrap" {
            strong { (number) } " of " (shown(&it.step)) " "
            @if one.current { span class="badge ended" { "present" } " " }
            span class="soft" { (visible(&origin(&it.provenance)))
                @if let Some(parent) = it.parent { ", after " (parent) } }
            @if let Some(credit) = &one.credit {
                @for step in &credit.fixed { " " span class="badge ended" { "fixed " (shown(step)) } }
                @for step in &credit.broke { " " span class="badge failed" { "broke " (shown(step)) } }
            }
            @if let (Some(base), false) = (versions, one.current) {
                " " a href={ (base) (number.trim_start_matches('v')) } { "Roll back to " (number) "…" }
            }
        }
        @if !one.lines.is_empty() {
            details open[one.version.provenance.kind == harness_esg::ProvenanceKind::Patched] {
                summary { "Diff" }
                div class="changes" { div class="lines" { @for line in &one.lines { (diff_line(line)) } } }
            }
        }
    } }
}
