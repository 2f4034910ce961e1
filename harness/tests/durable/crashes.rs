//! Processes that die at every append, through error routes and last steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::llm::{Spend, Usage};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::worker::Worker;
use harness::{Durability, FailureKind, RunRequest, graph::Limit, observe};

use super::rig::{Act, On, Rig, count, folded, log, run_or_crash, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    how: String,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct What;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Try,
    Pay,
    Ask,
    Mend,
    Clean,
    Tidy,
}

fn spend(tokens: u64) -> Spend {
    Spend { usage: Usage { input: Some(tokens), ..Usage::default() }, cost_micros: Some(tokens) }
}

async fn attempt(doc: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    // Charged once for each failure: what is charged by an attempt that a crash cuts short may
    // be charged again.
    if cx.attempt() <= 2 && doc.how != "calm" {
        return Err(StepError::retryable("not yet"));
    }
    Ok(Doc::update().lines(["tried".to_owned()]))
}

async fn pay(doc: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    let paid: u32 = cx.once("pay", async move || Ok(5)).await?;
    observe::current().unwrap().charge(&spend(10));
    if doc.how == "fail" {
        return Err(StepError::fatal("no money"));
    }
    Ok(Doc::update().lines([format!("paid {paid}")]))
}

async fn mend(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    let why = cx.failure().map(|failure| failure.message.clone()).unwrap_or_default();
    Ok(Doc::update().lines([format!("mended {why}")]))
}

async fn clean(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    let why = cx.failure().map(|failure| failure.message.clone());
    let done: u32 = cx.once("clean", async move || Ok(1)).await?;
    Ok(Doc::update().lines([format!("clean {done} {why:?}")]))
}

fn harness(on_error: bool, budget: Budget) -> Harness<(), Doc> {
    let builder = Harness::<(), Doc>::builder("crashes").start(Step::Try).finally(Step::Clean);
    let builder = if on_error { builder.on_error(Step::Mend) } else { builder };
    builder
        .budget(budget)
        .steps(|define, step| match step {
            Step::Try => define
                .run(attempt)
                .retry(Retry::every(Duration::from_millis(1)).times(9))
                .at_most(9, Step::Mend)
                .then(Step::Pay),
            Step::Pay => define.run(pay).then(Step::Ask),
            Step::Ask => define
                .ask(|_, _| async move { Ok(What) })
                .answer(|_, _, said| async move { Ok(Doc::update().lines([said.answer])) })
                .end(),
            Step::Mend => define.run(mend).end(),
            Step::Clean => define.run(clean).then(Step::Tidy),
            Step::Tidy => {
                define.run(|_, _| async move { Ok(Doc::update().lines(["tidy".to_owned()])) }).end()
            }
        })
        .build()
        .unwrap()
}

/// The next run towards the end of the turn.
fn next_run(rig: &Rig, agent: &Agent<(), Doc>, how: &str) -> RunRequest<Doc> {
    // The log decides what to do.
    let log = runtime().block_on(log(&rig.memory, "s"));
    let answer = match log.last() {
        None => return agent.run(Doc::update().how(how), ()).session("s"),
        Some(last) if last["settle"]["end"]["as"] == "interrupted" => {
            let asked = log.iter().rev().find(|entry| entry.get("ask").is_some()).unwrap();
            let id = asked["ask"]["interrupts"][0]["id"].as_str().unwrap().to_owned();
            Answers::json(&*id, "said".into())
        }
        Some(_) => Answers::none(),
    };
    agent.resume("s", answer, ())
}

/// How the turn ended, if its process died just after that.
fn over(memory: &MemoryStore) -> Option<(Doc, String)> {
    let log = runtime().block_on(log(memory, "s"));
    let end = log.last()?["settle"].get("end")?.clone();
    let how = match end["as"].as_str()? {
        "ended" => "ended".to_owned(),
        "failed" => format!("failed: {}", end["failure"]["message"].as_str()?),
        "exhausted" => format!("exhausted: {}", end["limit"].as_str()?),
        _ => return None,
    };
    let state = runtime().block_on(folded(memory, "s"));
    Some((serde_json::from_value(state).unwrap(), how))
}

/// The result of the turn: the state, the spend, and how it ended.
fn in_the_end(
    on_error: bool,
    budget: Budget,
    how: &str,
    durability: Durability,
    mut plan: impl FnMut() -> Option<(u64, Act)>,
) -> (Doc, Spend, String, u32) {
    let memory = MemoryStore::new();
    let mut crashes = 0;
    for _ in 0..20 {
        if let Some(end) = over(&memory) {
            let (state, how) = end;
            return (state, Spend::default(), how, crashes);
        }
        let rig = match plan() {
            Some((n, act)) => Rig::nth(&memory, On::Append, n, act),
            None => Rig::new(memory.clone()),
        };
        let agent =
            harness(on_error, budget).agent("a", ()).store(rig.clone()).durability(durability);
        let request = next_run(&rig, &agent, how);
        match run_or_crash(&rig, |_| request) {
            None => crashes += 1,
            Some(Outcome::Interrupted(_)) => {}
            Some(outcome) => {
                let how = match &outcome {
                    Outcome::Failed(failed) => format!("failed: {}", failed.failure.message),
                    Outcome::Exhausted(out) => format!("exhausted: {}", out.limit),
                    Outcome::Ended(_) => "ended".into(),
                    other => panic!("{other:?}"),
                };
                let (state, spent) = (outcome.state().unwrap().clone(), *outcome.spent());
                return (state, spent, how, crashes);
            }
        }
    }
    panic!("no end after 20 runs");
}

