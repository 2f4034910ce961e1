//! Differences between texts as HTML.

use maud::{Markup, html};

use super::lines::{self, DiffLine, LineChange};
use super::words::visible;

/// The difference between two texts as HTML, for a page that has the [`STYLE`](super::STYLE).
#[must_use]
pub fn difference_html(before: &str, after: &str) -> String {
    let lines = lines::between(before, after);
    html! { div class="changes" { div class="lines" { @for line in &lines { (diff_line(line)) } } } }
        .into_string()
}

pub(super) fn diff_line(line: &DiffLine) -> Markup {
    let text = visible(&line.text);
    match line.change {
        LineChange::Kept => html! { span { "  " (text) } },
        LineChange::Added => html! { ins { "+ " (text) } },
        LineChange::Removed => html! { del { "- " (text) } },
        LineChange::LeftOut => html! { span class="soft" { "…" } },
    }
}
