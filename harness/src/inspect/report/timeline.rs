//! The entries of a log as HTML, each with the time and the changes of it.

use std::collections::BTreeSet;
use std::time::Duration;

use maud::{Markup, html};

use super::difference::diff_line;
use super::words::{duration, many, moment, spent, visible};
use super::{Report, StateChange, TimelineEntry};
use crate::id::Seq;

/// A pause between two entries that is shown.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) fn timeline(report: &Report, entries: Option<&str>) -> Markup {
    let longest = report.timeline.iter().filter_map(|entry| entry.active).max();
    let failures: BTreeSet<Seq> = report.failures.iter().map(|failed| failed.seq).collect();
    let before = std::iter::once(None).chain(report.timeline.iter().map(Some));
    html! {
        section class="panel" aria-labelledby="h-timeline" {
            h2 id="h-timeline" { "Timeline" }
            @if report.omitted > 0 {
                p class="soft small" { (many(report.omitted, "earlier entry", "earlier entries")) " left out." }
            }
            ol class="timeline" { @for (entry, before) in report.timeline.iter().zip(before) {
                @if let Some(pause) = pause(before, entry) {
                    li class="pause soft small" { "nothing ran for " (duration(pause)) }
                }
                (line(entry, tone(entry, &failures), longest.unwrap_or_default(), entries))
            } }
        }
    }
}

/// How long no run worked before an entry.
fn pause(before: Option<&TimelineEntry>, entry: &TimelineEntry) -> Option<Duration> {
    let before = before.filter(|_| entry.active.is_none())?;
    let pause = Duration::from_millis(entry.at.0.saturating_sub(before.at.0));
    Some(pause).filter(|pause| *pause >= PAUSE)
}

/// The looks of an entry. Its words say the same.
fn tone(entry: &TimelineEntry, failures: &BTreeSet<Seq>) -> Option<&'static str> {
    match &*entry.kind {
        _ if failures.contains(&entry.seq) => Some("bad"),
        "commit" | "resolve" => Some("good"),
        "ask" => Some("open"),
        "open" | "run" | "edit" => Some("begins"),
        _ => None,
    }
}

fn line(
    entry: &TimelineEntry,
    tone: Option<&str>,
    longest: Duration,
    entries: Option<&str>,
) -> Markup {
    html! {
        li id={ "e" (entry.seq) } class=[tone] {
            @match entries {
                Some(entries) => a href={ (entries) (entry.seq) } { (entry.seq) },
                None => span class="soft" { (entry.seq) },
            }
            time class="soft small" datetime=(entry.at) title=(entry.at) { (moment(entry.at).split(' ').next_back().unwrap_or_default()) }
            div class="what" {
                span { (visible(&entry.words)) }
                @if !entry.changes.is_empty() {
                    details { summary { "State: " (many((entry.changes.len() + entry.more_changes) as u64, "change", "changes")) }
                        (changes(&entry.changes, entry.more_changes)) }
                }
            }
            span class="took" {
                @if let Some(active) = entry.active { (duration(active)) (bar(active, longest)) }
                @if let Some(spent) = entry.spent.as_ref().and_then(spent) { br; (spent) }
            }
        }
    }
}

/// A time beside the longest one; nothing where both are short. The number beside it says the same.
pub(super) fn bar(time: Duration, longest: Duration) -> Markup {
    if longest < Duration::from_millis(10) {
        return html! {};
    }
    let share = (time.as_micros() * 100 / longest.as_micros()).clamp(1, 100);
    html! {
        svg class="share" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
            rect width="100" height="4" {}
            rect class="part" width=(share) height="4" {}
        }
    }
}

/// Changes of a state as an HTML list, for a page that has the [`STYLE`](super::STYLE).
#[must_use]
pub fn changes_html(changes: &[StateChange], more: usize) -> String {
    self::changes(changes, more).into_string()
}

fn changes(changes: &[StateChange], more: usize) -> Markup {
    html! {
        ul class="changes" {
            @for change in changes { li {
                span class="path" { (visible(&change.path)) }
                @if change.lines.is_empty() {
                    @if let Some(before) = &change.before { del { (visible(before)) } " " }
                    @if let Some(after) = &change.after { ins { (visible(after)) } }
                } @else { span class="lines" { @for line in &change.lines { (diff_line(line)) } } }
            } }
            @if more > 0 { li { (many(more as u64, "more change", "more changes")) } }
        }
    }
}
