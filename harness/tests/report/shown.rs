//! What a report says of logs that were written once.

use std::fs;
use std::path::Path;
use std::time::Duration;

use harness::inspect::report::{AfterFailure, ItemState, Links, Report, Spot};
use harness::prelude::*;
use harness::session::Entry;
use harness::store::{
    Batch, InboxSeq, MemoryStore, NewEntry, Remove, SessionStore as _, SessionSummary,
};
use harness::{Seq, SessionId, Sessions, UtcMillis};
use serde_json::json;

/// The report of a log among the golden ones.
async fn report(name: &str) -> Report {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
    let (store, session) = (MemoryStore::new(), SessionId::new(name).unwrap());
    let claimed = store.claim(&session, Duration::from_secs(60)).await.unwrap();
    let decoded: Vec<Entry> =
        text.lines().map(|line| Entry::decode(line.as_bytes()).unwrap()).collect();
    let lines = text.lines().zip(&decoded);
    let entries: Vec<_> = lines
        .map(|(line, entry)| NewEntry {
            bytes: line.as_bytes(),
            snapshot: entry.change.name() == "snapshot",
        })
        .collect();
    let summary = json!({"agent": "m", "phase": "stopped", "step": ""});
    let summary: SessionSummary = serde_json::from_value(summary).unwrap();
    let (summary, at) = (Some(&summary), decoded[0].at);
    let batch = Batch { at, entries: &entries, summary, ..Batch::default() };
    store.append(&claimed.lease, batch).await.unwrap();
    store.release(&claimed.lease, InboxSeq(0)).await.unwrap();
    Sessions::new(store).report(name).await.unwrap()
}

#[tokio::test]
async fn a_report_shows_the_path_the_questions_and_the_changes() {
    for name in ["edited", "items", "talk", "timers", "turns"] {
        let report = report(name).await;
        insta::assert_snapshot!(format!("{name}.md"), report.to_markdown());
        // The style is no part of what it says.
        let page = report
            .to_html_sections(Links { entries: Some("/at/"), ..Links::default() })
            .replace("><", ">\n<");
        insta::assert_snapshot!(format!("{name}.html"), page);
    }
}

#[tokio::test]
async fn a_page_needs_nothing_else() {
    let page = report("turns").await.to_html();
    for loaded in ["<script", "<link", "<img", "src=", "@import", "url(http"] {
        assert!(!page.contains(loaded), "{loaded}");
    }
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Text {
    text: String,
    #[state(reduce = append)]
    seen: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Check,
    Mend,
    Never,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Good {
    text: String,
}

fn harness() -> Harness<(), Text> {
    Harness::<(), Text>::builder("texts")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define
                .run(|text: View<Text>, cx: Cx<()>| async move {
                    if cx.attempt() == 1 {
                        return Err(StepError::retryable(std::io::Error::other("a slow disk")));
                    }
                    let first = text.text.lines().next().unwrap_or_default().to_owned();
                    Ok(Text::update().text(format!("{first}\nsame\nnew")).seen(["write".into()]))
                })
                .retry(Retry::every(Duration::from_millis(1)).times(2))
                .then(Step::Check),
            Step::Check => define
                .ask(|text: View<Text>, _| async move { Ok(Good { text: text.text.clone() }) })
                .answer(|_, _, said| async move {
                    if said.answer {
                        return Ok(Text::update());
                    }
                    Err(StepError::fatal(std::io::Error::other("not good")))
                })
                .on_error(Step::Mend)
                .route(
                    |_| End::Done,
                    |signal| match signal {
                        End::Done => end(),
                        End::Never => to(Step::Never),
                    },
                ),
            Step::Mend => define.run(|_, _| async move { Ok(Text::update()) }).end(),
            Step::Never => define.run(|_, _| async move { Ok(Text::update()) }).end(),
        })
        .build()
        .unwrap()
}

#[derive(Signal, Clone, Copy, Debug, PartialEq)]
enum End {
    Done,
    Never,
}

