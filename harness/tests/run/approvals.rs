//! Approvals of the calls of a tool loop: answers, rules, and what they are bound to.

use std::time::Duration;

use harness::approval::{
    Approval, Approve as _, Arguments, Calls, Condition, Policy, Rule, RuleBook, Scope,
};
use harness::llm::scripted::{call, say};
use harness::llm::{EffectClass, Entry, Scripted, ToolFailure, ToolOutcome};
use harness::loops::{Conversation, ToolUse};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Interrupt, Sessions};
use serde_json::json;

use super::tool_loop::{Note, Sent, agent, give, only, outcomes, send, to, waiting};

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