#[test]
fn a_death_at_any_append_changes_nothing_in_the_end() {
    let plain = Budget::default();
    let cases = [
        (true, plain, "well"),
        (true, plain, "fail"),
        (false, plain, "fail"),
        (false, Budget::steps(2), "well"),
        (false, Budget::unbounded("tokens bound it").tokens(5), "well"),
    ];
    for durability in [Durability::Step, Durability::Settle] {
        for (on_error, budget, how) in cases {
            let (state, spent, end, _) = in_the_end(on_error, budget, how, durability, || None);
            let mut crashed = 0;
            for act in [Act::HangBefore, Act::HangAfter] {
                for n in 1..30 {
                    let mut first = Some((n, act.clone()));
                    let after = matches!(act, Act::HangAfter);
                    let got = in_the_end(on_error, budget, how, durability, || first.take());
                    crashed += got.3;
                    let what = format!("append {n}, after {after}, {durability:?}, {how}, {end}");
                    assert_eq!((got.0, got.2), (state.clone(), end.clone()), "{what}");
                    // What was charged since the last append is charged again or lost.
                    let tokens = got.1.usage.input.unwrap_or_default();
                    assert!([0, 10, 20].contains(&tokens), "{what}: {tokens}");
                }
            }
            assert!(crashed >= 5, "{crashed}");
            assert_eq!(spent.usage.input, Some(10));
        }
    }
}

