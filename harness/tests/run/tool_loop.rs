//! The tool loop and its approvals, without crashes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::approval::{
    Approval, Approve as _, Arguments, Calls, Condition, Policy, Rule, RuleBook, Scope,
};
use harness::llm::scripted::{call, fail, say};
use harness::llm::{
    Block, Caps, Edit, EffectClass, Entry, Llm, LlmError, LlmErrorKind, Message, Scripted,
    ToolChoice, ToolError, ToolFailure, ToolOutcome, Turn, Usage, tool as new_tool,
};
use harness::loops::{Conversation, ToolUse, tool_loop};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Interrupt, Sessions};
use serde_json::{Value, json};

#[derive(Deserialize, schemars::JsonSchema)]
struct Note {
    to: String,
    text: Option<String>,
}

type Sent = Arc<Mutex<Vec<String>>>;

fn send(sent: &Sent) -> harness::llm::FnTool {
    let sent = sent.clone();
    new_tool("send", "Sends a note", move |note: Note| {
        let sent = sent.clone();
        async move {
            sent.lock().unwrap().push(note.to.clone());
            Ok(format!("sent {} to {}", note.text.unwrap_or_default(), note.to))
        }
    })
}

fn only(tool: impl harness::llm::Tool) -> ToolSet {
    ToolSet::builder().with(tool).build().unwrap()
}

fn to(name: &str) -> Value {
    json!({"to": name})
}

fn agent(model: &Scripted, tools: ToolSet, policy: Policy) -> Agent<(), Conversation> {
    let harness = tool_loop::<Conversation>(model.clone(), tools).policy(policy).build().unwrap();
    harness.agent("a", ())
}

