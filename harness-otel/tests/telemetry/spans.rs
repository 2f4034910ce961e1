//! The spans of runs, as trees.

use std::time::Duration;

use harness::llm::scripted::{fail, say};
use harness::llm::{
    EffectClass, LlmError, LlmErrorKind, Request, Scripted, ToolCall, ToolError, ToolSet, Usage,
    tool,
};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness_otel::Builder;
use harness_store::FileStore;
use opentelemetry::trace::TraceId;

use crate::rig::{Doc, Traced, asking, line, only};

fn talk() -> Transcript {
    Transcript::from_iter([user("a secret")])
}

#[tokio::test]
async fn calls_in_parallel_are_in_the_span_of_their_step() {
    let traced = Traced::new();
    let model = Scripted::new([
        say("one").usage(Usage::tokens(3, 4)),
        fail(LlmError::new(LlmErrorKind::Overloaded)),
    ]);
    let find = async |_: serde_json::Value| {
        tokio::task::yield_now().await;
        tracing::info_span!("inside the tool").in_scope(|| {});
        Ok::<_, ToolError>("found")
    };
    let broken = async |_: serde_json::Value| Err::<String, _>(ToolError::new("a secret"));
    let tools = ToolSet::builder()
        .with(tool("find", "Finds", find).effect(EffectClass::Write))
        .with(tool("break", "Breaks", broken))
        .build()
        .unwrap();
    let agent = only("bot", move |_, cx: Cx<()>| {
        let (model, tools) = (model.clone(), tools.clone());
        async move {
            let (talk, none) = (talk(), ToolSet::default());
            let (one, two) = (cx.llm(&model), cx.llm(&model));
            let (one, two) = tokio::join!(one.complete(&talk, &none), two.complete(&talk, &none));
            assert!(one.is_ok() && two.is_err());
            let calls = [ToolCall::new("1", "find", "{}"), ToolCall::new("2", "break", "{}")];
            cx.call_tools(&tools, calls).await?;
            tracing::info_span!("after them").in_scope(|| {});
            line("done")
        }
    });
    agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
    insta::assert_snapshot!(traced.tree());
}

fn calling(tool_says: &str, model: Scripted) -> Agent<(), Doc> {
    let said = tool_says.to_owned();
    let find = move |_: serde_json::Value| {
        let said = said.clone();
        async move { Ok::<_, ToolError>(said) }
    };
    let tools = ToolSet::builder().with(tool("find", "Finds", find)).build().unwrap();
    only("bot", move |_, cx: Cx<()>| {
        let (model, tools) = (model.clone(), tools.clone());
        async move {
            let talk = Transcript::from_iter([user("the first"), user("é".repeat(100))]);
            let request = Request::new(talk.sealed().unwrap()).system("be kind");
            let reply = cx.llm(&model).request(request).await?;
            cx.call_tools(&tools, reply.calls().cloned()).await?;
            line("done")
        }
    })
}

/// Off by default; then cut, the last messages first, and seen by the redaction.
#[tokio::test]
async fn the_content_of_calls_is_exported_if_it_is_asked_for() {
    let model =
        || Scripted::new([say("well").and_call("find", serde_json::json!({"what": "a canary"}))]);
    let run = async |builder: fn(Builder) -> Builder| {
        let traced = Traced::of(builder);
        let agent = calling("found a canary", model());
        agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
        traced.tree()
    };
    let off = run(|builder| builder).await;
    assert!(!off.contains("canary") && !off.contains("messages"), "{off}");
    let on =
        run(|builder| builder.content(150).redact(|_, text| Some(text.replace("canary", "***"))));
    insta::assert_snapshot!(on.await);
}

#[tokio::test]
async fn retries_are_events_of_the_step_and_its_failure_an_error() {
    let traced = Traced::new();
    let agent = only("bot", |_, _| async move { Err(StepError::retryable("a secret")) });
    let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
    assert!(matches!(outcome, Outcome::Failed(_)));
    insta::assert_snapshot!(traced.tree());
}

#[tokio::test]
async fn a_step_that_panics_is_an_error() {
    let traced = Traced::new();
    let agent = only("bot", |_, _| async move { panic!("a secret") });
    agent.run(Doc::update(), ()).session("s").await.unwrap();
    insta::assert_snapshot!(traced.tree());
}

/// A run that asks is no error; the run that resumes the session has a trace of its own and a link.
#[tokio::test]
async fn a_run_that_resumes_a_session_links_to_the_run_before() {
    let traced = Traced::new();
    let store = MemoryStore::new();
    let asked = asking().store(store.clone()).run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = asked else { panic!("{asked:?}") };
    let answers = Answers::json(waiting.questions[0].id.clone(), true.into());
    // An agent of another process has nothing but the store.
    let resumed = asking().store(store).resume("s", answers, ()).await.unwrap();
    resumed.ended().unwrap();
    insta::assert_snapshot!(traced.tree());
}

const LOST: &str = "HARNESS_OTEL_LOST";

/// The process of the test below.
#[tokio::test]
async fn aborts_in_a_step() {
    let Ok(folder) = std::env::var(LOST) else { return };
    let _traced = Traced::new();
    let agent = only("bot", |_, cx: Cx<()>| async move {
        cx.once("known", async || Ok(())).await?;
        std::process::abort()
    });
    let store = FileStore::open(folder).await.unwrap();
    agent.store(store).run(Doc::update(), ()).session("s").await.unwrap();
}