#[tokio::test]
async fn a_report_follows_a_session_through_failures_and_answers() {
    let store = MemoryStore::new();
    let agent = harness().agent("texts", ()).store(store.clone());
    let input = Text::update().text("old\nsame\nlast");
    let outcome = agent.run(input, ()).session("t").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("it asks") };
    let sessions = Sessions::new(store);

    let open = sessions.report("t").await.unwrap();
    assert!(open.questions[0].open && open.questions[0].resolved.is_none());
    let commit = open.timeline.iter().find(|entry| entry.kind == "commit").unwrap();
    let paths: Vec<_> = commit.changes.iter().map(|change| &*change.path).collect();
    assert_eq!(paths, ["text", "seen[0]"]);
    let lines: Vec<_> = commit.changes[0].lines.iter().map(|line| &*line.text).collect();
    assert_eq!(lines, ["old", "same", "last", "new"]);

    let answer = waiting.pending::<Good>().unwrap().answer(false).by("ada");
    agent.resume("t", answer, ()).await.unwrap().ended().unwrap();
    let report = sessions.report("t").await.unwrap();
    assert_eq!(report.path[..], ["Write".into(), "Check".into(), "Mend".into()]);
    let thens: Vec<_> = report.failures.iter().map(|failed| failed.then.clone()).collect();
    assert_eq!(thens, [AfterFailure::Retried, AfterFailure::Diverted("Mend".into())]);
    assert_eq!(report.steps[0].retries, 1);
    assert!(!report.questions[0].open);
    assert!(report.to_markdown().contains("answered by ada: false"));
    assert!(report.to_html().contains("answered by ada: false"));

    // Only the loop itself knows the edge that was never taken.
    let never = |report: &Report| {
        report.transitions.iter().any(|it| it.to == Spot::Step("Never".into()) && it.times == 0)
    };
    assert!(!never(&report));
    assert!(never(&report.of_loop(harness().graph())));
}

#[tokio::test]
async fn a_pruned_log_is_reported_from_its_first_snapshot() {
    let store = MemoryStore::new();
    let agent = harness().agent("texts", ()).store(store.clone());
    for _ in 0..70 {
        let outcome = agent.run(Text::update().text("a"), ()).session("t").await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("it asks") };
        let answer = waiting.pending::<Good>().unwrap().answer(true);
        agent.resume("t", answer, ()).await.unwrap().ended().unwrap();
    }
    let sessions = Sessions::new(store.clone());
    let whole = sessions.report("t").await.unwrap();
    let session = SessionId::new("t").unwrap();
    let lease = store.claim(&session, Duration::from_secs(60)).await.unwrap().lease;
    store.remove(&lease, Remove::Below(Seq(u64::MAX))).await.unwrap();
    store.release(&lease, InboxSeq(0)).await.unwrap();

    let report = sessions.report("t").await.unwrap();
    assert!(report.status.first > Seq(1), "nothing was pruned");
    assert_eq!(report.omitted, report.status.first.0 - 1);
    assert_eq!(report.state, whole.state);
    assert_eq!(report.timeline.last(), whole.timeline.last());
    assert!(report.status.updated > UtcMillis(0));
}

#[tokio::test]
async fn a_session_that_does_not_exist_has_no_report() {
    let error = Sessions::new(MemoryStore::new()).report("none").await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test]
async fn a_report_shows_how_far_the_items_of_a_step_are() {
    let harness = Harness::<(), Text>::builder("items")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define
                .each(|text: View<Text>, _| async move { Ok(text.seen.clone()) })
                .run(|item: String, _, cx: Cx<()>| async move {
                    match item.as_str() {
                        "asks" => drop(cx.ask("good", Good { text: item.clone() }).await?),
                        "fails" => return Err(StepError::fatal("<b>no")),
                        _ => {}
                    }
                    Ok(format!("{item}!"))
                })
                .fold_all(|_, _| Ok(Text::update()))
                .end(),
            other => define.off(format!("{other:?} is not of this loop")),
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let agent = harness.agent("texts", ()).store(store.clone());
    let given = ["<i>", "fails", "asks"].map(str::to_owned);
    let outcome = agent.run(Text::update().seen(given), ()).session("t").await.unwrap();
    let Outcome::Interrupted(waits) = outcome else { panic!("it asks") };
    let sessions = Sessions::new(store);
    let report = sessions.report("t").await.unwrap();
    let said = |it: &harness::inspect::report::ItemReport| {
        (it.index, it.item.clone(), it.state, it.outcome.clone())
    };
    let expected = [
        (0, "\"<i>\"", ItemState::Done, "\"<i>!\""),
        (1, "\"fails\"", ItemState::Failed, "<b>no"),
        (2, "\"asks\"", ItemState::Waits, ""),
    ];
    let expected =
        expected.map(|(index, item, state, end)| (index, item.to_owned(), state, end.to_owned()));
    assert_eq!(report.items.iter().map(said).collect::<Vec<_>>(), expected);
    let page = report.to_html();
    assert!(page.contains("Items of Write") && page.contains("&lt;b&gt;no"), "{page}");
    assert!(!page.contains("<b>no") && !page.contains("<i>"), "{page}");
    assert!(
        report.to_markdown().contains("| 2 | waits | `\"asks\"` |"),
        "{}",
        report.to_markdown()
    );

    let answer = waits.pending::<Good>().unwrap().answer(true);
    agent.resume("t", answer, ()).await.unwrap().ended().unwrap();
    assert!(sessions.report("t").await.unwrap().items.is_empty(), "the step is over");
}
