//! The report as HTML. Every text goes through the template, which escapes it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::llm::{Block, Entry, Transcript};
use crate::session::StepKind;
use crate::store::Phase;
use crate::text::shown;

use super::changes::json;
use super::drawing::svg;
use super::entries::resolution;
use super::items::items;
use super::lines::clipped;
use super::talk::conversations;
use super::timeline::{bar, timeline};
use super::value::value_html;
use super::words::{duration, many, moment, phase, spent, visible};
use super::{AfterFailure, FailureReport, Links, QuestionReport, Report};

/// The style of a report's page, for a page that shows [its sections](Report::to_html_sections).
pub const STYLE: &str = include_str!("style.css");

/// The most bytes of the state and of a question that are shown.
const MAX_VALUE: usize = 24 << 10;
/// The most entries of a conversation that are shown: the last ones.
const MAX_TALK: usize = 200;
/// The most characters of a message that are shown.
const MAX_MESSAGE: usize = 8_000;

/// Nothing is loaded, and nothing runs.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub(super) fn page(report: &Report) -> String {
    let status = &report.status;
    let session = shown(status.session.as_str());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="referrer" content="no-referrer";
                title { "Session " (session) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main class="page" {
                    header class="title" {
                        div {
                            p class="lead" { "Session of agent " (shown(status.agent.as_str())) }
                            h1 { bdi { (session) } }
                        }
                        (badge(status.phase))
                    }
                    (sections(report, Links::default()))
                }
            }
        }
    };
    page.into_string()
}

pub(super) fn sections(report: &Report, links: Links<'_>) -> Markup {
    html! {
        (facts(report))
        section class="panel" aria-labelledby="h-loop" {
            h2 id="h-loop" { "Loop" }
            div class="split" { (svg(report)) (steps(report)) }
        }
        (items(report))
        @if !report.questions.is_empty() {
            section class="panel" aria-labelledby="h-questions" {
                h2 id="h-questions" { "Questions and answers" }
                @for asked in &report.questions { (question(asked)) }
            }
        }
        @if !report.failures.is_empty() {
            section class="panel" aria-labelledby="h-failures" {
                h2 id="h-failures" { "Failures" }
                @for failed in &report.failures { (failure(failed)) }
            }
        }
        @for (nth, (field, talk)) in conversations(&report.state).iter().enumerate() {
            (conversation(nth, field, talk))
        }
        (programs(&report.state, links))
        (timeline(report, links.entries))
        section class="panel" aria-labelledby="h-state" {
            h2 id="h-state" { "State" }
            pre dir="auto" tabindex="0" { (visible(&json(&report.state, MAX_VALUE, true))) }
        }
    }
}

/// The programs of code steps.
#[cfg(feature = "code")]
fn programs(state: &serde_json::Value, links: Links<'_>) -> Markup {
    super::program::sections(state, links.versions)
}

#[cfg(not(feature = "code"))]
fn programs(_: &serde_json::Value, _: Links<'_>) -> Markup {
    html! {}
}

fn facts(report: &Report) -> Markup {
    let status = &report.status;
    html! {
        section class="panel" aria-label="Overview" {
            dl class="facts" {
                (fact("Step", &shown(&status.step)))
                (fact("Turn", &status.turn.to_string()))
                (fact("Steps of this turn", &status.steps.to_string()))
                (fact("Entries of the log", &status.head.to_string()))
                (fact("Began", &moment(status.created)))
                (fact("Last change", &moment(status.updated)))
                @if let Some(spent) = spent(&status.total) { (fact("Spent", &spent)) }
                @if let Some(settled) = &status.settled {
                    (fact("Last run", &clipped(&visible(&settled.end.to_string()), 200)))
                }
                @if let Some(from) = &status.from {
                    (fact("Forked from", &format!("{} at {}", shown(from.session.as_str()), from.seq)))
                }
                @for timer in &status.timers {
                    (fact("Timer", &format!("{} {}", timer.key.as_deref().map(shown).unwrap_or_default(), moment(timer.due))))
                }
                @for child in &status.children {
                    (fact("Waits for session", &shown(child.session.as_str())))
                }
                @if status.unread > 0 { (fact("Unread messages", &status.unread.to_string())) }
            }
        }
    }
}

fn fact(name: &str, value: &str) -> Markup {
    html! { div { dt { (name) } dd { bdi { (value) } } } }
}

fn steps(report: &Report) -> Markup {
    let longest = report.steps.iter().map(|step| step.active).max().unwrap_or_default();
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Steps" {
            table {
                thead { tr {
                    th scope="col" { "Step" } th scope="col" { "Kind" }
                    th scope="col" class="number" { "Visits" } th scope="col" class="number" { "Retries" }
                    th scope="col" class="number" { "Time" } th scope="col" class="number" { "Spent" }
                } }
                tbody { @for step in &report.steps { tr {
                    td class="wrap" { (shown(&step.name)) }
                    td class="soft" { (step.kind.map_or("former", kind)) }
                    td class="number" { (step.visits) }
                    td class="number" { (step.retries) }
                    td class="number" { (duration(step.active)) (bar(step.active, longest)) }
                    td class="number" { (spent(&step.spent).unwrap_or_default()) }
                } } }
            }
        }
    }
}

