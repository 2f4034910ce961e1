//! The tool loop, without crashes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use harness::Interrupt;
use harness::approval::{Approval, Policy};
use harness::llm::scripted::{call, fail, say};
use harness::llm::{
    Block, Caps, Edit, EffectClass, Entry, Llm, LlmError, LlmErrorKind, Message, Scripted,
    ToolChoice, ToolError, ToolFailure, ToolOutcome, Turn, Usage, tool as new_tool,
};
use harness::loops::{Conversation, tool_loop};
use harness::prelude::*;
use harness::store::MemoryStore;
use serde_json::{Value, json};

#[derive(Deserialize, schemars::JsonSchema)]
pub(super) struct Note {
    pub(super) to: String,
    pub(super) text: Option<String>,
}

pub(super) type Sent = Arc<Mutex<Vec<String>>>;

pub(super) fn send(sent: &Sent) -> harness::llm::FnTool {
    let sent = sent.clone();
    new_tool("send", "Sends a note", move |note: Note| {
        let sent = sent.clone();
        async move {
            sent.lock().unwrap().push(note.to.clone());
            Ok(format!("sent {} to {}", note.text.unwrap_or_default(), note.to))
        }
    })
}

pub(super) fn only(tool: impl harness::llm::Tool) -> ToolSet {
    ToolSet::builder().with(tool).build().unwrap()
}

pub(super) fn to(name: &str) -> Value {
    json!({"to": name})
}

pub(super) fn agent(model: &Scripted, tools: ToolSet, policy: Policy) -> Agent<(), Conversation> {
    let harness = tool_loop::<Conversation>(model.clone(), tools).policy(policy).build().unwrap();
    harness.agent("a", ())
}

pub(super) fn outcomes(state: &Conversation) -> Vec<ToolOutcome> {
    let turns = state.talk.entries().iter().filter_map(|entry| match entry {
        Entry::Assistant(turn) => Some(turn),
        _ => None,
    });
    let blocks = turns.flat_map(|turn| &turn.blocks);
    let outcomes = blocks.filter_map(|block| match block {
        Block::Call { outcome, .. } => outcome.clone(),
        _ => None,
    });
    outcomes.collect()
}