fn outcomes(state: &Conversation) -> Vec<ToolOutcome> {
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

fn waiting(outcome: Outcome<Conversation>) -> harness::Interrupted<Conversation> {
    match outcome {
        Outcome::Interrupted(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

fn give(asked: &Interrupt, answer: &Approval) -> Answers {
    Answers::json(asked.id.clone(), serde_json::to_value(answer).unwrap())
}

#[tokio::test]
async fn an_edit_is_checked_when_the_answer_is_given() {
    let (store, sent) = (MemoryStore::new(), Sent::default());
    let model = Scripted::new([call("send", to("sam")), say("done")]);
    let policy = Policy::new().deny(Calls::of("send").with("/to", Condition::equals("root")));
    let agent = agent(&model, only(send(&sent)), policy).store(store.clone());
    let asked = waiting(agent.run(Conversation::say("go"), ()).session("s").await.unwrap());
    let asked = &asked.questions[0];
    assert_eq!((&*asked.name, &asked.question["arguments"]), ("approve_call", &to("sam")));
    for wrong in [to("root"), json!({"to": 7}), json!({}), json!({"to": null}), json!("sam")] {
        let answer = give(asked, &Approval::approve().edited(wrong.clone()));
        let refused = agent.resume("s", answer.clone(), ()).await.unwrap_err();
        assert!(refused.answer_error().unwrap().is_wrong_answer(), "{wrong}: {refused}");
        // In a program that does not know the loop.
        let refused = Sessions::new(store.clone()).answer_json("s", answer).await.unwrap_err();
        assert!(refused.answer_error().unwrap().is_wrong_answer(), "{wrong}: {refused}");
    }
    for nothing in [json!(""), json!(null), json!({}), json!("approve"), json!({"approved": true})]
    {
        let answer = Answers::json(asked.id.clone(), nothing.clone());
        let refused = agent.resume("s", answer, ()).await.unwrap_err();
        assert!(refused.answer_error().unwrap().is_wrong_answer(), "{nothing}: {refused}");
    }
    assert!(sent.lock().unwrap().is_empty());
    let answer = give(asked, &Approval::approve().edited(to("ann")));
    let ended = agent.resume("s", answer, ()).await.unwrap().ended().unwrap();
    assert_eq!(*sent.lock().unwrap(), ["ann"]);
    let text = outcomes(&ended.state)[0].content().text().unwrap();
    assert_eq!(
        text,
        "A person changed the arguments of this call to {\"to\":\"ann\"}.\nsent  to ann"
    );
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
async fn a_rule_of_the_session_answers_no_open_question_and_later_calls_only() {
    let (store, sent) = (MemoryStore::new(), Sent::default());
    let twice = say("").and_call("send", to("sam")).and_call("send", to("sam"));
    let later = say("").and_call("send", to("sam")).and_call("send", to("ann"));
    let model = Scripted::new([twice, say("one"), later, say("two")]);
    let agent = agent(&model, only(send(&sent)), Policy::new()).store(store.clone());
    let asked = waiting(agent.run(Conversation::say("go"), ()).session("s").await.unwrap());
    let rule = Arguments::new().with("/to", Condition::equals("sam"));
    let answer = Approval::approve().remember(Scope::Session, rule);
    let first = give(&asked.questions[0], &answer);
    let still = waiting(agent.resume("s", first, ()).await.unwrap());
    assert_eq!(still.questions[0].id, asked.questions[1].id, "its question waits all the same");
    let second = give(&still.questions[0], &Approval::approve());
    let ended = agent.resume("s", second, ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.tools.rules.len(), 1);

    let asked = waiting(agent.run(Conversation::say("again"), ()).session("s").await.unwrap());
    let [ann] = &asked.questions[..] else { panic!("{asked:?}") };
    assert_eq!(ann.question["arguments"], to("ann"));
    let ended = agent.resume("s", give(ann, &Approval::reject()), ()).await.unwrap();
    let ended = ended.ended().unwrap();
    assert_eq!(*sent.lock().unwrap(), ["sam", "sam", "sam"]);

    // Revoked by the input of the next turn.
    model.push(call("send", to("sam")));
    let revoked = ended.state.tools.rules[0].clone().revoked();
    let input = Conversation::say("and again").tools(ToolUse::update().rules([revoked]));
    let asked = waiting(agent.run(input, ()).session("s").await.unwrap());
    assert_eq!(asked.questions.len(), 1);
}

#[tokio::test]
async fn a_rule_of_the_agent_holds_in_its_other_sessions_until_it_is_revoked() {
    let (store, sent) = (MemoryStore::new(), Sent::default());
    let model = Scripted::from_fn(|request| match request.transcript.entries().last() {
        Some(Entry::User(_)) => call("send", to("sam")),
        _ => say("done"),
    });
    let book = RuleBook::new(store.clone(), "a").unwrap();
    let with_book = Policy::new().book(book.clone());
    let agent = agent(&model, only(send(&sent)), with_book).store(store.clone());
    let run = |session: &str| agent.run(Conversation::say("go"), ()).session(session.to_owned());
    let asked = waiting(run("one").await.unwrap());
    let answer = Approval::approve().remember(Scope::Agent, Arguments::exactly(&to("sam")));
    let ended = agent.resume("one", give(&asked.questions[0], &answer), ()).await.unwrap();
    assert!(ended.ended().unwrap().state.tools.rules.is_empty());
    run("two").await.unwrap().ended().unwrap();

    let rules = book.list().await.unwrap();
    assert_eq!(rules.len(), 1);
    assert!(book.revoke(&rules[0].id).await.unwrap());
    assert!(!book.revoke(&rules[0].id).await.unwrap());
    waiting(run("three").await.unwrap());
    // It is a session like any other.
    let id = "harness.rules/a";
    assert_eq!(
        Sessions::new(store.clone()).status(id).await.unwrap().agent.as_str(),
        "harness.rules"
    );
    book.add(rules[0].clone()).await.unwrap();
    run("four").await.unwrap().ended().unwrap();
    // A rule that denies, added by a person who looks after the agent.
    let tools = only(send(&sent));
    let none = Rule::deny(&tools.specs()[0], Arguments::new());
    book.add(none).await.unwrap();
    let ended = run("five").await.unwrap().ended().unwrap();
    assert!(matches!(outcomes(&ended.state)[0], ToolOutcome::Denied { .. }));
}

#[tokio::test]
async fn without_a_book_nothing_is_remembered_for_the_agent() {
    let model = Scripted::new([call("send", to("sam"))]);
    let agent = agent(&model, only(send(&Sent::default())), Policy::new());
    let asked = waiting(agent.run(Conversation::say("go"), ()).await.unwrap());
    let answer = Approval::approve().remember(Scope::Agent, Arguments::exactly(&to("sam")));
    let refused = agent.resume(&asked, give(&asked.questions[0], &answer), ()).await.unwrap_err();
    assert!(refused.answer_error().unwrap().is_wrong_answer(), "{refused}");
}

#[tokio::test]
async fn a_tool_that_changed_since_it_was_approved_is_asked_about_again() {
    let (store, sent) = (MemoryStore::new(), Sent::default());
    let model = Scripted::new([call("send", to("sam")), say("done")]);
    let before = agent(&model, only(send(&sent)), Policy::new()).store(store.clone());
    let asked = waiting(before.run(Conversation::say("go"), ()).session("s").await.unwrap());
    let first = &asked.questions[0];
    let yes = give(first, &Approval::approve());
    Sessions::new(store.clone()).answer_json("s", yes).await.unwrap();

    let changed = send(&sent).effect(EffectClass::Destructive);
    let after = agent(&model, only(changed), Policy::new()).store(store.clone());
    let asked = waiting(after.resume("s", Answers::none(), ()).await.unwrap());
    let again = &asked.questions[0];
    assert_ne!(again.id, first.id);
    assert_eq!(again.question["effect"], "destructive");
    assert!(sent.lock().unwrap().is_empty(), "the approval was of another tool");
    let ended = after.resume("s", give(again, &Approval::approve()), ()).await.unwrap();
    ended.ended().unwrap();
    assert_eq!(*sent.lock().unwrap(), ["sam"]);
}

#[tokio::test]
async fn a_policy_that_changed_keeps_the_answer_to_what_was_asked() {
    let (store, sent) = (MemoryStore::new(), Sent::default());
    let model = Scripted::new([call("send", to("sam")), say("done")]);
    let before = agent(&model, only(send(&sent)), Policy::new()).store(store.clone());
    let asked = waiting(before.run(Conversation::say("go"), ()).session("s").await.unwrap());
    let after = agent(&model, only(send(&sent)), Policy::deny_all()).store(store.clone());
    let answer = give(&asked.questions[0], &Approval::approve());
    after.resume("s", answer, ()).await.unwrap().ended().unwrap();
    assert_eq!(*sent.lock().unwrap(), ["sam"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_does_not_come_is_a_denial() {
    let sent = Sent::default();
    let model = Scripted::new([call("send", to("sam")), say("done")]);
    let store = MemoryStore::new();
    // It is over when the run looks at it again.
    let policy = Policy::new().expires(Duration::ZERO);
    let agent = agent(&model, only(send(&sent)), policy).store(store);
    let asked = waiting(agent.run(Conversation::say("go"), ()).session("s").await.unwrap());
    let late = agent.resume("s", give(&asked.questions[0], &Approval::approve()), ()).await;
    assert!(late.unwrap_err().answer_error().unwrap().is_expired());
    let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    assert!(matches!(outcomes(&ended.state)[0], ToolOutcome::Denied { .. }));
    assert!(sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_tool_asks_in_its_own_words() {
    #[derive(Question, Debug, PartialEq, Serialize, Deserialize)]
    #[question(answer = Approval)]
    struct MaySend {
        to: String,
    }
    let sent = Sent::default();
    let own = send(&sent)
        .effect(EffectClass::Read)
        .approve_with(|note: &Note| MaySend { to: note.to.clone() });
    let wrong = say("").and_call("send", json!({"to": 7})).and_call("send", to("sam"));
    let model = Scripted::new([wrong, say("done")]);
    let agent = agent(&model, only(own), Policy::allow_all());
    let asked = waiting(agent.run(Conversation::say("go"), ()).await.unwrap());
    let question = asked.pending::<MaySend>().unwrap();
    let ag_ui = asked.questions[0].to_ag_ui();
    assert_eq!((&*ag_ui.reason, ag_ui.tool_call_id.as_deref()), ("tool_call", Some("call-1-2")));
    assert_eq!(Interrupt::from_ag_ui(&ag_ui).unwrap(), asked.questions[0]);
    assert_eq!(question.question, MaySend { to: "sam".into() });
    let ended = asked.resume(question.answer(Approval::approve()), ()).await.unwrap();
    let outcomes = outcomes(&ended.ended().unwrap().state);
    assert!(matches!(outcomes[0], ToolOutcome::Failed { kind: ToolFailure::BadArguments, .. }));
    assert_eq!(outcomes[1], ToolOutcome::ok("sent  to sam"));
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
