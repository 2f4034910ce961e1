//! The items of the step at work.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::clock::UtcMillis;
use crate::session::{ItemResult, Session};
use crate::text::prose;

use super::changes::json;
use super::fence::span;
use super::words::{many, visible};
use super::{ItemReport, ItemState, Report, tools};

/// The most items that are kept.
const MAX_ITEMS: usize = 200;
/// The most bytes of an item and of what came of it.
const MAX_VALUE: usize = 400;

/// The items of a session at the end of its log, and how many more there are.
pub(super) fn items_of(session: &Session) -> (Vec<ItemReport>, usize) {
    let Some(items) = &session.items else { return (Vec::new(), 0) };
    let report = |(index, item): (u32, &serde_json::Value)| {
        let (state, outcome) = match items.done.get(&index) {
            Some(ItemResult::Done(value)) => {
                let words = tools::done(value);
                (ItemState::Done, words.unwrap_or_else(|| json(value, MAX_VALUE, false)))
            }
            Some(ItemResult::Failed(it)) => (ItemState::Failed, prose(&it.message).into_owned()),
            None if session.waits(Some(index), UtcMillis::now()) => {
                (ItemState::Waits, String::new())
            }
            None => (ItemState::Open, String::new()),
        };
        let item = tools::call(item).unwrap_or_else(|| json(item, MAX_VALUE, false));
        ItemReport { index, item, state, outcome }
    };
    let more = items.planned.len().saturating_sub(MAX_ITEMS);
    ((0..).zip(&items.planned).take(MAX_ITEMS).map(report).collect(), more)
}

impl ItemState {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Waits => "waits",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Open => "",
            Self::Waits => "open",
            Self::Done => "ended",
            Self::Failed => "failed",
        }
    }
}

pub(super) fn items(report: &Report) -> Markup {
    html! { @if !report.items.is_empty() {
        section class="panel" aria-labelledby="h-items" {
            h2 id="h-items" { "Items of " (visible(&report.status.step)) }
            div class="scroll" tabindex="0" role="region" aria-label="Items" { table {
                thead { tr {
                    th scope="col" class="number" { "Item" } th scope="col" { "State" }
                    th scope="col" { "What" } th scope="col" { "Outcome" }
                } }
                tbody { @for item in &report.items { tr {
                    td class="number" { (item.index) }
                    td { span class={ "badge " (item.state.class()) } { (item.state.name()) } }
                    td class="wrap" { code { (visible(&item.item)) } }
                    td class="wrap" { code { (visible(&item.outcome)) } }
                } } }
            } }
            @if report.more_items > 0 {
                p class="soft small" { (many(report.more_items as u64, "more item", "more items")) "." }
            }
        }
    } }
}

pub(super) fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    if report.items.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Items of {}\n", span(&report.status.step))?;
    writeln!(out, "| item | state | what | outcome |\n|---:|---|---|---|")?;
    for item in &report.items {
        let (what, outcome) = (span(&item.item), span(&item.outcome));
        writeln!(out, "| {} | {} | {what} | {outcome} |", item.index, item.state.name())?;
    }
    if report.more_items > 0 {
        writeln!(out, "\n{}.", many(report.more_items as u64, "more item", "more items"))?;
    }
    Ok(())
}
