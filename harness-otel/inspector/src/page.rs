//! The frame of every page, and the two files that they load.

use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse};
use harness::UtcMillis;
use harness::inspect::Phase;
use harness::inspect::report::STYLE;
use maud::{DOCTYPE, Markup, html};

use crate::Shared;

/// Where a page is in the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Sessions,
    Waiting,
    None,
}

pub(crate) fn page(shared: &Shared, title: &str, tab: Tab, body: Markup) -> Html<String> {
    frame(title, tab, Some(shared.answers), body)
}

/// A page that knows nothing of the inspector.
pub(crate) fn plain(title: &str, body: Markup) -> Html<String> {
    frame(title, Tab::None, None, body)
}

fn frame(title: &str, tab: Tab, answers: Option<bool>, body: Markup) -> Html<String> {
    let current = |it: Tab| (it == tab).then_some("page");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Inspector" }
                link rel="stylesheet" href="/style.css";
                script src="/live.js" defer {}
            }
            body {
                a class="skip" href="#main" { "Skip to the content" }
                header class="bar" {
                    div class="inner" {
                        span class="brand" { "Inspector" }
                        nav aria-label="Pages" {
                            a href="/" aria-current=[current(Tab::Sessions)] { "Sessions" }
                            a href="/waiting" aria-current=[current(Tab::Waiting)] { "Waiting for a person" }
                        }
                        @if answers == Some(false) { span class="mode" { "read-only" } }
                    }
                }
                main id="main" class="page" tabindex="-1" { (body) }
            }
        }
    };
    Html(page.into_string())
}

pub(crate) async fn style() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], format!("{STYLE}{}", include_str!("style.css")))
}

pub(crate) async fn script() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("live.js"))
}

pub(crate) fn badge(phase: Phase) -> Markup {
    html! { span class={ "badge " (name(phase)) } { (name(phase)) } }
}

/// Every phase that a session can have.
pub(crate) const PHASES: [Phase; 7] = [
    Phase::Running,
    Phase::Interrupted,
    Phase::Waiting,
    Phase::Ended,
    Phase::Stopped,
    Phase::Exhausted,
    Phase::Failed,
];

pub(crate) fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Running => "running",
        Phase::Interrupted => "interrupted",
        Phase::Waiting => "waiting",
        Phase::Ended => "ended",
        Phase::Stopped => "stopped",
        Phase::Exhausted => "exhausted",
        Phase::Failed => "failed",
        _ => "unknown",
    }
}

/// A time, and how long ago it was.
pub(crate) fn since(at: UtcMillis) -> Markup {
    let text = at.to_string();
    let second = text.split('.').next().unwrap_or(&text).replace('T', " ");
    html! { time datetime=(text) title={ (second) " UTC" } { (ago(at, UtcMillis::now())) } }
}

fn ago(at: UtcMillis, now: UtcMillis) -> String {
    let seconds = now.0.saturating_sub(at.0) / 1_000;
    match seconds {
        0..2 => "just now".to_owned(),
        2..90 => format!("{seconds} s ago"),
        90..5_400 => format!("{} min ago", (seconds + 30) / 60),
        5_400..129_600 => format!("{} h ago", (seconds + 1_800) / 3_600),
        _ => format!("{} days ago", (seconds + 43_200) / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_for_people() {
        let now = UtcMillis(1_000_000_000_000);
        for (seconds, said) in [
            (0, "just now"),
            (61, "61 s ago"),
            (90, "2 min ago"),
            (5_400, "2 h ago"),
            (172_800, "2 days ago"),
        ] {
            assert_eq!(ago(UtcMillis(now.0 - seconds * 1_000), now), said);
        }
        assert_eq!(ago(now, UtcMillis(0)), "just now");
    }
}