pub(super) fn kind(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Run => "run",
        StepKind::Decide => "decision",
        StepKind::Gate => "gate",
        StepKind::Each => "items",
        StepKind::Off => "switched off",
    }
}

fn question(asked: &QuestionReport) -> Markup {
    let interrupt = &asked.interrupt;
    html! {
        article class="question" {
            h3 { (shown(&interrupt.name)) " "
                @if asked.open { span class="badge open" { "open" } } }
            p class="soft small" {
                "Asked by " (shown(&interrupt.step))
                @if let Some(item) = interrupt.item { ", item " (item) }
                " at " (moment(interrupt.asked_at)) ", entry " (asked.seq)
                @if let Some(expires) = interrupt.expires_at { "; expires at " (moment(expires)) }
            }
            (PreEscaped(value_html(&interrupt.question)))
            @if let Some((seq, how)) = &asked.resolved {
                p class="wrap" { (visible(&resolution(how))) span class="soft small" { " (entry " (seq) ")" } }
            } @else if !asked.open {
                p class="soft" { "The log does not say how it was resolved." }
            }
        }
    }
}

fn failure(failed: &FailureReport) -> Markup {
    let failure = &failed.failure;
    html! {
        article class="question" {
            h3 { (shown(&failure.step)) " " span class="badge failed" { (kind_of(failure.kind)) } }
            p class="soft small" {
                "Entry " (failed.seq) ", " (moment(failure.at)) ", attempt " (failure.attempts) "; "
                (visible(&after(&failed.then)))
            }
            p class="wrap" dir="auto" { (visible(&clipped(&failure.message, MAX_MESSAGE))) }
            @if !failure.causes.is_empty() {
                ol class="chain" aria-label="Causes" { @for cause in &failure.causes {
                    li class="wrap" dir="auto" { (visible(&clipped(cause, MAX_MESSAGE))) }
                } }
            }
        }
    }
}

pub(super) fn kind_of(kind: crate::step::FailureKind) -> String {
    serde_json::to_value(kind)
        .ok()
        .and_then(|name| name.as_str().map(|name| name.replace('_', " ")))
        .unwrap_or_default()
}

pub(super) fn after(then: &AfterFailure) -> String {
    match then {
        AfterFailure::Retried => "tried again".to_owned(),
        AfterFailure::Diverted(next) => format!("next {}", shown(next)),
        AfterFailure::ItemFailed => "the item failed".to_owned(),
        AfterFailure::TurnFailed => "the turn failed".to_owned(),
        AfterFailure::LastStepsFailed => "the last steps failed".to_owned(),
    }
}

fn conversation(nth: usize, field: &str, talk: &Transcript) -> Markup {
    let entries = talk.entries();
    let skipped = entries.len().saturating_sub(MAX_TALK);
    html! {
        section class="panel" aria-labelledby={ "h-talk-" (nth) } {
            h2 id={ "h-talk-" (nth) } { "Conversation " code { (shown(field)) } }
            @if skipped > 0 { p class="soft small" { (many(skipped as u64, "earlier message", "earlier messages")) " left out." } }
            div class="talk" { @for entry in &entries[skipped..] {
                @match entry {
                    Entry::User(content) => div class="said user" {
                        p class="who" { "User" }
                        p dir="auto" { (message(&content.text().unwrap_or_else(|| json(&value(content), MAX_MESSAGE, false)))) }
                    }
                    Entry::Assistant(turn) => div class="said" {
                        p class="who" { "Model" @if let Some(model) = &turn.model { " " (shown(&model.to_string())) } }
                        @for block in &turn.blocks { (self::block(block)) }
                    }
                }
            } }
        }
    }
}

fn value(content: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(content).unwrap_or_default()
}

fn message(text: &str) -> String {
    visible(&clipped(text, MAX_MESSAGE)).into_owned()
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Text(text) => html! { p dir="auto" { (message(text)) } },
        Block::Reasoning(text) => html! {
            details { summary { "Reasoning" } p dir="auto" { (message(text)) } }
        },
        Block::Call { call, outcome } => html! {
            div class={ "call " (outcome.as_ref().map_or("pending", |it| it.kind())) } {
                p { "Calls " code { (shown(call.name.as_str())) } " "
                    span class="badge" { (outcome.as_ref().map_or("no outcome yet", |it| it.kind()).replace('_', " ")) } }
                pre dir="auto" tabindex="0" { (message(&call.arguments)) }
                @if let Some(outcome) = outcome {
                    details open { summary { "Outcome" }
                        p dir="auto" { (message(&outcome.content().text().unwrap_or_else(|| json(&value(&outcome.content()), MAX_MESSAGE, false)))) }
                    }
                }
            }
        },
        Block::Opaque { .. } => html! { p class="soft small" { "Data for the provider" } },
    }
}

fn badge(at: Phase) -> Markup {
    html! { span class={ "badge " (phase(at)) } { (phase(at)) } }
}
