//! The tool loop, with a process that dies at every append, and approvals from several processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use harness::approval::{Approval, Approve as _, Calls, Condition, Policy};
use harness::llm::scripted::{Line, say};
use harness::llm::{
    Block, Content, EffectClass, Entry, Scripted, Tool, ToolCall, ToolCx, ToolError, ToolOutcome,
    ToolSpec,
};
use harness::loops::{Conversation, tool_loop};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Interrupt, Sessions};
use serde_json::{Value, json};

use super::rig::{Act, On, Rig, folded, log, run_or_crash, runtime};

/// Writes each call down before it returns.
struct Noted {
    name: &'static str,
    class: EffectClass,
    made: Made,
}

type Made = Arc<Mutex<Vec<(String, Value)>>>;

#[async_trait]
impl Tool for Noted {
    fn spec(&self) -> ToolSpec {
        let schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        });
        ToolSpec::new(self.name, "Writes a number down", schema).effect(self.class)
    }

    async fn call(&self, call: &ToolCall, _: &ToolCx) -> Result<Content, ToolError> {
        self.made.lock().unwrap().push((call.id.to_string(), call.json()?));
        Ok(format!("made {}", call.arguments).into())
    }
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = Approval)]
struct ApprovePayment {
    n: u64,
}

#[derive(Deserialize)]
struct Number {
    n: u64,
}

fn tools(made: &Made) -> ToolSet {
    let tool = |name, class| Noted { name, class, made: made.clone() };
    ToolSet::builder()
        .with(tool("read", EffectClass::Read))
        .with(tool("write", EffectClass::Write))
        .with(tool("send", EffectClass::External))
        .with(tool("delete", EffectClass::Destructive))
        .with(
            tool("pay", EffectClass::External)
                .approve_with(|number: &Number| ApprovePayment { n: number.n }),
        )
        .build()
        .unwrap()
}

/// Calls these tools first, and then answers.
fn model(calls: &'static [(&'static str, u64)]) -> Scripted {
    Scripted::from_fn(move |request| match request.transcript.entries().last() {
        Some(Entry::User(_)) => calls.iter().fold(Line::from(String::new()), |line, (tool, n)| {
            line.and_call(*tool, json!({"n": n}))
        }),
        _ => say("done"),
    })
}

fn policy() -> Policy {
    Policy::new()
        .deny(Calls::of("read").with("/n", Condition::equals(666)))
        .deny(Calls::of("send").with("/n", Condition::equals(666)))
}

fn agent(
    store: impl harness::store::SessionStore,
    calls: &'static [(&'static str, u64)],
    made: &Made,
) -> Agent<(), Conversation> {
    let harness = tool_loop::<Conversation>(model(calls), tools(made)).policy(policy());
    harness.build().unwrap().agent("a", ()).store(store)
}

/// The outcomes of the calls of a conversation, by the id of the call.
fn outcomes(state: &Conversation) -> BTreeMap<String, ToolOutcome> {
    let turns = state.talk.entries().iter().filter_map(|entry| match entry {
        Entry::Assistant(turn) => Some(turn),
        _ => None,
    });
    turns
        .flat_map(|turn| &turn.blocks)
        .filter_map(|block| match block {
            Block::Call { call, outcome } => Some((call.id.to_string(), outcome.clone().unwrap())),
            _ => None,
        })
        .collect()
}

const CALLS: &[(&str, u64)] = &[
    ("read", 1),
    ("send", 2),
    ("write", 3),
    ("pay", 4),
    ("delete", 5),
    ("read", 666),
    ("send", 7),
    ("nothing", 8),
];

/// What a person answers about each number.
fn decision(asked: &Interrupt) -> Approval {
    let n = asked.question.get("n").or_else(|| asked.question["arguments"].get("n")).unwrap();
    match n.as_u64().unwrap() {
        2 => Approval::approve(),
        4 => Approval::approve().edited(json!({"n": 40})),
        5 => Approval::reject_because("keep it"),
        7 => Approval::steer("write first"),
        other => panic!("{other} is not asked about"),
    }
}

