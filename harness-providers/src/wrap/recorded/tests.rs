use super::*;
use harness::llm::scripted::{fail, say};
use harness::llm::{Scripted, Tally, Transcript, Usage, user};
use std::fs;

async fn ask(model: &impl Llm, text: &str, cx: &CallCx) -> Result<Reply, LlmError> {
    let talk = Transcript::from_iter([user(text)]);
    model.complete(Request::new(talk.sealed().unwrap()), cx).await
}

async fn text(model: &impl Llm, asked: &str) -> String {
    ask(model, asked, &CallCx::detached()).await.unwrap().text().unwrap()
}

fn echo() -> Scripted {
    Scripted::from_fn(|request| {
        let said = serde_json::to_string(&request.transcript).unwrap();
        say(format!("on {said}")).usage(Usage::tokens(3, 1)).cost_micros(5)
    })
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    (folder, path)
}

#[tokio::test]
async fn a_replay_has_the_replies_the_spending_and_the_caps() {
    let (_folder, path) = place();
    let caps = Caps::default().structured_output(true);
    let inner = echo().with_caps(caps).with_id(ModelId::new("test", "m"));
    let model = Recorded::record(inner.clone(), &path).unwrap();
    let first = text(&model, "a").await;
    assert_eq!(text(&model, "a").await, first);
    text(&model, "grüß\ndich 🦀").await;
    assert_eq!(inner.seen().len(), 2);
    drop(model);

    let replay = Recorded::replay(&path).unwrap();
    assert_eq!((replay.id(), replay.caps()), (ModelId::new("test", "m"), caps));
    let tally = Arc::new(Tally::default());
    let cx = CallCx::detached().with_meter(tally.clone());
    assert_eq!(ask(&replay, "a", &cx).await.unwrap().text(), Some(first));
    assert_eq!((tally.spend().usage.total(), tally.spend().cost_micros), (Some(4), Some(5)));
    assert!(text(&replay, "grüß\ndich 🦀").await.contains("🦀"));
}

#[tokio::test]
async fn an_unknown_request_names_its_difference_and_no_text() {
    let (_folder, path) = place();
    let model = Recorded::record(echo(), &path).unwrap();
    text(&model, "the canary prompt").await;
    drop(model);
    let replay = Recorded::replay(&path).unwrap();
    let error = ask(&replay, "another canary", &CallCx::detached()).await.unwrap_err();
    assert!(!error.is_retryable());
    let cause = std::error::Error::source(error.advice()).unwrap();
    let unknown = cause.downcast_ref::<UnknownRequest>().unwrap();
    let difference = "line 2 is most like it, but `/request/transcript/0/user/0/text` differs";
    assert_eq!(unknown.difference.as_deref(), Some(difference));
    let shown = format!("{error} {error:?} {unknown} {unknown:?}");
    assert!(shown.contains(difference) && !shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn a_last_line_that_was_not_completed_loses_nothing_else() {
    let (_folder, path) = place();
    let model = Recorded::record(echo(), &path).unwrap();
    let (a, b) = (text(&model, "a").await, text(&model, "b").await);
    drop(model);
    let whole = fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..whole.len() - 1 {
        fs::write(&path, &whole[..cut]).unwrap();
        let replay = Recorded::replay(&path).unwrap();
        assert_eq!(text(&replay, "a").await, a, "cut at {cut}");
        ask(&replay, "b", &CallCx::detached()).await.unwrap_err();
        let again = Recorded::record(echo(), &path).unwrap();
        assert_eq!(text(&again, "b").await, b);
        drop(again);
        assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
    }
    // A line without its end is complete.
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(text(&Recorded::replay(&path).unwrap(), "b").await, b);
    let again = Recorded::record(echo(), &path).unwrap();
    text(&again, "c").await;
    drop(again);
    assert!(fs::read(&path).unwrap().starts_with(&whole));
    // A file whose first line was not completed is a new one.
    fs::write(&path, &whole[..9]).unwrap();
    assert!(matches!(Recorded::replay(&path), Err(RecordedError::File { .. })));
    assert_eq!(text(&Recorded::record(echo(), &path).unwrap(), "a").await, a);
}

#[tokio::test]
async fn a_file_that_does_not_fit_is_refused() {
    let (_folder, path) = place();
    let model = Recorded::record(echo(), &path).unwrap();
    text(&model, "a").await;
    assert!(matches!(Recorded::record(echo(), &path), Err(RecordedError::InUse { .. })));
    drop(model);
    let other = echo().with_id(ModelId::new("test", "other"));
    let error = Recorded::record(other, &path).unwrap_err();
    assert!(matches!(error, RecordedError::OtherModel { .. }), "{error}");
    let mut lines = fs::read_to_string(&path).unwrap();
    lines.push_str("no json\n{}\n");
    fs::write(&path, lines).unwrap();
    let error = Recorded::replay(&path).unwrap_err();
    assert!(matches!(error, RecordedError::Line { line: 3, .. }), "{error}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(Recorded::replay(&path), Err(RecordedError::File { .. })));
}

#[tokio::test]
async fn errors_are_not_recorded() {
    let (_folder, path) = place();
    let error = fail(LlmError::new(LlmErrorKind::Overloaded));
    let model = Recorded::record(Scripted::new([error, say("ok")]), &path).unwrap();
    ask(&model, "a", &CallCx::detached()).await.unwrap_err();
    assert_eq!(text(&model, "a").await, "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_record_whole_lines_and_equal_ones_one() {
    let (_folder, path) = place();
    let model = Arc::new(Recorded::record(echo(), &path).unwrap());
    let calls: Vec<_> = (0..200)
        .map(|number| {
            let model = Arc::clone(&model);
            tokio::spawn(async move { text(&*model, &format!("q{}", number % 50)).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    drop(model);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 51);
    let replay = Recorded::replay(&path).unwrap();
    for number in 0..50 {
        assert!(text(&replay, &format!("q{number}")).await.contains(&format!("q{number}\"")));
    }
}