pub(super) fn waiting(outcome: Outcome<Conversation>) -> harness::Interrupted<Conversation> {
    match outcome {
        Outcome::Interrupted(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

pub(super) fn give(asked: &Interrupt, answer: &Approval) -> Answers {
    Answers::json(asked.id.clone(), serde_json::to_value(answer).unwrap())
}

#[tokio::test]
async fn the_model_is_sent_what_a_person_says_about_each_call() {
    let sent = Sent::default();
    let three =
        say("").and_call("send", to("a")).and_call("send", to("b")).and_call("send", to("c"));
    let model = Scripted::new([three, say("done")]);
    let agent = agent(&model, only(send(&sent)), Policy::new());
    let asked = waiting(agent.run(Conversation::say("go"), ()).await.unwrap());
    let [a, b, c] = &asked.questions[..] else { panic!("{asked:?}") };
    let answers = give(a, &Approval::reject_because("not now"))
        .and(give(b, &Approval::approve()))
        .and(give(c, &Approval::steer("ask c first")));
    let ended = agent.resume(&asked, answers, ()).await.unwrap().ended().unwrap();
    assert_eq!(
        outcomes(&ended.state),
        [
            ToolOutcome::Denied { reason: Some("not now".into()) },
            ToolOutcome::ok("sent  to b"),
            ToolOutcome::Steered { content: "ask c first".into() },
        ]
    );
    assert_eq!(*sent.lock().unwrap(), ["b"]);
    assert!(ended.state.tools.rulings.is_empty());
    // The model has seen all of it.
    assert_eq!(model.seen()[1].transcript, {
        let mut talk = ended.state.talk.clone();
        talk.edit(Edit::remove(talk.len() - 1..talk.len())).unwrap();
        talk
    });
}

#[tokio::test]
async fn a_turn_is_bounded_and_ends_with_an_answer() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let look = new_tool("look", "Looks", move |_: Value| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok("nothing") }
    });
    let model = Scripted::from_fn(|request| match request.tool_choice {
        ToolChoice::None => say("I give up.").and_call("look", json!({})),
        _ => call("look", json!({})),
    });
    let tools = only(look.effect(EffectClass::Read));
    let agent = tool_loop::<Conversation>(model.clone(), tools).max_turns(3).build().unwrap();
    let agent = agent.agent("a", ()).store(MemoryStore::new());
    for turn in 1..=2 {
        let ended = agent.run(Conversation::say("look"), ()).session("s").await.unwrap();
        let state = ended.ended().unwrap().state;
        assert_eq!(state.answer().as_deref(), Some("I give up."));
        assert_eq!(calls.load(Ordering::SeqCst), 3 * turn);
        assert!(!state.talk.has_open_calls());
        assert_eq!(model.seen().len() as u32, 4 * turn);
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_provider_is_asked_again_and_spending_counts() {
    let busy = || fail(LlmError::new(LlmErrorKind::Overloaded));
    let model = Scripted::new([
        busy(),
        call("look", json!({})).usage(Usage::tokens(10, 1)),
        busy(),
        say("seen").usage(Usage::tokens(20, 2)),
    ]);
    let look = new_tool("look", "Looks", async |_: Value| Ok("nothing")).effect(EffectClass::Read);
    let tight = |budget| {
        let of = tool_loop::<Conversation>(
            model.clone(),
            only(
                new_tool("look", "Looks", async |_: Value| Ok("nothing")).effect(EffectClass::Read),
            ),
        );
        of.budget(budget).build().unwrap().agent("a", ())
    };
    let ended = agent(&model, only(look), Policy::new());
    let ended = ended.run(Conversation::say("look"), ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.spent.usage.total(), Some(33));
    assert_eq!(ended.state.tools.tokens, Some(22));

    model.push(call("look", json!({})).usage(Usage::tokens(10, 1)));
    let budget = Budget::default().tokens(5);
    let outcome = tight(budget).run(Conversation::say("look"), ()).await.unwrap();
    assert!(matches!(outcome, Outcome::Exhausted(_)), "{outcome:?}");
}

#[tokio::test]
async fn a_transcript_that_is_too_long_is_shortened_with_the_reply() {
    let long = || LlmError::new(LlmErrorKind::ContextLength);
    let model = Scripted::new([
        say("one").usage(Usage::tokens(10, 1)),
        fail(long()),
        say("two").usage(Usage::tokens(500, 1)),
        say("three"),
        fail(long()),
        fail(long()),
    ]);
    let seen = Arc::new(AtomicU32::new(0));
    let shortened = seen.clone();
    let agent = tool_loop::<Conversation>(model.clone(), ToolSet::default())
        .compact(100, move |talk: Transcript, _cx: Cx<()>| {
            shortened.fetch_add(1, Ordering::SeqCst);
            async move { Ok(vec![Edit::summarize(0..talk.len() - 1, "before")]) }
        })
        .build()
        .unwrap()
        .agent("a", ())
        .store(MemoryStore::new());
    let run = |text: &str| agent.run(Conversation::say(text), ()).session("s");
    run("a").await.unwrap().ended().unwrap();
    // The model says so: [a, one, b] -> [before, b], and the reply.
    let state = run("b").await.unwrap().ended().unwrap().state;
    assert_eq!((state.talk.len(), seen.load(Ordering::SeqCst)), (3, 1));
    assert_eq!(model.seen()[2].transcript.len(), 2);
    // The last request was above the limit: [before, b, two, c] -> [before, c].
    let state = run("c").await.unwrap().ended().unwrap().state;
    assert_eq!((state.talk.len(), seen.load(Ordering::SeqCst)), (3, 2));
    assert_eq!(state.answer().as_deref(), Some("three"));
    // One that stays too long fails, and is not shortened without an end.
    let Outcome::Failed(failed) = run("d").await.unwrap() else { panic!("it fails") };
    assert!(failed.failure.message.contains("this long"), "{}", failed.failure);
    assert_eq!(seen.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_model_without_tools_calls_them_in_its_text() {
    let sent = Sent::default();
    let model = Scripted::new([
        say("I will write.\n```json\n{\"tool\": \"send\", \"arguments\": {\"to\": \"sam\", \"text\": \"a\nb\"}}\n```"),
        say("{\"tool\": \"send\", \"arguments\": {\"to\": \"ann\""),
        say("{\"calls\": [{\"tool\": \"send\", \"arguments\": {\"to\": \"ann\"}}, {\"tool\": \"sent\"}]}"),
        say("Both have it."),
    ])
    .with_caps(Caps::default());
    let agent = agent(&model, only(send(&sent)), Policy::allow_all());
    let ended = agent.run(Conversation::say("go"), ()).await.unwrap().ended().unwrap();
    assert_eq!(*sent.lock().unwrap(), ["sam", "ann"]);
    assert_eq!(ended.state.answer().as_deref(), Some("Both have it."));
    let outcomes = outcomes(&ended.state);
    assert_eq!(outcomes[0], ToolOutcome::ok("sent a\nb to sam"));
    assert!(matches!(outcomes[2], ToolOutcome::Failed { kind: ToolFailure::UnknownTool, .. }));
    for seen in model.seen() {
        assert!(seen.tools.is_empty(), "the model knows no tools");
        assert!(seen.system.unwrap().contains("Sends a note"));
        let calls = seen.transcript.entries().iter().any(|entry| match entry {
            Entry::Assistant(turn) => turn.calls().next().is_some(),
            _ => false,
        });
        assert!(!calls, "nor calls");
    }
    let again = &model.seen()[2].transcript;
    let Some(Entry::User(asked)) = again.entries().last() else { panic!("{again:?}") };
    assert!(asked.text().unwrap().contains("malformed"), "{asked:?}");
}

#[tokio::test]
async fn two_calls_with_one_id_have_an_outcome_each() {
    let sent = Sent::default();
    let one = |to: &str| harness::llm::ToolCall::new("same", "send", json!({"to": to}).to_string());
    let turn = Turn::new([one("a").into(), one("b").into()]);
    let model = Scripted::from_fn(move |request| match request.transcript.entries().last() {
        Some(Entry::User(_)) => turn.clone().into(),
        _ => say("done"),
    });
    let agent = agent(&model, only(send(&sent)), Policy::allow_all());
    let ended = agent.run(Conversation::say("go"), ()).await.unwrap().ended().unwrap();
    assert_eq!(
        outcomes(&ended.state),
        [ToolOutcome::ok("sent  to a"), ToolOutcome::ok("sent  to b")]
    );
}

#[derive(Clone)]
struct Greeting(&'static str);

#[derive(Context)]
struct Ctx {
    greeting: Greeting,
    #[slot(runtime)]
    model: Arc<dyn Llm>,
}

/// Greets.
#[tool(read)]
async fn greet(#[inject] greeting: Greeting, cx: Cx<Ctx>) -> Result<String, ToolError> {
    Ok(format!("{} from {}", greeting.0, cx.step()))
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Whole {
    #[state(nest)]
    chat: Conversation,
    done: bool,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    #[step(nest)]
    Chat(harness::loops::Step),
    Finish,
}

#[tokio::test]
async fn it_is_nested_with_slots_of_the_loop_around_it() {
    use harness::loops::{Step as Tool, ToolLoop};
    let chat = ToolLoop::<Conversation, Ctx>::from_context(|cx| cx.model.clone(), |_| only(greet))
        .with_from(|cx: &Ctx| cx.greeting.clone());
    let harness = Harness::<Ctx, Whole>::builder("whole")
        .provide(Ctx::fixed().greeting(Greeting("hello")).build())
        .start(Step::Chat(Tool::Think))
        .steps(|define, step| match step {
            Step::Chat(step) => define
                .part(|whole| &whole.chat, |chat| Whole::update().chat(chat))
                .nest(Step::Chat, |define, step| chat.steps(define, step), step)
                .then(Step::Finish),
            Step::Finish => define.run(|_, _| async move { Ok(Whole::update().done(true)) }).end(),
        })
        .build()
        .unwrap();
    let model: Arc<dyn Llm> = Arc::new(Scripted::new([call("greet", json!({})), say("done")]));
    let input = Whole::update().chat(Conversation::say("go"));
    let slots = Ctx::runtime().model(model).build();
    let ended = harness.agent("w", ()).run(input, slots).await.unwrap().ended().unwrap();
    assert!(ended.state.done);
    assert_eq!(outcomes(&ended.state.chat), [ToolOutcome::ok("hello from Chat/Act")]);
}

#[tokio::test]
async fn a_conversation_is_read_back_as_it_was_said() {
    let model = Scripted::new(["hello"]);
    let agent = agent(&model, ToolSet::default(), Policy::new());
    let ended = agent.run(Conversation::say("hi"), ()).await.unwrap().ended().unwrap();
    let json = serde_json::to_value(&ended.state).unwrap();
    assert_eq!(serde_json::from_value::<Conversation>(json).unwrap(), ended.state);
    assert!(matches!(Message::from(Turn::from("x")), Message::Assistant(_)));
}
