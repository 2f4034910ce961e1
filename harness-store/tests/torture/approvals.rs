//! A hundred tool calls of one turn, of which half wait for an approval, and processes that answer in
//! any order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use harness::approval::Approval;
use harness::llm::scripted::{Line, say as reply};
use harness::llm::{
    Block, Content, EffectClass, Entry, Scripted, Tool, ToolCall, ToolCx, ToolError, ToolOutcome,
    ToolSpec,
};
use harness::loops::{Conversation, tool_loop};
use harness::prelude::*;
use harness::session::Change;
use harness::{AnswerError, InterruptId, OnBusy, Outcome, Sessions};
use serde_json::json;

use crate::check::Log;
use crate::child::{Other, hear, say, setting};
use crate::outside::Outside;
use crate::place::{Place, report};
use crate::random::Random;
use crate::store::{Kind, Store, in_each_store};
use crate::work::open;

const CALLS: u64 = 100;
const PROCESSES: usize = 5;
const SESSION: &str = "approvals";

/// Leaves a trace of each call outside of the session.
struct Traced {
    name: &'static str,
    class: EffectClass,
    outside: Outside,
}

#[async_trait]
impl Tool for Traced {
    fn spec(&self) -> ToolSpec {
        let properties = json!({"n": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": properties, "required": ["n"]});
        ToolSpec::new(self.name, "Takes a number", schema).effect(self.class)
    }

    async fn call(&self, call: &ToolCall, _: &ToolCx) -> Result<Content, ToolError> {
        let number = call.json()?["n"].to_string();
        self.outside.act(SESSION, call.id.as_str(), &number, self.name).await;
        Ok(number.into())
    }
}

/// Calls `send` with each even number and `write` with each odd one, all in one turn.
fn model() -> Scripted {
    Scripted::from_fn(|request| match request.transcript.entries().last() {
        Some(Entry::User(_)) => (0..CALLS).fold(Line::from(String::new()), |line, n| {
            line.and_call(if n % 2 == 0 { "send" } else { "write" }, json!({"n": n}))
        }),
        _ => reply("done"),
    })
}

fn agent(store: Store, outside: &Outside) -> Agent<(), Conversation> {
    let tool = |name, class| Traced { name, class, outside: outside.clone() };
    let tools = ToolSet::builder()
        .with(tool("write", EffectClass::Write))
        .with(tool("send", EffectClass::External))
        .build()
        .unwrap();
    let harness = tool_loop::<Conversation>(model(), tools).build().unwrap();
    // A server does not notice the end of a process before that.
    harness.agent("approvals", ()).store(store).lease(Duration::from_secs(2))
}

/// Gives the answers that it is asked to give, and says what came of each. Half of these processes only
/// leave them, the others resume the session if no other process does.
pub async fn approver(dir: &Path) {
    let store = open(dir, true).await;
    let agent = agent(store.clone(), &Outside::new(&dir.join("effects")));
    let sessions = Sessions::new(store);
    let resumes = setting("AT").parse::<usize>().unwrap().is_multiple_of(2);
    say("ready");
    loop {
        let heard = hear();
        let Some((id, decision)) = heard.split_once(' ') else { return };
        let approval = match decision {
            "approve" => Approval::approve(),
            _ => Approval::reject_because("no"),
        };
        let answer = Answers::json(id, serde_json::to_value(approval).unwrap()).by("a process");
        let is_conflict = |error: Option<&AnswerError>| error.is_some_and(AnswerError::is_conflict);
        say(&match resumes {
            true => match agent.resume(SESSION, answer, ()).await {
                Ok(_) => format!("accepted {heard}"),
                Err(error) if error.is_busy() && error.answers_recorded() => {
                    format!("accepted {heard}")
                }
                Err(error) if is_conflict(error.answer_error()) => format!("conflict {heard}"),
                Err(error) => format!("! {heard}: {error}"),
            },
            false => match sessions.answer_json(SESSION, answer).await {
                Ok(_) => format!("accepted {heard}"),
                Err(error) if is_conflict(error.answer_error()) => format!("conflict {heard}"),
                Err(error) => format!("! {heard}: {error}"),
            },
        });
    }
}

/// The outcomes of the calls, by their number.
fn outcomes(state: &Conversation) -> BTreeMap<u64, ToolOutcome> {
    let blocks = state.talk.entries().iter().filter_map(|entry| match entry {
        Entry::Assistant(turn) => Some(&turn.blocks),
        _ => None,
    });
    let outcome = |block: &Block| match block {
        Block::Call { call, outcome } => {
            Some((call.json().unwrap()["n"].as_u64().unwrap(), outcome.clone().unwrap()))
        }
        _ => None,
    };
    blocks.flatten().filter_map(outcome).collect()
}

in_each_store!(a_hundred_calls_with_fifty_approvals_are_each_made_once, undisturbed);

fn undisturbed(kind: Kind) {
    approvals(kind, false);
}

in_each_store!(a_hundred_calls_with_fifty_approvals_survive_a_kill, killed);

fn killed(kind: Kind) {
    approvals(kind, true);
}

fn approvals(kind: Kind, kills: bool) {
    let _alone = crate::alone();
    let (mut random, seed) = Random::seeded();
    let dir = Place::new("approvals", Some(seed));
    kind.choose(dir.path());
    let effects = dir.path().join("effects");
    let runtime = crate::work::runtime();
    let store = runtime.block_on(open(dir.path(), true));
    let agent = agent(store.clone(), &Outside::new(&effects));

    let request = agent.run(Conversation::say("go"), ()).session(SESSION);
    let waiting = match runtime.block_on(request.into_future()).unwrap() {
        Outcome::Interrupted(waiting) => waiting,
        other => panic!("{other:?}"),
    };
    let number = |asked: &harness::Interrupt| asked.question["arguments"]["n"].as_u64().unwrap();
    let asked: BTreeMap<InterruptId, u64> =
        waiting.questions.iter().map(|asked| (asked.id.clone(), number(asked))).collect();
    let even: BTreeSet<u64> = (0..CALLS).filter(|n| n % 2 == 0).collect();
    assert_eq!(asked.values().copied().collect::<BTreeSet<_>>(), even);
    let (traces, _) = Outside::traces(&effects, 0);
    assert!(traces.iter().all(|trace| trace.kind == "write"), "nothing was approved");

    let start = |at: usize| Other::start("approver", dir.path(), &[("AT", at.to_string())]);
    let mut others: Vec<_> = (0..PROCESSES).map(start).collect();
    for other in &mut others {
        assert_eq!(other.hear(), "ready");
    }
    // Two processes answer each question, some of them with two minds.
    let mut order: Vec<_> = asked.iter().collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    for (id, n) in &order {
        let first = random.below(PROCESSES as u64) as usize;
        let second = (first + 1 + random.below(PROCESSES as u64 - 1) as usize) % PROCESSES;
        others[first].say(&format!("{id} approve"));
        others[second].say(&format!("{id} {}", if *n % 10 < 6 { "approve" } else { "reject" }));
    }
    let mut said = Vec::new();
    if kills {
        // It resumes, and is in the middle of it.
        let mut victim = others.remove(0);
        said.extend([victim.hear(), victim.hear()]);
        said.extend(victim.kill());
    }
    for mut other in others {
        other.say("");
        let (status, lines) = other.end();
        assert!(status.success());
        said.extend(lines);
    }
    // What a process has left when no other resumes.
    let rest = agent.resume(SESSION, Answers::none(), ()).on_busy(OnBusy::Wait);
    match runtime.block_on(rest.into_future()) {
        Ok(outcome) => drop(outcome.ended().unwrap()),
        Err(error) => assert!(error.is_not_waiting(), "{error}"),
    }

    let mut accepted: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    let mut conflicts = 0;
    for line in &said {
        let parts: Vec<&str> = line.split(' ').collect();
        match parts[..] {
            ["accepted", id, decision] => {
                let n = asked[&InterruptId::from(id)];
                accepted.entry(n).or_default().insert(decision);
            }
            ["conflict", ..] => conflicts += 1,
            _ => panic!("{line}"),
        }
    }
    let state = runtime.block_on(Sessions::new(store.clone()).state(SESSION)).unwrap();
    let state: Conversation = serde_json::from_value(state).unwrap();
    assert_eq!(state.answer().as_deref(), Some("done"));
    let (traces, _) = Outside::traces(&effects, 0);
    let outcomes = outcomes(&state);
    assert_eq!(outcomes.len() as u64, CALLS);
    let (mut made, mut doubts) = (0, 0);
    for (n, outcome) in &outcomes {
        let of_call = |trace: &&crate::outside::Trace| trace.key == n.to_string() && trace.begins;
        let times = traces.iter().filter(of_call).count();
        made += times;
        let decisions = accepted.get(n).into_iter().flatten().copied().collect::<Vec<_>>();
        match outcome {
            ToolOutcome::Denied { .. } => {
                assert!(["reject"].starts_with(&decisions), "{n}: {decisions:?}");
                assert_eq!(times, 0, "{n} was rejected");
            }
            // The process ended between an effect and its record.
            ToolOutcome::InDoubt if kills => {
                doubts += 1;
                assert!(times <= 1, "{n} was made {times} times");
            }
            outcome => {
                assert!(outcome.is_ok() && times == 1, "{n} was made {times} times: {outcome:?}");
                assert!(["approve"].starts_with(&decisions), "{n}: {decisions:?}");
            }
        }
    }
    assert_eq!(made, traces.iter().filter(|trace| trace.begins).count(), "all are of these calls");

    let log = runtime.block_on(Log::read(&store, SESSION)).unwrap();
    let (mut questions, mut resolved) = (Vec::new(), Vec::new());
    for (_, entry) in &log.entries {
        match &entry.change {
            Change::Asked(asked) => {
                questions.extend(asked.interrupts.iter().map(|it| it.id.clone()))
            }
            Change::Resolved(one) => resolved.push(one.id.clone()),
            _ => {}
        }
    }
    for mut once in [questions, resolved] {
        once.sort();
        assert!(asked.keys().eq(&once), "asked or answered twice: {once:?}");
    }
    report(&format!(
        "approvals: {made} calls made, {conflicts} answers too late, {doubts} in doubt"
    ));
}