#[test]
fn consecutive_crashes_lead_to_the_same_end() {
    let plain = Budget::default();
    for (on_error, how) in [(true, "well"), (true, "fail"), (false, "fail")] {
        let (state, _, end, _) = in_the_end(on_error, plain, how, Durability::Step, || None);
        // Each run dies once it has appended something: position by position.
        let got = in_the_end(on_error, plain, how, Durability::Step, || Some((3, Act::HangAfter)));
        assert_eq!((got.0, got.2), (state, end));
        assert!(got.3 >= 3);
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Step,
}

#[test]
fn what_failed_attempts_spent_survives_a_death() {
    let build = |memory: &MemoryStore, crash: bool| {
        let reached = Arc::new(AtomicU32::new(0));
        let rig = Rig::new(memory.clone());
        let hang = rig.clone();
        let harness = Harness::<(), Doc>::builder("spent")
            .start(Only::Step)
            .steps(|define, Only::Step| {
                let (reached, hang) = (Arc::clone(&reached), hang.clone());
                define
                    .run(move |_, cx: Cx<()>| {
                        let n = reached.fetch_add(1, Ordering::SeqCst);
                        let hang = hang.clone();
                        async move {
                            if cx.attempt() <= 2 {
                                observe::current().unwrap().charge(&spend(10));
                                return Err(StepError::retryable("not yet"));
                            }
                            if crash && n == 2 {
                                hang.hang().await;
                            }
                            observe::current().unwrap().charge(&spend(1));
                            Ok(Doc::update())
                        }
                    })
                    .retry(Retry::every(Duration::from_millis(1)).times(3))
                    .end()
            })
            .build()
            .unwrap();
        (rig.clone(), harness.agent("a", ()).store(rig))
    };
    for crash in [false, true] {
        let memory = MemoryStore::new();
        let (rig, agent) = build(&memory, crash);
        let mut outcome = run_or_crash(&rig, |_| agent.run(Doc::update(), ()).session("s"));
        assert_eq!(outcome.is_none(), crash);
        if crash {
            let (rig, agent) = build(&memory, false);
            outcome = run_or_crash(&rig, |_| agent.resume("s", Answers::none(), ()));
        }
        assert_eq!(outcome.unwrap().ended().unwrap().spent.usage.input, Some(21));
    }
}

#[test]
fn a_step_that_ends_the_process_is_given_up() {
    let memory = MemoryStore::new();
    let deadly = |rig: &Rig, deadly: bool| {
        let rig = rig.clone();
        Harness::<(), Doc>::builder("deadly")
            .start(Only::Step)
            .steps(|define, Only::Step| {
                let rig = rig.clone();
                define
                    .run(move |_, _| {
                        let rig = rig.clone();
                        async move {
                            if deadly {
                                rig.hang().await;
                            }
                            Ok(Doc::update())
                        }
                    })
                    .end()
            })
            .build()
            .unwrap()
            .agent("a", ())
            .store(rig.clone())
    };
    let rig = Rig::new(memory.clone());
    let mut outcome =
        run_or_crash(&rig, |rig| deadly(rig, true).run(Doc::update(), ()).session("s"));
    let mut taken_over = 0;
    while outcome.is_none() {
        taken_over += 1;
        assert!(taken_over <= 5, "it is never given up");
        outcome = run_or_crash(&rig, |rig| deadly(rig, true).resume("s", Answers::none(), ()));
    }
    let Some(Outcome::Failed(failed)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((failed.failure.kind, taken_over), (FailureKind::CrashLoop, 5));
    assert_eq!(runtime().block_on(count(&memory, "s", "recover")), 5);
    // The program was fixed.
    let outcome = run_or_crash(&rig, |rig| deadly(rig, false).resume("s", Answers::none(), ()));
    outcome.unwrap().ended().unwrap();
}

#[test]
fn a_budget_is_one_of_the_turn() {
    let memory = MemoryStore::new();
    let rig = Rig::nth(&memory, On::Append, 4, Act::HangAfter);
    let agent = |rig: &Rig| {
        let budget = Budget::unbounded("tokens bound it").tokens(5);
        harness(false, budget).agent("a", ()).store(rig.clone())
    };
    let crashed =
        run_or_crash(&rig, |rig| agent(rig).run(Doc::update().how("calm"), ()).session("s"));
    assert!(crashed.is_none());
    let rig = Rig::new(memory);
    let outcome = run_or_crash(&rig, |rig| agent(rig).resume("s", Answers::none(), ()));
    let Some(Outcome::Exhausted(out)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(out.limit, Limit::Tokens);
    // The last steps have run, and the turn resumes after them.
    let more = Budget::unbounded("tokens bound it").tokens(50);
    let outcome =
        run_or_crash(&rig, |rig| agent(rig).resume("s", Answers::none(), ()).budget(more));
    let Some(Outcome::Interrupted(waiting)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(waiting.state.lines, ["tried", "paid 5", "clean 1 None", "tidy"]);
    let said = waiting.pending::<What>().unwrap().answer("said".into());
    let outcome = run_or_crash(&rig, |rig| agent(rig).resume("s", said, ()).budget(more));
    let ended = outcome.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines[4..], ["said", "clean 1 None", "tidy"]);
    assert_eq!(ended.spent.usage.input, Some(10));
}

/// A session is claimed in one batch with one that ends its process, before its own run has begun: it is
/// not given up for the crashes of the other, however many there are.
#[test]
fn a_session_that_was_only_claimed_counts_no_crash() {
    let memory = MemoryStore::new();
    let agent = |rig: &Rig| {
        let rig = rig.clone();
        Harness::<(), Doc>::builder("deadly")
            .start(Only::Step)
            .steps(|define, Only::Step| {
                let rig = rig.clone();
                define
                    .run(move |doc: View<Doc>, _| {
                        let rig = rig.clone();
                        async move {
                            if doc.how == "deadly" {
                                rig.hang().await;
                            }
                            Ok(Doc::update().how("deadly"))
                        }
                    })
                    .end()
            })
            .build()
            .unwrap()
            .agent("a", ())
            .store(rig.clone())
    };
    // Its own crash, before the step has committed.
    let rig = Rig::nth(&memory, On::Append, 2, Act::HangBefore);
    let crashed = run_or_crash(&rig, |rig| agent(rig).run(Doc::update(), ()).session("healthy"));
    assert!(crashed.is_none());
    let mut crashes = 0;
    let failed = loop {
        let rig = Rig::new(memory.clone());
        let agent = agent(&rig);
        let outcome = runtime().block_on(async {
            let input = Doc::update().how("deadly");
            let queued = agent.enqueue("deadly", input).input_id("1").await.unwrap();
            // Before the slots are there, the other one has ended the process.
            let slots = |session: harness::SessionId| async move {
                if session.as_str() == "healthy" {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Ok(())
            };
            let worker = Worker::new().serve(&agent, slots).start().unwrap();
            tokio::select! {
                biased;
                () = rig.reached() => rig.kill(),
                outcome = queued.outcome() => {
                    worker.drain().await;
                    return Some(outcome.unwrap());
                }
            }
            std::mem::forget(worker);
            None
        });
        rig.end_leases();
        match outcome {
            Some(Outcome::Failed(failed)) => break failed,
            Some(other) => panic!("{other:?}"),
            None => crashes += 1,
        }
        assert_eq!(runtime().block_on(count(&memory, "healthy", "recover")), 0);
    };
    assert_eq!((failed.failure.kind, crashes), (FailureKind::CrashLoop, 5));
    assert_eq!(runtime().block_on(count(&memory, "healthy", "recover")), 1);
    let last = runtime().block_on(log(&memory, "healthy")).pop().unwrap();
    assert_eq!(last["settle"]["end"]["as"], "ended", "{last}");
}
