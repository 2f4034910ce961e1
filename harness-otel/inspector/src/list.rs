//! The list of sessions, and what lists have in common.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Html;
use harness::id::AgentId;
use harness::inspect::report::visible;
use harness::inspect::{Filter, Phase, SessionPage, SessionRow};
use maud::{Markup, html};
use serde::Deserialize;

use crate::Shared;
use crate::page::{PHASES, Tab, badge, name, page, since};
use crate::problem::Problem;
use crate::query::{hex, session, unhex, with};

/// The rows of a page.
pub(crate) const ROWS: u32 = 50;

const HINT: &str = "The beginning of an id finds sessions, in upper and lower case as they are written. \
    An agent is found by its whole name.";

const NAMES: [&str; 6] = ["Session", "Agent", "Phase", "Step", "Entries", "Last change"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Search {
    /// The beginning of the id.
    id: String,
    agent: String,
    phase: String,
    /// How long a question waits at least.
    pub(crate) waited: String,
    after: String,
}

impl Search {
    pub(crate) fn filter(&self) -> Filter {
        let mut filter = Filter::sessions();
        if !self.agent.trim().is_empty() {
            filter = filter.agent(AgentId::new(self.agent.trim()));
        }
        if let Some(phase) = self.phase() {
            filter = filter.phase(phase);
        }
        filter
    }

    fn phase(&self) -> Option<Phase> {
        PHASES.into_iter().find(|phase| name(*phase) == self.phase)
    }

    /// The key after which the page begins.
    pub(crate) fn after(&self) -> Result<Option<Vec<u8>>, Problem> {
        match &*self.after {
            "" => Ok(None),
            after => match unhex(after) {
                Some(after) => Ok(Some(after)),
                None => Err(Problem::bad("The page is none of this list.")),
            },
        }
    }

    fn next(&self, path: &str, after: &[u8]) -> String {
        let after = &*hex(after);
        let all = [
            ("id", &*self.id),
            ("agent", &self.agent),
            ("phase", &self.phase),
            ("waited", &self.waited),
            ("after", after),
        ];
        let given: Vec<_> = all.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        match given.is_empty() {
            true => path.to_owned(),
            false => with(path, &given),
        }
    }

    fn is_narrowed(&self) -> bool {
        [&self.id, &self.agent, &self.phase, &self.waited].iter().any(|it| !it.trim().is_empty())
    }
}

pub(crate) async fn sessions(
    State(shared): State<Arc<Shared>>,
    Query(search): Query<Search>,
) -> Result<Html<String>, Problem> {
    let prefix = search.id.trim().to_owned();
    let after = search.after()?.or_else(|| before(&prefix));
    let found = shared.sessions.list(&search.filter(), after.as_deref(), ROWS).await?;
    let SessionPage { rows, next, .. } = found;
    let matching = |row: &SessionRow| row.session.as_str().starts_with(&*prefix);
    // The list is in the order of the ids: what follows on the last one that matches does not. That the
    // page ends with one says nothing about the next row.
    let next = match next.filter(|_| rows.last().is_some_and(matching)) {
        Some(next) if !prefix.is_empty() => {
            let ahead = shared.sessions.list(&search.filter(), Some(&next), 1).await?;
            ahead.rows.first().is_some_and(matching).then_some(next)
        }
        next => next,
    };
    let rows: Vec<_> = rows.into_iter().filter(matching).collect();
    let body = html! {
        header class="title" { h1 { "Sessions" } }
        (form("/", &search, fields(&search), HINT))
        section class="panel" aria-label="Sessions" {
            @if rows.is_empty() {
                (empty(&search, "The store has no sessions.", "No session matches."))
            } @else {
                (table(&NAMES, html! { @for row in &rows { (self::row(row)) } }))
            }
            (pager("/", &search, rows.len(), next.as_deref()))
        }
    };
    Ok(page(&shared, "Sessions", Tab::Sessions, body))
}

/// The key of a list after which the ids with this beginning come.
fn before(prefix: &str) -> Option<Vec<u8>> {
    let mut key = prefix.as_bytes().to_vec();
    let last = key.pop()?;
    // No text continues with this byte, so that no id lies between.
    key.extend([last.checked_sub(1)?, 0xff]);
    Some(key)
}

fn row(row: &SessionRow) -> Markup {
    let id = row.session.as_str();
    table_row(
        &NAMES,
        [
            html! { a href=(session(id)) { bdi { (visible(id)) } } },
            html! { (visible(row.agent.as_str())) },
            badge(row.phase),
            html! { (visible(&row.step)) },
            html! { (row.head) },
            since(row.updated),
        ],
    )
}

/// A table, whose rows are as many blocks in a narrow window. It has its roles in words: a style that
/// changes what a table looks like takes them away.
pub(crate) fn table(names: &[&str], rows: Markup) -> Markup {
    html! { div class="scroll" { table class="rows" role="table" {
        thead role="rowgroup" { tr role="row" {
            @for name in names { th scope="col" role="columnheader" { (name) } }
        } }
        tbody role="rowgroup" { (rows) }
    } } }
}

pub(crate) fn table_row<const N: usize>(names: &[&str; N], cells: [Markup; N]) -> Markup {
    html! { tr role="row" {
        @for (name, cell) in names.iter().zip(cells) { td class="wrap" role="cell" data-name=(name) { (cell) } }
    } }
}

/// The form of a search, with the fields of its list.
pub(crate) fn form(path: &str, search: &Search, own: Markup, hint: &str) -> Markup {
    html! {
        form class="search" method="get" action=(path) role="search" {
            (own)
            div { label for="agent" { "Agent" }
                input id="agent" type="search" name="agent" value=(visible(&search.agent)) spellcheck="false"; }
            button type="submit" { "Search" }
            @if search.is_narrowed() { a class="button quiet" href=(path) { "Clear" } }
            p class="hint" { (hint) }
        }
    }
}

fn fields(search: &Search) -> Markup {
    html! {
        div { label for="id" { "Session begins with" }
            input id="id" type="search" name="id" value=(visible(&search.id)) spellcheck="false"; }
        div { label for="phase" { "Phase" }
            select id="phase" name="phase" {
                option value="" { "any" }
                @for phase in PHASES {
                    option value=(name(phase)) selected[search.phase() == Some(phase)] { (name(phase)) }
                }
            } }
    }
}

/// What stands in place of rows.
pub(crate) fn empty(search: &Search, nothing: &str, no_match: &str) -> Markup {
    html! { p class="empty" {
        @if search.is_narrowed() { (no_match) } @else { (nothing) }
    } }
}

pub(crate) fn pager(path: &str, search: &Search, count: usize, next: Option<&[u8]>) -> Markup {
    html! {
        nav class="pager" aria-label="Pages of the list" {
            span { (count) " on this page" }
            @if !search.after.is_empty() { a href=(search.next(path, b"")) { "First page" } }
            @if let Some(next) = next { a rel="next" href=(search.next(path, next)) { "Next page" } }
        }
    }
}