fn answers(asked: &[Interrupt]) -> Answers {
    asked
        .iter()
        .map(|asked| {
            let answer = serde_json::to_value(decision(asked)).unwrap();
            Answers::json(asked.id.clone(), answer).by("sam")
        })
        .collect()
}

/// The interrupts of a log that were asked, and the ids of those that were resolved.
fn asked_and_resolved(memory: &MemoryStore) -> (Vec<Interrupt>, Vec<String>) {
    let log = runtime().block_on(log(memory, "s"));
    let list = |kind: &str, of: &str| -> Vec<Value> {
        let entries = log.iter().filter_map(|entry| entry.get(kind)?.get(of)?.as_array().cloned());
        entries.flatten().collect()
    };
    let asked = list("ask", "interrupts");
    let asked = asked.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect();
    let resolved = log.iter().filter_map(|entry| entry.get("resolve"));
    let resolved = resolved.map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    (asked, resolved)
}

#[test]
fn nothing_runs_or_is_approved_twice_wherever_the_process_dies() {
    let (mut doubts, mut crashes) = (0, 0);
    for (after, runs) in [(false, 0), (true, 0), (false, 1), (true, 1)] {
        // The process of the run with this number dies at its `n`th append.
        for n in 1..60 {
            let (memory, made) = (MemoryStore::new(), Made::default());
            let (mut crashed, mut run, mut given) = (false, 0, BTreeSet::new());
            let state: Conversation = loop {
                let act = if after { Act::HangAfter } else { Act::HangBefore };
                let rig = match run == runs {
                    true => Rig::nth(&memory, On::Append, n, act),
                    false => Rig::new(memory.clone()),
                };
                let (asked, resolved) = asked_and_resolved(&memory);
                let written = runtime().block_on(log(&memory, "s"));
                let is_new = written.is_empty();
                if written.last().is_some_and(|last| last["settle"]["end"]["as"] == "ended") {
                    // The process died after it had ended the turn.
                    let state = runtime().block_on(folded(&memory, "s"));
                    break serde_json::from_value(state).unwrap();
                }
                let open: Vec<_> = asked
                    .into_iter()
                    .filter(|one| !resolved.contains(&one.id.to_string()))
                    .filter(|one| !given.contains(&one.id))
                    .collect();
                let outcome = run_or_crash(&rig, |rig| {
                    let agent = agent(rig.clone(), CALLS, &made);
                    match open.len() {
                        4 => {
                            given.extend(open.iter().map(|one| one.id.clone()));
                            agent.resume("s", answers(&open), ())
                        }
                        _ if !is_new => agent.resume("s", Answers::none(), ()),
                        _ => agent.run(Conversation::say("go"), ()).session("s").input_id("1"),
                    }
                });
                run += 1;
                assert!(run < 12, "it does not end");
                match outcome {
                    None => crashed = true,
                    Some(Outcome::Ended(ended)) => break ended.state,
                    Some(Outcome::Interrupted(waiting)) => {
                        // No answer was given: each question waits.
                        assert_eq!(waiting.questions.len(), 4, "append {n} of run {runs}");
                        let made = made.lock().unwrap();
                        let acted =
                            made.iter().any(|(_, n)| [json!(2), json!(40)].contains(&n["n"]));
                        assert!(!acted, "append {n} of run {runs}: made without an answer");
                    }
                    Some(other) => panic!("{other:?}"),
                }
            };
            if !crashed && run > runs {
                break;
            }
            crashes += 1;
            let what = format!("append {n} of run {runs}, after {after}");
            let (asked, resolved) = asked_and_resolved(&memory);
            let ids: BTreeSet<_> = asked.iter().map(|one| one.id.clone()).collect();
            assert_eq!((asked.len(), ids.len(), resolved.len()), (4, 4, 4), "{what}");
            let made = made.lock().unwrap();
            let outcomes = outcomes(&state);
            let [read, send, write, pay, delete, denied, steered, unknown] =
                std::array::from_fn(|at| &outcomes[&format!("call-1-{}", at + 1)]);
            let times = |n: u64| made.iter().filter(|(_, number)| number["n"] == n).count();
            assert!(read.is_ok() && times(1) >= 1, "{what}");
            assert!(write.is_ok() && (1..=2).contains(&times(3)), "{what}");
            for (outcome, n) in [(send, 2), (pay, 40)] {
                match outcome {
                    ToolOutcome::InDoubt => doubts += 1,
                    outcome => assert!(outcome.is_ok() && times(n) == 1, "{what}: {outcome:?}"),
                }
                assert!(times(n) <= 1, "{what}: {n} was made {} times", times(n));
            }
            assert_eq!(*delete, ToolOutcome::Denied { reason: Some("keep it".into()) }, "{what}");
            assert!(matches!(denied, ToolOutcome::Denied { .. }), "{what}: {denied:?}");
            assert_eq!(*steered, ToolOutcome::Steered { content: "write first".into() }, "{what}");
            assert!(matches!(unknown, ToolOutcome::Failed { .. }), "{what}: {unknown:?}");
            assert_eq!([4, 5, 666, 7, 8].map(times), [0; 5], "{what}");
            assert_eq!(state.answer().as_deref(), Some("done"), "{what}");
        }
    }
    assert!(crashes > 30, "{crashes}");
    assert!(doubts > 0, "no crash was between an effect and its record");
}