/// Nothing of the run was exported, but the session keeps where it was.
#[tokio::test]
async fn a_run_that_recovers_a_session_links_to_the_run_that_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let lost = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "spans::aborts_in_a_step"])
        .env(LOST, folder.path())
        .output()
        .unwrap();
    assert!(!lost.status.success(), "{lost:?}");
    let traced = Traced::new();
    let store = FileStore::open(folder.path()).await.unwrap();
    let agent = only("bot", |_, cx: Cx<()>| async move {
        cx.once("known", async || Err::<(), _>(StepError::fatal("it happened before"))).await?;
        line("done")
    });
    let resumed = agent.store(store).resume("s", Answers::none(), ()).await.unwrap();
    resumed.ended().unwrap();
    insta::assert_snapshot!(traced.tree());
}

/// The store keeps where an answer was given and an input was sent, and no more of it.
#[tokio::test]
async fn a_run_links_to_where_it_was_answered_and_where_its_input_was_sent() {
    use tracing::Instrument as _;

    let traced = Traced::new();
    let store = MemoryStore::new();
    let agent = asking().store(store.clone());
    let asked = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = asked else { panic!("{asked:?}") };
    let question = waiting.questions[0].id.clone();
    let sessions = harness::Sessions::new(store.clone());
    let answers = Answers::json(question, true.into());
    let answer = sessions.answer_json("s", answers);
    answer.instrument(tracing::info_span!("request with the answer")).await.unwrap();
    let input = Doc::update().lines(["more".to_owned()]);
    let queue = agent.enqueue("s", input).input_id("next").into_future();
    queue.instrument(tracing::info_span!("request with the input")).await.unwrap();
    let asked = agent.resume("s", Answers::none(), ()).await.unwrap();
    assert!(matches!(asked, Outcome::Interrupted(_)), "the next turn asks too");
    insta::assert_snapshot!(traced.tree());
}

#[tokio::test]
async fn a_run_is_a_part_of_the_request_that_started_it() {
    let traced = Traced::new();
    let agent = only("bot", |_, _| async move { line("done") }).store(MemoryStore::new());
    let origin = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = agent.run(Doc::update(), ()).session("s").trace([("traceparent", origin)]);
    request.await.unwrap().ended().unwrap();
    let spans = traced.spans();
    let trace = TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").unwrap();
    assert!(spans.iter().all(|span| span.span_context.trace_id() == trace));
    insta::assert_snapshot!(traced.tree());
}

#[tokio::test]
async fn a_run_that_is_cancelled_or_dropped_is_no_error() {
    let traced = Traced::new();
    let waits = || only("bot", |_, _| async move { std::future::pending().await });
    let run = waits().run(Doc::update(), ()).session("cancelled").start();
    tokio::task::yield_now().await;
    run.cancel();
    run.await.unwrap();
    let request = waits().run(Doc::update(), ()).session("dropped").into_future();
    tokio::time::timeout(Duration::from_millis(1), request).await.unwrap_err();
    insta::assert_snapshot!(traced.tree());
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Each {
    Each,
}

#[tokio::test]
async fn items_in_parallel_have_spans_of_their_own() {
    let traced = Traced::new();
    let agent = Harness::<(), Doc>::builder("each")
        .start(Each::Each)
        .steps(|define, Each::Each| {
            define
                .each(|_, _| async move { Ok(vec![0_u32, 1, 2]) })
                .key(|n| format!("part {n}"))
                .concurrency(3)
                .run(|item: u32, _view, cx: Cx<()>| async move {
                    tokio::task::yield_now().await;
                    tracing::info_span!("inside", item).in_scope(|| {});
                    if item == 1 && cx.attempt() == 1 {
                        return Err(StepError::retryable("a secret"));
                    }
                    Ok(format!("item {item}"))
                })
                .fold(|_, lines| Ok(Doc::update().lines(lines)))
                .retry(Retry::every(Duration::from_millis(1)))
                .end()
        })
        .build()
        .unwrap()
        .agent("bot", ());
    agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
    insta::assert_snapshot!(traced.tree());
}

/// A task that outlives its run does not keep the run's spans open.
#[tokio::test]
async fn spans_are_over_when_the_run_has_settled() {
    let traced = Traced::new();
    let agent = only("bot", |_, _| async move {
        let span = tracing::Span::current();
        std::mem::forget(span);
        line("done")
    });
    agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
    assert_eq!(traced.spans().len(), 2);
}

/// Its trace is not that of the run, whose spans are over, and it is one trace.
#[tokio::test]
async fn a_task_that_outlives_its_run_has_a_trace_of_its_own_with_a_link() {
    use tracing::Instrument as _;

    let traced = Traced::new();
    let (settled, wait) = tokio::sync::watch::channel(false);
    let (done, ended) = std::sync::mpsc::channel();
    let agent = only("bot", move |_, _| {
        let (mut wait, done) = (wait.clone(), done.clone());
        let task = async move {
            wait.wait_for(|settled| *settled).await.unwrap();
            tracing::info_span!("late").in_scope(|| {
                tracing::info_span!("inside").in_scope(|| {});
            });
            done.send(()).unwrap();
        };
        tokio::spawn(task.in_current_span());
        async move { line("done") }
    });
    agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
    settled.send_replace(true);
    while ended.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    insta::assert_snapshot!(traced.tree());
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Stage {
    Draft,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    Good,
}

#[tokio::test]
async fn the_signal_of_each_route_is_on_its_step_and_the_last_one_on_the_run() {
    let traced = Traced::new();
    let agent = Harness::<(), Doc>::builder("drafts")
        .start(Stage::Draft)
        .steps(|define, Stage::Draft| {
            define.run(|_, _: Cx<()>| async { line("draft") }).route(
                |doc: &Doc| if doc.lines.len() < 2 { Next::Again } else { Next::Good },
                |next| match next {
                    Next::Again => to(Stage::Draft),
                    Next::Good => end(),
                },
            )
        })
        .build()
        .unwrap()
        .agent("bot", ());
    agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
    insta::assert_snapshot!(traced.tree());
}
