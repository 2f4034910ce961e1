//! The list of what waits for a person.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Html;
use harness::id::{AgentId, InterruptId};
use harness::inspect::report::visible;
use harness::inspect::{Filter, InterruptPage, SessionInterrupt, SessionsError};
use harness::store::Row;
use harness::{Interrupt, SessionId, UtcMillis};
use maud::{Markup, html};

use crate::Shared;
use crate::list::{ROWS, Search, empty, form, pager, table, table_row};
use crate::page::{Tab, page, since};
use crate::problem::Problem;
use crate::query::session;

/// How long a question can be asked to have waited, in seconds.
const WAITED: [(&str, &str, u64); 4] = [
    ("10m", "ten minutes", 600),
    ("1h", "an hour", 3_600),
    ("1d", "a day", 86_400),
    ("7d", "a week", 604_800),
];
/// The rows of the store that a page of those who have waited for so long is searched in: stores do not
/// order them by that.
const SEARCHED: u32 = 500;
const SEARCHES: u32 = 20;

const NAMES: [&str; 6] = ["Session", "Question", "Agent", "Step", "Waiting since", "Expires"];
const HINT: &str = "An agent is found by its whole name.";

/// A question that waits.
struct Waits {
    session: SessionId,
    agent: AgentId,
    interrupt: Interrupt,
    since: UtcMillis,
    expires: Option<UtcMillis>,
}

impl From<SessionInterrupt> for Waits {
    fn from(row: SessionInterrupt) -> Self {
        let SessionInterrupt { session, agent, interrupt, since, expires, .. } = row;
        Self { session, agent, interrupt, since, expires }
    }
}

#[derive(Default)]
struct Found {
    rows: Vec<Waits>,
    unreadable: Vec<(SessionId, SessionsError)>,
    next: Option<Vec<u8>>,
}

pub(crate) async fn waiting(
    State(shared): State<Arc<Shared>>,
    Query(search): Query<Search>,
) -> Result<Html<String>, Problem> {
    let (filter, after) = (search.filter(), search.after()?);
    let waited = WAITED.iter().find(|(name, ..)| *name == search.waited);
    let found = match waited {
        Some((_, _, seconds)) => {
            let latest = UtcMillis(UtcMillis::now().0.saturating_sub(seconds * 1_000));
            since_long(&shared, filter, after, latest).await?
        }
        None => {
            let page = shared.sessions.list_interrupts(&filter, after.as_deref(), ROWS);
            let InterruptPage { rows, unreadable, next, .. } = page.await?;
            Found { rows: rows.into_iter().map(Waits::from).collect(), unreadable, next }
        }
    };
    let body = html! {
        header class="title" { h1 { "Waiting for a person" } }
        (form("/waiting", &search, fields(&search), HINT))
        @for (id, error) in &found.unreadable {
            p class="notice bad" { (visible(id.as_str())) ": " (visible(&error.to_string())) }
        }
        section class="panel" aria-label="Open questions" {
            @if found.rows.is_empty() {
                (empty(&search, "Nothing waits for a person.", "Nothing that waits matches."))
            } @else {
                (table(&NAMES, html! { @for row in &found.rows { (self::row(row)) } }))
            }
            (pager("/waiting", &search, found.rows.len(), found.next.as_deref()))
        }
    };
    Ok(page(&shared, "Waiting", Tab::Waiting, body))
}

fn row(row: &Waits) -> Markup {
    let id = row.session.as_str();
    table_row(
        &NAMES,
        [
            html! { a href={ (session(id)) "#ask" } { bdi { (visible(id)) } } },
            html! { (visible(&row.interrupt.name)) },
            html! { (visible(row.agent.as_str())) },
            html! { (visible(&row.interrupt.step)) },
            since(row.since),
            html! { @if let Some(expires) = row.expires { (expires) } @else { "never" } },
        ],
    )
}

fn fields(search: &Search) -> Markup {
    html! { div { label for="waited" { "Waiting for at least" }
        select id="waited" name="waited" {
            option value="" { "any time" }
            @for (name, words, _) in WAITED {
                option value=(name) selected[search.waited == name] { (words) }
            }
        }
    } }
}

/// The questions that were asked at this time or earlier. A page may have few of them, or none, although
/// there are more: it ends where enough rows were searched.
async fn since_long(
    shared: &Shared,
    mut filter: Filter,
    mut after: Option<Vec<u8>>,
    latest: UtcMillis,
) -> Result<Found, Problem> {
    filter.interrupts = true;
    let mut matching: Vec<Row> = Vec::new();
    for _ in 0..SEARCHES {
        let listing = shared.store.list(&filter, after.as_deref(), SEARCHED).await?;
        after = listing.next;
        let is_old = |row: &Row| row.interrupt.as_ref().is_some_and(|it| it.since <= latest);
        for row in listing.rows.into_iter().filter(is_old) {
            if matching.len() == ROWS as usize {
                after = matching.last().map(Row::key);
                return found(shared, matching, after).await;
            }
            matching.push(row);
        }
        if after.is_none() {
            break;
        }
    }
    found(shared, matching, after).await
}

/// The questions of rows, which the store's list does not have.
async fn found(shared: &Shared, rows: Vec<Row>, next: Option<Vec<u8>>) -> Result<Found, Problem> {
    let mut found = Found { next, ..Found::default() };
    let mut questions: BTreeMap<InterruptId, Interrupt> = BTreeMap::new();
    let mut read: Option<SessionId> = None;
    for row in rows {
        let Some(listed) = row.interrupt else { continue };
        // The questions of one session are adjacent.
        if read.as_ref() != Some(&row.session) {
            questions.clear();
            match shared.sessions.status(&row.session).await {
                Ok(status) => {
                    questions =
                        status.questions.into_iter().map(|it| (it.id.clone(), it)).collect();
                }
                Err(error) if error.store_error().is_some() => return Err(error.into()),
                Err(error) if error.is_not_found() => {}
                Err(error) => found.unreadable.push((row.session.clone(), error)),
            }
            read = Some(row.session.clone());
        }
        if let Some(interrupt) = questions.remove(&listed.id) {
            let (session, agent) = (row.session, row.summary.agent);
            let (since, expires) = (listed.since, listed.expires);
            found.rows.push(Waits { session, agent, interrupt, since, expires });
        }
    }
    Ok(found)
}