/// As many calls as its name says: half of them are asked about.
fn hundred() -> Scripted {
    Scripted::from_fn(|request| match request.transcript.entries().last() {
        Some(Entry::User(_)) => (0..100_u64).fold(Line::from(String::new()), |line, n| {
            line.and_call(if n % 2 == 0 { "send" } else { "write" }, json!({"n": n}))
        }),
        _ => say("done"),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_approvals_of_a_hundred_calls_come_in_any_order_from_several_processes() {
    let (store, made) = (MemoryStore::new(), Made::default());
    let agent = || {
        let harness = tool_loop::<Conversation>(hundred(), tools(&made)).build().unwrap();
        harness.agent("a", ()).store(store.clone())
    };
    let outcome = agent().run(Conversation::say("go"), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    assert_eq!(waiting.questions.len(), 50);
    assert_eq!(made.lock().unwrap().len(), 50, "what needs no approval does not wait");

    let mut ids: Vec<_> = waiting.questions.iter().map(|asked| asked.id.clone()).collect();
    // An order of its own, the same in each run of the test.
    let mut seed = 7_u64;
    for at in (1..ids.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ids.swap(at, (seed >> 33) as usize % (at + 1));
    }
    let shares: Vec<Vec<_>> = ids.chunks(10).map(<[_]>::to_vec).collect();
    let processes = shares.into_iter().enumerate().map(|(process, ids)| {
        let (agent, store) = (agent(), store.clone());
        tokio::spawn(async move {
            for (n, id) in ids.into_iter().enumerate() {
                let answer = Answers::json(id, json!({"approve": {}})).by(format!("p{process}"));
                if n % 2 == 0 {
                    Sessions::new(store.clone()).answer_json("s", answer).await.unwrap();
                    continue;
                }
                match agent.resume("s", answer, ()).await {
                    Ok(_) => {}
                    Err(busy) => assert!(busy.is_busy() && busy.answers_recorded(), "{busy}"),
                }
            }
        })
    });
    for process in processes.collect::<Vec<_>>() {
        process.await.unwrap();
    }
    let resume = agent().resume("s", Answers::none(), ()).on_busy(harness::OnBusy::Wait).await;
    if let Ok(outcome) = resume {
        outcome.ended().unwrap();
    }
    let state: Conversation =
        serde_json::from_value(Sessions::new(store).state("s").await.unwrap()).unwrap();
    assert_eq!(state.answer().as_deref(), Some("done"));
    let outcomes = outcomes(&state);
    assert_eq!(outcomes.len(), 100);
    assert!(outcomes.values().all(ToolOutcome::is_ok), "{outcomes:?}");
    let made = made.lock().unwrap();
    let ids: BTreeSet<_> = made.iter().map(|(id, _)| id).collect();
    assert_eq!((made.len(), ids.len()), (100, 100), "each call once");
}
