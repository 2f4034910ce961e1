//! Tools that a step calls: what survives a process that dies, at every append.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::llm::{
    Block, Content, EffectClass, Entry, Tool, ToolCall, ToolCx, ToolError, ToolOutcome, ToolSpec,
    Turn,
};
use harness::observe::{EventKind, Recorder};
use harness::prelude::*;
use harness::store::MemoryStore;
use serde_json::json;

use super::rig::{Act, On, Rig, run_or_crash};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)]
    talk: Transcript,
}

#[derive(Context)]
struct Ctx {
    tools: ToolSet,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Act,
}

async fn act(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    let outcomes = cx.call_tools(&cx.tools, chat.talk.open_calls()).with(Greeting("hello"));
    Ok(Chat::update().talk(outcomes.await?))
}

fn acting(tools: ToolSet) -> Agent<Ctx, Chat> {
    Harness::<Ctx, Chat>::builder("acting")
        .provide(Ctx::fixed().tools(tools).build())
        .start(Only::Act)
        .steps(|define, Only::Act| define.run(act).end())
        .build()
        .unwrap()
        .agent("a", ())
}

/// A turn of the model with these calls.
fn calls(names: &[&str]) -> ChatUpdate {
    let calls = names.iter().enumerate().map(|(n, name)| {
        ToolCall::new(format!("call-{n}"), *name, format!(r#"{{"to":"{n}"}}"#)).into()
    });
    Chat::update().talk([user("go"), Turn::new(calls).into()])
}

fn outcomes(chat: &Chat) -> Vec<ToolOutcome> {
    let turns = chat.talk.entries().iter().filter_map(|entry| match entry {
        Entry::Assistant(turn) => Some(turn),
        _ => None,
    });
    let blocks = turns.flat_map(|turn| &turn.blocks);
    blocks
        .filter_map(|block| match block {
            Block::Call { outcome, .. } => outcome.clone(),
            _ => None,
        })
        .collect()
}

/// Writes each call down before it returns.
struct Post {
    name: &'static str,
    class: EffectClass,
    sent: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Post {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "Posts", json!({"type": "object"})).effect(self.class)
    }

    async fn call(&self, call: &ToolCall, _: &ToolCx) -> Result<Content, ToolError> {
        self.sent.lock().unwrap().push(call.id.to_string());
        Ok("sent".into())
    }
}

fn post(class: EffectClass) -> (ToolSet, Arc<Mutex<Vec<String>>>) {
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let tool = |name| Post { name, class, sent: sent.clone() };
    let tools = ToolSet::builder().with(tool("one")).with(tool("two")).build().unwrap();
    (tools, sent)
}

#[test]
fn a_call_is_made_as_often_as_its_class_allows_wherever_the_process_dies() {
    for class in
        [EffectClass::Read, EffectClass::Write, EffectClass::External, EffectClass::Destructive]
    {
        let (mut crashes, mut doubts, mut again) = (0, 0, 0);
        for (n, before) in (1..12).flat_map(|n| [(n, true), (n, false)]) {
            let (memory, (tools, sent)) = (MemoryStore::new(), post(class));
            let act = if before { Act::HangBefore } else { Act::HangAfter };
            let rig = Rig::nth(&memory, On::Append, n, act);
            let agent = |rig: &Rig| acting(tools.clone()).store(rig.clone());
            let start =
                |rig: &Rig| agent(rig).run(calls(&["one", "two"]), ()).session("s").input_id("1");
            if run_or_crash(&rig, start).is_some() {
                break;
            }
            crashes += 1;
            // The same request again begins the session, or recovers it.
            let outcome = run_or_crash(&Rig::new(memory), start).unwrap();
            let ended = outcomes(&outcome.ended().unwrap().state);
            let sent = sent.lock().unwrap();
            assert_eq!(ended.len(), 2, "append {n}");
            for (at, outcome) in ended.iter().enumerate() {
                let times = sent.iter().filter(|id| **id == format!("call-{at}")).count();
                match outcome {
                    ToolOutcome::InDoubt => doubts += 1,
                    outcome => assert_eq!(*outcome, ToolOutcome::ok("sent"), "append {n}"),
                }
                let most = if class.is_guarded() { 1 } else { 2 };
                assert!(times <= most, "{class} append {n}: {times}");
                assert!(times > 0 || *outcome == ToolOutcome::InDoubt, "{class} append {n}");
                again += usize::from(times > 1);
            }
        }
        assert!(crashes > 5, "{class}: {crashes}");
        assert_eq!(doubts > 0, class.is_guarded(), "{class}");
        assert_eq!(again > 0, !class.is_guarded(), "{class}");
    }
}

#[derive(Clone)]
struct Greeting(&'static str);

/// Greets a person.
///
/// In words of the caller.
#[tool(write, timeout = Duration::from_secs(5))]
async fn greet(
    /// The name of the person.
    to: String,
    times: Option<u8>,
    #[inject] greeting: Greeting,
    cx: Cx<Ctx>,
) -> Result<String, ToolError> {
    let said = vec![format!("{} {to}", greeting.0); usize::from(times.unwrap_or(1))].join(", ");
    Ok(format!("{said}, from {}", cx.step()))
}

#[tokio::test]
async fn a_function_is_a_tool_with_values_of_its_caller() {
    let tools = ToolSet::builder().with(greet).build().unwrap();
    let spec = &tools.specs()[0];
    assert_eq!((spec.name.as_str(), spec.effect), ("greet", EffectClass::Write));
    assert_eq!(spec.description, "Greets a person.\n\nIn words of the caller.");
    assert_eq!(spec.timeout, Some(Duration::from_secs(5)));
    assert_eq!(spec.input_schema["required"], json!(["to"]));
    let to = &spec.input_schema["properties"]["to"];
    assert_eq!(to["description"], "The name of the person.");
    assert_eq!(spec.input_schema["properties"].as_object().unwrap().len(), 2);

    let agent = acting(tools.clone());
    let ended = agent.run(calls(&["greet"]), ()).await.unwrap().ended().unwrap();
    assert_eq!(outcomes(&ended.state), [ToolOutcome::ok("hello 0, from Act")]);

    // Outside of a step nothing is injected.
    let outcome = tools.call(&ToolCall::new("c", "greet", r#"{"to":"you"}"#)).await;
    let text = outcome.content().text().unwrap();
    assert!(text.contains("needs a `") && text.contains("Greeting`"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_tool_ends_at_its_limit() {
    let slow = |name, class| {
        let tool = harness::llm::tool(name, "Waits", async |_: serde_json::Value| {
            std::future::pending::<()>().await;
            Ok("never")
        });
        tool.effect(class).timeout(Duration::from_secs(3))
    };
    let tools = ToolSet::builder()
        .with(slow("read", EffectClass::Read))
        .with(slow("pay", EffectClass::External))
        .build()
        .unwrap();
    let agent = acting(tools);
    let ended = agent.run(calls(&["read", "pay"]), ()).await.unwrap().ended().unwrap();
    let ended = outcomes(&ended.state);
    assert_eq!(ended[0].content().text().unwrap(), "tool `read` took longer than its 3s");
    assert_eq!(ended[1], ToolOutcome::InDoubt);
}

#[tokio::test]
async fn observers_see_each_call_that_is_made() {
    let (tools, _) = post(EffectClass::External);
    let seen = Recorder::default();
    let agent = acting(tools).observe(seen.clone());
    agent.run(calls(&["one", "none", "two"]), ()).await.unwrap().ended().unwrap();
    let mut lines: Vec<String> = seen
        .events()
        .iter()
        .filter(|event| {
            matches!(event.kind, EventKind::ToolStarted { .. } | EventKind::ToolEnded { .. })
        })
        .map(|event| event.kind.to_string())
        .collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "called the tool one (call-0)",
            "called the tool two (call-2)",
            "the tool one ended: ok (call-0)",
            "the tool two ended: ok (call-2)",
        ]
    );
}

#[tokio::test]
async fn observers_see_an_outcome_that_was_recorded() {
    let (tools, sent) = post(EffectClass::Write);
    let seen = Recorder::default();
    let fails_once = async |chat: View<Chat>, cx: Cx<Ctx>| {
        let outcomes = cx.call_tools(&cx.tools, chat.talk.open_calls()).await?;
        match cx.attempt() {
            1 => Err(StepError::retryable("again")),
            _ => Ok(Chat::update().talk(outcomes)),
        }
    };
    let agent = Harness::<Ctx, Chat>::builder("acting")
        .provide(Ctx::fixed().tools(tools).build())
        .start(Only::Act)
        .steps(|define, Only::Act| {
            define.run(fails_once).retry(Retry::every(Duration::from_millis(1))).end()
        })
        .build()
        .unwrap()
        .agent("a", ())
        .observe(seen.clone());
    agent.run(calls(&["one"]), ()).await.unwrap().ended().unwrap();
    assert_eq!(sent.lock().unwrap().len(), 1);
    let ended = |event: &harness::observe::Event| match &event.kind {
        EventKind::ToolEnded { class, outcome, recorded, .. } => {
            Some((event.attempt, *class, *outcome, *recorded))
        }
        _ => None,
    };
    let ended: Vec<_> = seen.events().iter().filter_map(ended).collect();
    let write = EffectClass::Write;
    assert_eq!(ended, [(1, write, "ok", false), (2, write, "ok", true)]);
}
