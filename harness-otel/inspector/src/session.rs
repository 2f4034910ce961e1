//! The page of a session.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};
use harness::Interrupt;
use harness::inspect::Phase;
use harness::inspect::report::{Links, Report, value_html, visible};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use crate::Shared;
use crate::form::{Given, fields};
use crate::page::{Tab, badge, name, page, since};
use crate::problem::Problem;
use crate::query::{self, with};

#[derive(Debug, Deserialize)]
pub(crate) struct Id {
    pub(crate) id: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Show {
    id: String,
    /// What was just done.
    #[serde(default)]
    done: String,
}

pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Query(Show { id, done }): Query<Show>,
) -> Result<Html<String>, Problem> {
    let report = shared.sessions.report(&id).await?;
    Ok(rendered(&shared, &report, notice(&done, report.status.unread > 0), None))
}

/// What a form said, and why it was not understood.
pub(crate) struct Unread<'f> {
    pub(crate) interrupt: &'f str,
    pub(crate) sent: &'f HashMap<String, String>,
    pub(crate) why: &'f str,
}

/// The page, with a form as it was sent if it was not understood.
pub(crate) fn rendered(
    shared: &Shared,
    report: &Report,
    notice: Option<&str>,
    unread: Option<&Unread<'_>>,
) -> Html<String> {
    let status = &report.status;
    let id = status.session.as_str();
    let entries = format!("{}&seq=", with("/session/state", &[("id", id)]));
    let versions = format!("{}&program=", with("/session/version", &[("id", id)]));
    let versions = cfg!(feature = "code").then_some(&*versions);
    let links = Links { entries: Some(&entries), versions };
    let sections = report.to_html_sections(links);
    let body = html! {
        div data-events=(with("/session/events", &[("id", id)])) {
            header class="title" data-part="title" {
                div {
                    p class="lead" { "Session of agent " (visible(status.agent.as_str())) }
                    h1 { bdi { (visible(id)) } }
                    (badge(status.phase))
                    @if status.phase == Phase::Running && status.holder.is_none() {
                        span class="badge failed" { "no process holds it" }
                    }
                }
            }
            div class="links" {
                nav aria-label="Parts of this page" data-part="parts" { (parts(shared, report, &sections)) }
                span class="live" role="status" { "loaded" }
            }
            p class="unseen" role="status" data-part="now" { (now(report)) }
            div data-part="notice" {
                @if let Some(notice) = notice { p class="notice good" role="status" { (notice) } }
            }
            p class="notice" id="changed" role="status" hidden {
                "What waits has changed since this form was opened. "
                a href=(query::session(id)) { "Load it again" }
            }
            div id="ask" data-part="forms" data-version=(version(report)) {
                @for asked in &status.questions { (question(shared, id, asked, unread)) }
            }
            div data-part="report" {
                (PreEscaped(&sections))
                (children(report))
            }
            @if shared.answers {
                div data-part="operate" data-version=(status.head) { (operate(shared, report)) }
            }
        }
    };
    page(shared, &visible(id), Tab::Sessions, body)
}

/// Where the session is, in words. A screen reader says what changes of it.
fn now(report: &Report) -> Markup {
    let status = &report.status;
    let waits = status.questions.len();
    html! {
        "The session is " (name(status.phase)) " at " (visible(&status.step)) ". "
        @match waits {
            0 => {},
            1 => "One question waits for an answer.",
            waits => { (waits) " questions wait for an answer." }
        }
    }
}

/// Links to the sections of the page, for a keyboard and for a long page.
fn parts(shared: &Shared, report: &Report, sections: &str) -> Markup {
    // What a session holds is escaped: it has no quotes.
    let is_there = |place: &str| sections.contains(&format!("id=\"{place}\""));
    let status = &report.status;
    let parts = [
        (!status.questions.is_empty(), "ask", "Answer"),
        (true, "h-loop", "Loop"),
        (!report.items.is_empty(), "h-items", "Items"),
        (!report.questions.is_empty(), "h-questions", "Questions"),
        (!report.failures.is_empty(), "h-failures", "Failures"),
        (is_there("h-talk-0"), "h-talk-0", "Conversation"),
        (is_there("h-program-0"), "h-program-0", "Code steps"),
        (true, "h-timeline", "Timeline"),
        (true, "h-state", "State"),
        (!status.children.is_empty(), "h-children", "Children"),
        (shared.answers, "h-operate", "Operate"),
    ];
    let file = |form| with("/session/report", &[("id", status.session.as_str()), ("form", form)]);
    html! { ul class="parts-of" {
        @for (_, place, name) in parts.iter().filter(|(there, _, _)| *there) {
            li { a href={ "#" (place) } { (name) } }
        }
        li { a href=(file("html")) { "Report as a page" } }
        li { a href=(file("md")) { "Report as Markdown" } }
    } }
}

/// What changes with the questions that wait.
fn version(report: &Report) -> String {
    report.status.questions.iter().map(|asked| asked.id.to_string()).collect::<Vec<_>>().join(" ")
}

/// What was done. `waits` says that no run has read it so far.
fn notice(done: &str, waits: bool) -> Option<&'static str> {
    match done {
        "answered" if waits => Some("The answer is recorded. A process of the agent applies it."),
        "answered" => Some("The answer is recorded, and a process of the agent has read it."),
        "stopping" => Some("The run is asked to stop at its next boundary."),
        "idle" => Some("No run holds the session: there is nothing to stop."),
        "edited" => Some("The state is corrected."),
        "back" => {
            Some("The version is the present one again. The next run of the program uses it.")
        }
        "forked" => Some("This is the fork."),
        "queued" if waits => Some("The input is queued. A process of the agent applies it."),
        "queued" => Some("The input was queued, and a process of the agent has read it."),
        _ => None,
    }
}

