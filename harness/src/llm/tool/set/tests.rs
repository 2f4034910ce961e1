use super::*;
use crate::llm::{Content, ToolError, tool};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

struct Hasty;

#[async_trait]
impl Tool for Hasty {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("hasty", "", json!({"type": "object"}))
    }

    async fn call(&self, call: &ToolCall, _: &ToolCx) -> Result<Content, ToolError> {
        let args: Search = call.args()?;
        panic!("secret of {}", args.query);
    }
}

fn tools() -> ToolSet {
    ToolSet::builder()
        .with(tool("search", "Searches", |args: Search| async move {
            Ok(format!("about {}", args.query))
        }))
        .with(tool("sleep", "Waits", |_: Value| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok("slept")
        }))
        .with(tool("fail", "Fails", |_: Value| async {
            Err::<(), _>(ToolError::new("the disk is full"))
        }))
        .with(Hasty)
        .build()
        .unwrap()
}

async fn failure(name: &str, arguments: &str) -> (ToolFailure, String) {
    match tools().call(&ToolCall::new("c", name, arguments)).await {
        ToolOutcome::Failed { kind, content } => (kind, content.text().unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_tool_returns_its_result() {
    let call = ToolCall::new("c", "search", r#"{"query":"rust"}"#);
    let outcome = tools().call(&call).await;
    assert_eq!(outcome, ToolOutcome::ok("about rust"));
}

#[tokio::test]
async fn an_unknown_tool_is_an_outcome_with_a_near_match() {
    let (kind, text) = failure("serch", "{}").await;
    assert_eq!(kind, ToolFailure::UnknownTool);
    insta::assert_snapshot!(text, @"unknown tool `serch` (did you mean `search`? available: `search`, `sleep`, `fail`, `hasty`)");
    let (_, text) = failure("xyz", "{}").await;
    insta::assert_snapshot!(text, @"unknown tool `xyz` (available: `search`, `sleep`, `fail`, `hasty`)");
    let outcome = ToolSet::default().call(&ToolCall::new("c", "search", "{}")).await;
    insta::assert_snapshot!(outcome.content().text().unwrap(), @"unknown tool `search` (answer without tools)");
}

#[tokio::test]
async fn the_text_about_an_unknown_tool_is_bounded() {
    let named = |at: u32| tool(format!("tool-{at}"), "", |_: Value| async { Ok(()) });
    let tools = ToolSet::builder().with_all((0..500).map(named)).build().unwrap();
    let call = ToolCall::new("c", "x".repeat(100_000), "{}");
    let text = tools.call(&call).await.content().text().unwrap();
    assert!(text.len() < 400, "{text}");
    assert!(text.ends_with("`tool-19` and 480 more)"), "{text}");
}

#[tokio::test]
async fn bad_arguments_report_the_expected_schema() {
    let (kind, text) = failure("search", r#"{"q":1}"#).await;
    assert_eq!(kind, ToolFailure::BadArguments);
    insta::assert_snapshot!(text, @r#"the arguments of `search` do not match: missing field `query` at line 1 column 7 (call it again with arguments that match {"properties":{"query":{"type":"string"}},"required":["query"],"title":"Search","type":"object"})"#);
    // A tool that implements the trait gets the same by `?`.
    let (kind, text) = failure("hasty", "nonsense").await;
    assert_eq!(kind, ToolFailure::BadArguments);
    insta::assert_snapshot!(text, @r#"the arguments of `hasty` are not valid JSON: expected ident at line 1 column 2 (call it again with arguments that match {"type":"object"})"#);
}

#[tokio::test]
async fn an_error_is_an_outcome() {
    let (kind, text) = failure("fail", "{}").await;
    assert_eq!(kind, ToolFailure::Errored);
    assert_eq!(text, "the disk is full");
}

#[tokio::test]
async fn an_error_may_be_any_outcome() {
    let failed = ToolOutcome::failed(ToolFailure::TimedOut, json!({"waited": 5}));
    for outcome in [ToolOutcome::InDoubt, failed] {
        let error = outcome.clone();
        let known = tool("known", "", move |_: Value| {
            let error = ToolError::outcome(error.clone());
            async { Err::<(), _>(error) }
        });
        let tools = ToolSet::builder().with(known).build().unwrap();
        assert_eq!(tools.call(&ToolCall::new("c", "known", "{}")).await, outcome);
    }
}

#[tokio::test]
async fn a_panic_is_an_outcome_without_its_message() {
    let (kind, text) = failure("hasty", r#"{"query":"x"}"#).await;
    assert_eq!(kind, ToolFailure::Panicked);
    assert_eq!(text, "tool `hasty` panicked");
}

/// Panics before it returns its future, as a hand-written trait method can.
struct Early;

impl Tool for Early {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("early", "", json!({"type": "object"}))
    }

    fn call<'a, 'c, 'x, 'f>(
        &'a self,
        _: &'c ToolCall,
        _: &'x ToolCx,
    ) -> BoxFuture<'f, Result<Content, ToolError>>
    where
        'a: 'f,
        'c: 'f,
        'x: 'f,
        Self: 'f,
    {
        panic!("early")
    }
}

#[tokio::test]
async fn a_panic_before_the_future_is_an_outcome() {
    let tools = ToolSet::builder().with(Early).build().unwrap();
    let outcome = tools.call(&ToolCall::new("c", "early", "{}")).await;
    let panicked = ToolOutcome::failed(ToolFailure::Panicked, "tool `early` panicked");
    assert_eq!(outcome, panicked);
}

#[tokio::test(start_paused = true)]
async fn calls_run_concurrently_and_return_in_call_order() {
    let calls = [
        ToolCall::new("a", "sleep", ""),
        ToolCall::new("b", "search", r#"{"query":"rust"}"#),
        ToolCall::new("c", "hasty", r#"{"query":"x"}"#),
        ToolCall::new("d", "sleep", ""),
    ];
    let start = tokio::time::Instant::now();
    // The future borrows nothing and is `Send`, as a step's future must be.
    let messages = tokio::spawn(tools().call_all(calls)).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    let outcome = |call: &str, outcome| Message::Outcome { call: call.into(), outcome };
    assert_eq!(
        messages,
        [
            outcome("a", ToolOutcome::ok("slept")),
            outcome("b", ToolOutcome::ok("about rust")),
            outcome("c", ToolOutcome::failed(ToolFailure::Panicked, "tool `hasty` panicked")),
            outcome("d", ToolOutcome::ok("slept")),
        ]
    );
}

#[tokio::test]
async fn dropping_the_future_drops_the_tools() {
    struct Guard(Arc<AtomicBool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let seen = dropped.clone();
    let hang = tool("hang", "", move |_: Value| {
        let guard = Guard(seen.clone());
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok(())
        }
    });
    let tools = ToolSet::builder().with(hang).build().unwrap();
    let mut running = tools.call_all([ToolCall::new("c", "hang", "{}")]);
    assert!((&mut running).now_or_never().is_none());
    drop(running);
    assert!(dropped.load(Ordering::SeqCst));
}

#[test]
fn every_problem_of_a_set_is_reported() {
    let named = |name: &str| tool(name, "", |_: Value| async { Ok(()) });
    let error = ToolSet::builder()
        .with_all([named("a"), named("a"), named("mcp/read")])
        .with(tool("number", "", |_: u8| async { Ok(()) }))
        .build()
        .unwrap_err();
    let text = error.problems().join("\n");
    let lines = text.lines().map(|line| line.split(" at harness").next().unwrap());
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @"
tool `a` is added twice (rename or remove one), the second
`mcp/read` is not a valid tool name (use 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `_` and `-`),
the input schema of `number` is not of type `object` (make its argument a struct),
");
    assert_eq!(text.matches(file!()).count(), 3);
}

#[test]
fn tools_keep_their_order() {
    let tools = tools();
    let names: Vec<_> = tools.specs().iter().map(|spec| &spec.name).collect();
    assert_eq!(format!("{names:?}").matches("ToolName").count(), 4);
    insta::assert_snapshot!(format!("{tools:?}"), @r#"ToolSet {"search", "sleep", "fail", "hasty"}"#);
}
