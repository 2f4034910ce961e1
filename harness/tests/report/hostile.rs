//! A session whose every text was written by an attacker.

use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Sessions, StepError};

const CORPUS: &[&str] = &[
    "<script>alert(1)</script>",
    "</pre></style></title><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)\" x=\"",
    "' autofocus onfocus=alert(1) '",
    "javascript:alert(1)",
    "&lt;script&gt;",
    "```\n</code><script>alert(1)</script>\n```",
    "`````\n# heading\n<b>bold</b>",
    "|a|b|\n|---|---|\n[link](javascript:alert(1)) ![image](http://evil.example/x.png)",
    "\u{202e}drowssap\u{2066} \u{1b}[2J\u{0}\u{7} \u{feff}\u{200b}",
    "{{template}} ${expression} <%= erb %>",
    "--><!-- <![CDATA[ ]]>",
    "שלום עולם <b>عربي</b>",
];

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Text {
    text: String,
    map: std::collections::BTreeMap<String, String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Ask,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct Say {
    text: String,
}

fn harness() -> Harness<(), Text> {
    Harness::<(), Text>::builder("<i>loop</i>\"'`")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define
                .run(|text: View<Text>, _| async move {
                    let map = [(text.text.clone(), text.text.clone())].into();
                    Ok(Text::update().text(format!("{}\n{}", text.text, text.text)).map(map))
                })
                .then(Step::Ask),
            Step::Ask => define
                .ask(|text: View<Text>, _| async move { Ok(Say { text: text.text.clone() }) })
                .answer(|_, _, said| async move {
                    Err(StepError::fatal(std::io::Error::other(said.answer)))
                })
                .end(),
        })
        .build()
        .unwrap()
}

/// The Markdown outside of fenced blocks and code spans.
fn prose(markdown: &str) -> String {
    let mut out = String::new();
    let mut fence: Option<String> = None;
    for line in markdown.lines() {
        let ticks: String = line.trim_start().chars().take_while(|c| *c == '`').collect();
        match &fence {
            Some(open) if line.trim() == open => fence = None,
            Some(_) => {}
            None if ticks.len() > 2 && !line.trim_start()[ticks.len()..].contains('`') => {
                fence = Some(ticks)
            }
            None => out.push_str(&format!("{}\n", without_spans(line))),
        }
    }
    assert_eq!(fence, None, "a fence is not closed");
    out
}

fn without_spans(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        let ticks = rest[at..].chars().take_while(|c| *c == '`').count();
        let (fence, after) = rest[at..].split_at(ticks);
        let mut end = None;
        for (place, _) in after.match_indices(fence) {
            let alone = !after[..place].ends_with('`') && !after[place + ticks..].starts_with('`');
            if alone {
                end = Some(place);
                break;
            }
        }
        let end = end.unwrap_or_else(|| panic!("a code span is not closed: {line:?}"));
        rest = &after[end + ticks..];
    }
    out.push_str(rest);
    out
}

#[tokio::test]
async fn hostile_text_is_only_text() {
    for (nth, hostile) in CORPUS.iter().enumerate() {
        let store = MemoryStore::new();
        let agent = harness().agent("<agent>", ()).store(store.clone());
        let outcome = agent.run(Text::update().text(*hostile), ()).session("s").await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("it asks") };
        let answer = waiting.pending::<Say>().unwrap().answer((*hostile).into()).by(*hostile);
        agent.resume("s", answer, ()).await.unwrap();
        let report = Sessions::new(store).report("s").await.unwrap();
        assert!(report.failures.len() == 1, "case {nth}");

        let (html, markdown) = (report.to_html(), report.to_markdown());
        let tags = ["<script", "<img", "<b>", "<i>", "<!--", "<![", "<%", "<agent", "</code><"];
        for tag in tags {
            assert!(!html.contains(tag), "case {nth}: {tag}");
        }
        assert_eq!(html.matches("</style>").count(), 1, "case {nth}");
        assert!(!html.contains("\" onmouseover"), "case {nth}");
        for text in [&html, &markdown] {
            let hidden = |c: char| {
                c.is_control() && c != '\n'
                    || matches!(c, '\u{202e}' | '\u{2066}' | '\u{feff}' | '\u{200b}')
            };
            assert!(!text.contains(hidden), "case {nth}");
        }
        let prose = prose(&markdown);
        for mark in ["<", "](", "[link", "# heading", "javascript"] {
            assert!(!prose.contains(mark), "case {nth}: {mark}: {prose}");
        }
    }
}

#[tokio::test]
async fn a_report_of_a_large_state_is_small() {
    let store = MemoryStore::new();
    let agent = harness().agent("large", ()).store(store.clone());
    let large = format!("<tag>{}\n", "x".repeat(122)).repeat(3 << 13);
    agent.run(Text::update().text(large), ()).session("s").await.unwrap();
    let report = Sessions::new(store).report("s").await.unwrap();
    for text in [report.to_html(), report.to_markdown()] {
        assert!(text.len() < 256 << 10, "{} bytes", text.len());
        assert!(text.contains("bytes)"), "it says how much is left out");
    }
}

#[tokio::test]
async fn a_list_of_very_many_changes_is_short() {
    let store = MemoryStore::new();
    let agent = harness().agent("many", ()).store(store.clone());
    let map = (0..5_000).map(|nth| (format!("k{nth}"), "v".to_owned())).collect();
    agent.run(Text::update().map(map), ()).session("s").await.unwrap();
    let report = Sessions::new(store).report("s").await.unwrap();
    let changed = report.timeline.iter().find(|entry| entry.more_changes > 4_000).unwrap();
    assert!(changed.changes.len() <= 40, "{}", changed.changes.len());
}