/// A question with the form of its answer.
fn question(
    shared: &Shared,
    session: &str,
    asked: &Interrupt,
    unread: Option<&Unread<'_>>,
) -> Markup {
    let unread = unread.filter(|it| it.interrupt == asked.id.to_string());
    let id = format!("q-{}", asked.id);
    let given = Given { sent: unread.map(|it| it.sent), question: &asked.question };
    html! {
        section class="panel ask" aria-labelledby=(id) {
            h2 id=(id) { "Waits for a person: " (visible(&asked.name)) }
            p class="soft small" { "Asked by " (visible(&asked.step))
                @if let Some(item) = asked.item { ", item " (item) }
                ", " (since(asked.asked_at))
                @if let Some(expires) = asked.expires_at { "; expires at " (expires) } }
            @let asked_about = html! { div class="asked" { (PreEscaped(value_html(&asked.question))) } };
            @if !shared.answers { (asked_about) }
            @if shared.answers { div class="parts" {
                (asked_about)
                form method="post" action="/session/answer" {
                    @if let Some(unread) = unread {
                        p class="notice bad" role="alert" { (visible(unread.why)) }
                    }
                    (hidden(shared, session))
                    input type="hidden" name="interrupt" value=(asked.id.to_string());
                    (fields(&asked.answer_schema, &given, &id))
                    div class="send" {
                        (by(shared, &id, unread.map(|it| it.sent)))
                        div { button type="submit" { "Answer" } }
                    }
                }
            } }
        }
    }
}

pub(crate) fn hidden(shared: &Shared, session: &str) -> Markup {
    html! {
        input type="hidden" name="token" value=(shared.form_token);
        input type="hidden" name="id" value=(session);
    }
}

pub(crate) fn by(shared: &Shared, id: &str, sent: Option<&HashMap<String, String>>) -> Markup {
    let id = format!("{id}-by");
    let name = sent.and_then(|it| it.get("by")).unwrap_or(&shared.name);
    html! { div {
        label for=(id) { "Your name, for the log" }
        input id=(id) type="text" name="by" value=(name) required autocomplete="name";
    } }
}

fn children(report: &Report) -> Markup {
    let status = &report.status;
    html! { @if !status.children.is_empty() {
        section class="panel" aria-labelledby="h-children" {
            h2 id="h-children" { "Sessions that it waits for" }
            ul { @for child in &status.children {
                li { a href=(query::session(child.session.as_str())) { (visible(child.session.as_str())) } }
            } }
        }
    } @if let Some(from) = &status.from {
        p { "Forked from " a href=(query::state(from.session.as_str(), from.seq)) {
            (visible(from.session.as_str())) " at " (from.seq) } }
    } }
}

/// The most fields that are named.
const MOST_NAMES: usize = 12;

/// What a user can do with a session, beside answering.
fn operate(shared: &Shared, report: &Report) -> Markup {
    let status = &report.status;
    let id = status.session.as_str();
    let names = || report.state.as_object().into_iter().flat_map(|it| it.keys());
    html! {
        section class="panel" aria-labelledby="h-operate" {
            h2 id="h-operate" { "Operate" }
            div class="operate" {
                @if status.holder.is_some() {
                    form method="post" action="/session/stop" {
                        (hidden(shared, id))
                        div { button class="danger" type="submit" { "Stop at the next boundary" } }
                    }
                }
                details { summary { "Queue an input" }
                    form method="post" action="/session/input" {
                        (hidden(shared, id))
                        div { label for="input" { "The update of the state, as JSON" }
                            textarea id="input" name="update" rows="4" required spellcheck="false" {}
                            p class="hint" { "An object with some of the fields "
                                @for (at, name) in names().take(MOST_NAMES).enumerate() {
                                    @if at > 0 { ", " } code { (visible(name)) } }
                                @if names().count() > MOST_NAMES { " and others" }
                                ", each with what its reducer takes. It begins the next turn, once this one is over." } }
                        div { button type="submit" { "Queue" } }
                    }
                }
                details { summary { "Fork" }
                    form method="post" action="/session/fork" {
                        (hidden(shared, id))
                        div class="row" {
                            div { label for="seq" { "After the entry" }
                                input id="seq" type="number" min="1" name="seq" value=(status.head) required; }
                            div { label for="to" { "Id of the fork" }
                                input id="to" type="text" name="to" value={ (id) "-fork" } required spellcheck="false"; }
                        }
                        div { button type="submit" { "Fork" } }
                    }
                }
                @if !matches!(status.phase, Phase::Running) {
                    details { summary { "Correct the state" }
                        form method="get" action="/session/edit" {
                            input type="hidden" name="id" value=(id);
                            div { label for="field" { "Field" }
                                select id="field" name="field" required {
                                    @for name in names() { option value=(name) { (visible(name)) } }
                                } }
                            div { button class="quiet" type="submit" { "Show its value" } }
                        }
                    }
                }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct AsFile {
    id: String,
    #[serde(default)]
    form: String,
}

pub(crate) async fn report(
    State(shared): State<Arc<Shared>>,
    Query(AsFile { id, form }): Query<AsFile>,
) -> Result<Response, Problem> {
    let report = shared.sessions.report(&id).await?;
    let (kind, name, text) = match &*form {
        "md" => ("text/markdown; charset=utf-8", "report.md", report.to_markdown()),
        _ => ("text/html; charset=utf-8", "report.html", report.to_html()),
    };
    let name = format!("attachment; filename=\"{name}\"");
    Ok(([(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, name)], text).into_response())
}
