//! Runs that ask before a step, or after its commit.

use std::sync::{Arc, Mutex};

use harness::declare::StepDef;
use harness::inspect::{Filter, Phase};
use harness::observe::{EventKind, Recorder};
use harness::prelude::*;
use harness::question::{Breakpoint, BreakpointAnswer, BreakpointAt};
use harness::store::MemoryStore;
use harness::{Define, Durability, RunRequest, Sessions};
use serde_json::{Value, json};

use super::rig::{Act, On, Rig, count, folded, kinds, log, run_or_crash, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    #[state(reduce = add)]
    rounds: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Check {
    Read,
    Mark,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
    Fan,
    #[step(nest)]
    Check(Check),
    Last,
    Tidy,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    Last,
}

/// What the steps have really done.
type Done = Arc<Mutex<Vec<String>>>;

async fn note(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    Ok(Doc::update().lines([format!("{} {}", cx.step(), cx.attempt())]))
}

fn check(define: Define<(), Doc, Check>, step: Check) -> StepDef<(), Doc, Check> {
    match step {
        Check::Read => define.run(note).then(Check::Mark),
        Check::Mark => define.run(note).end(),
    }
}

/// Two rounds of work, items and a nested loop.
fn harness(done: &Done) -> Harness<(), Doc> {
    let done = Arc::clone(done);
    Harness::<(), Doc>::builder("breakpoints")
        .start(Step::Work)
        .finally(Step::Tidy)
        .steps(move |define, step| match step {
            Step::Work => {
                let done = Arc::clone(&done);
                let work = move |doc: View<Doc>, cx: Cx<()>| {
                    let done = Arc::clone(&done);
                    async move {
                        let effect = async move || Ok(done.lock().unwrap().push("paid".to_owned()));
                        cx.once("pay", effect).await?;
                        let line = format!("work {} of {}", cx.attempt(), doc.rounds);
                        Ok(Doc::update().lines([line]).rounds(1))
                    }
                };
                define.run(work).then(Step::Fan)
            }
            Step::Fan => {
                let done = Arc::clone(&done);
                define
                    .each(move |_, _| {
                        done.lock().unwrap().push("planned".to_owned());
                        async move { Ok(vec![1_u32, 2]) }
                    })
                    .run(async |item: u32, _, _| Ok(item))
                    .fold(|_, items| Ok(Doc::update().lines([format!("{items:?}")])))
                    .then(Step::Check(Check::Read))
            }
            Step::Check(step) => define.nest(Step::Check, check, step).route(|()| to(Step::Last)),
            Step::Last => define.run(note).route(
                |doc: &Doc| if doc.rounds < 2 { Next::Again } else { Next::Last },
                |next| match next {
                    Next::Again => to(Step::Work),
                    Next::Last => end(),
                },
            ),
            Step::Tidy => define.run(note).end(),
        })
        .build()
        .unwrap()
}

const ROUND: [&str; 4] = ["[1, 2]", "Check/Read 1", "Check/Mark 1", "Last 1"];

/// What the turn writes without any breakpoint.
fn whole() -> Vec<String> {
    let round = |n: u32| {
        let work = format!("work 1 of {n}");
        [work].into_iter().chain(ROUND.map(str::to_owned))
    };
    round(0).chain(round(1)).chain(["Tidy 1".to_owned()]).collect()
}

fn asked(outcome: &Outcome<Doc>) -> (String, BreakpointAt) {
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let asked = waiting.pending::<Breakpoint>().unwrap().question;
    (asked.step, asked.at)
}

fn onward(outcome: &Outcome<Doc>) -> Answers {
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    waiting.pending::<Breakpoint>().unwrap().answer(BreakpointAnswer::Continue)
}

/// Runs to the end, with the same breakpoints at each run. Returns what they asked, each with the
/// lines written by then.
async fn through(
    agent: &Agent<(), Doc>,
    with: impl Fn(RunRequest<Doc>) -> RunRequest<Doc>,
) -> (Vec<(String, usize)>, Vec<String>) {
    let mut seen = Vec::new();
    let mut outcome = with(agent.run(Doc::update(), ()).session("s")).await.unwrap();
    while let Outcome::Interrupted(waiting) = &outcome {
        let (step, at) = asked(&outcome);
        seen.push((format!("{at:?} {step}"), waiting.state.lines.len()));
        let answer = onward(&outcome);
        outcome = with(agent.resume(&outcome, answer, ())).await.unwrap();
    }
    (seen, outcome.ended().unwrap().state.lines)
}

/// An agent without a store and one with, which must not differ.
fn agents() -> [(Agent<(), Doc>, Done); 2] {
    [None, Some(MemoryStore::new())].map(|store| {
        let done = Done::default();
        let agent = harness(&done).agent("a", ());
        let agent = match store {
            Some(store) => agent.store(store),
            None => agent,
        };
        (agent, done)
    })
}

fn named(seen: &[(&str, usize)]) -> Vec<(String, usize)> {
    seen.iter().map(|(name, lines)| ((*name).to_owned(), *lines)).collect()
}

#[tokio::test]
async fn a_breakpoint_fires_at_each_entry_of_its_step_and_changes_nothing_else() {
    for (agent, done) in agents() {
        let (seen, lines) = through(&agent, |it| it.break_before(Step::Work)).await;
        assert_eq!(seen, named(&[("Before Work", 0), ("Before Work", 5)]));
        assert_eq!(lines, whole());
        assert_eq!(*done.lock().unwrap(), ["paid", "planned", "paid", "planned"]);
    }
    for (agent, done) in agents() {
        let (seen, lines) = through(&agent, |it| {
            let it = it.break_before(Step::Fan).break_after(Step::Fan);
            it.break_after(Step::Check(Check::Read)).break_before(Step::Check(Check::Mark))
        })
        .await;
        let round = |before: usize| {
            [
                ("Before Fan", before + 1),
                ("After Fan", before + 2),
                ("After Check/Read", before + 3),
                ("Before Check/Mark", before + 3),
            ]
        };
        assert_eq!(seen, named(&[round(0), round(5)].concat()));
        assert_eq!(lines, whole());
        assert_eq!(*done.lock().unwrap(), ["paid", "planned", "paid", "planned"]);
    }
    // The last step of the turn and those of `finally` have nowhere to ask.
    for (agent, _) in agents() {
        let (seen, lines) = through(&agent, |it| {
            it.break_after(Step::Last).break_before(Step::Tidy).break_after(Step::Tidy)
        })
        .await;
        assert_eq!(seen, named(&[("After Last", 5)]));
        assert_eq!(lines, whole());
    }
}

#[tokio::test]
async fn a_breakpoint_is_a_question_like_any_other_and_belongs_to_its_run() {
    let (store, done) = (MemoryStore::new(), Done::default());
    let agent = harness(&done).agent("a", ()).store(store.clone());
    let recorder = Recorder::default();
    let request = agent.run(Doc::update(), ()).session("s").observe(recorder.clone());
    let outcome = request.break_after(Step::Work).await.unwrap();
    // The commit, then the question at the position that follows, then how the run settles.
    assert_eq!(kinds(&store, "s").await[2..], ["effect", "commit", "ask", "settle"]);
    let events = recorder.events();
    let ends: Vec<_> = events.iter().rev().take(3).map(|event| &event.kind).collect();
    let [EventKind::Settled { .. }, EventKind::Asked { interrupt }, EventKind::Committed { .. }] =
        ends[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((interrupt.step.as_str(), interrupt.position.0), ("Fan", 2));

    let sessions = Sessions::new(store.clone());
    let [row] = &sessions.all(&Filter::sessions()).await.unwrap()[..] else { panic!() };
    assert_eq!((row.phase, &*row.step), (Phase::Interrupted, "Fan"));
    let pending = sessions.pending_interrupts().await.unwrap().rows;
    let [listed] = &pending[..] else { panic!("{pending:?}") };
    let typed = listed.interrupt.as_question::<Breakpoint>().unwrap();
    assert_eq!((typed.question.step.as_str(), typed.question.at), ("Work", BreakpointAt::After));
    assert_eq!(listed.interrupt.question, json!({"step": "Work", "at": "after"}));

    // It takes no other answer, and no other turn begins.
    let id = listed.interrupt.id.clone();
    let no = agent.resume("s", Answers::json(id.clone(), json!("stop")), ()).await.unwrap_err();
    assert!(no.answer_error().unwrap().is_wrong_answer(), "{no}");
    let no = agent.run(Doc::update(), ()).session("s").await.unwrap_err();
    assert!(no.is_pending_interrupt(), "{no}");
    // A run without an answer leaves it, whatever its own breakpoints are.
    let rests = agent.resume("s", Answers::none(), ()).break_before(Step::Fan).await.unwrap();
    assert_eq!(asked(&rests), asked(&outcome));

    // Someone corrects the state meanwhile, and another process continues without breakpoints.
    agent.edit("s", Doc::update().lines(["edited".into()]), "sam", "a slip").await.unwrap();
    sessions.answer_json("s", Answers::json(id, json!("continue")).by("sam")).await.unwrap();
    let other = harness(&done).agent("a", ()).store(store.clone());
    let ended = other.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    let mut expected = whole();
    expected.insert(1, "edited".into());
    assert_eq!(ended.state.lines, expected);
    assert_eq!(count(&store, "s", "ask").await, 1);
}

#[tokio::test]
async fn a_resume_has_the_breakpoints_of_its_own_request() {
    let (store, done) = (MemoryStore::new(), Done::default());
    let agent = harness(&done).agent("a", ()).store(store);
    let run = agent.run(Doc::update(), ()).session("s").break_before(Step::Work).await.unwrap();
    // The one that was passed does not fire again at this entry, though the resume has it too.
    let resume = agent.resume("s", onward(&run), ());
    let resume = resume.break_before(Step::Work).break_before(Step::Last).await.unwrap();
    assert_eq!(asked(&resume), ("Last".to_owned(), BreakpointAt::Before));
    let resume = agent.resume("s", onward(&resume), ()).break_before(Step::Work).await.unwrap();
    assert_eq!(asked(&resume), ("Work".to_owned(), BreakpointAt::Before));
    assert_eq!(
        agent.resume("s", onward(&resume), ()).await.unwrap().ended().unwrap().state.lines,
        whole()
    );

    // A turn can be given up there.
    let run = agent.run(Doc::update(), ()).session("s").break_before(Step::Fan).await.unwrap();
    assert_eq!(asked(&run).0, "Fan");
    let next = agent.run(Doc::update(), ()).session("s").withdraw_questions();
    next.await.unwrap().ended().unwrap();
}

#[tokio::test]
async fn an_unknown_step_is_refused_before_anything_runs() {
    let (store, done) = (MemoryStore::new(), Done::default());
    for agent in [harness(&done).agent("a", ()), harness(&done).agent("a", ()).store(store.clone())]
    {
        let refused =
            agent.run(Doc::update(), ()).session("s").break_before("Wrok").await.unwrap_err();
        assert!(refused.is_unknown_step());
        assert_eq!(
            refused.to_string(),
            "the loop `breakpoints` has no step `Wrok` for a breakpoint (did you mean `Work`?)"
        );
        // The names of dynamic loops, and of nested ones.
        let run =
            agent.run(Doc::update(), ()).session("s").break_before("Check/Mark").await.unwrap();
        assert_eq!(asked(&run).0, "Check/Mark");
        let refused = agent.resume(&run, onward(&run), ()).break_after("none").await.unwrap_err();
        assert!(refused.is_unknown_step());
    }
    assert_eq!(count(&store, "s", "run").await, 1);
}

#[tokio::test]
async fn a_stop_comes_first_and_a_fork_waits_for_itself() {
    let (store, done) = (MemoryStore::new(), Done::default());
    let agent = harness(&done).agent("a", ()).store(store.clone());
    for cancel in [false, true] {
        let session = format!("stopped {cancel}");
        let run = agent.run(Doc::update(), ()).session(&session).break_before(Step::Work).start();
        match cancel {
            true => run.cancel(),
            false => run.stop(),
        }
        let stopped = run.await.unwrap();
        assert!(matches!(stopped, Outcome::Stopped(_)), "{stopped:?}");
        let resumed = agent.resume(&session, Answers::none(), ()).break_before(Step::Work);
        assert_eq!(asked(&resumed.await.unwrap()).0, "Work");
        // A run that waits is over: there is nothing to stop.
        assert!(!Sessions::new(store.clone()).stop(&session).await.unwrap());
    }

    let run = agent.run(Doc::update(), ()).session("s").break_after(Step::Work).await.unwrap();
    let sessions = Sessions::new(store.clone());
    let head = sessions.status("s").await.unwrap().head;
    agent.fork("s", head, "asks").await.unwrap();
    // The commit before the question: no run has asked there.
    let commit = log(&store, "s").await.iter().position(|it| it.get("commit").is_some()).unwrap();
    agent.fork("s", harness::Seq(commit as u64 + 1), "free").await.unwrap();
    agent.resume("s", onward(&run), ()).await.unwrap().ended().unwrap();
    let waits = agent.resume("asks", Answers::none(), ()).await.unwrap();
    assert_eq!(asked(&waits), ("Work".to_owned(), BreakpointAt::After));
    let ended = agent.resume("asks", onward(&waits), ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, whole());
    let free = agent.resume("free", Answers::none(), ()).break_before(Step::Fan).await.unwrap();
    assert_eq!(asked(&free), ("Fan".to_owned(), BreakpointAt::Before));
    let ended = agent.resume("free", onward(&free), ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, whole());
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct What;

#[cfg(feature = "testing")]
#[tokio::test(start_paused = true)]
async fn it_asks_before_the_timer_of_a_gate_that_is_retried() {
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Ask,
        Try,
    }
    let hour = std::time::Duration::from_secs(3600);
    let harness = Harness::<(), Doc>::builder("gate")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define
                .ask(|_, _| async move { Ok(What) })
                .answer(|_, _, said| async move { Ok(Doc::update().lines([said.answer])) })
                .then(Step::Try),
            Step::Try => define
                .run(async |_: View<Doc>, cx: Cx<()>| match cx.attempt() {
                    1 => Err(StepError::retryable("not yet")),
                    n => Ok(Doc::update().lines([format!("attempt {n}")])),
                })
                .retry(Retry::every(hour).times(3))
                .after(hour)
                .end(),
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let agent = harness.agent("a", ()).store(store.clone());
    let with = |it: RunRequest<Doc>| {
        it.break_before(Step::Ask).break_after(Step::Ask).break_before(Step::Try)
    };
    let first = with(agent.run(Doc::update(), ()).session("s")).await.unwrap();
    assert_eq!(asked(&first), ("Ask".to_owned(), BreakpointAt::Before));
    let gate = with(agent.resume("s", onward(&first), ())).await.unwrap();
    let Outcome::Interrupted(waiting) = &gate else { panic!("{gate:?}") };
    let answer = waiting.pending::<What>().unwrap().answer("said".into());
    let after = with(agent.resume("s", answer, ())).await.unwrap();
    assert_eq!(asked(&after), ("Ask".to_owned(), BreakpointAt::After));
    let before = with(agent.resume("s", onward(&after), ())).await.unwrap();
    assert_eq!(asked(&before), ("Try".to_owned(), BreakpointAt::Before));
    assert_eq!(count(&store, "s", "timer").await, 0);
    let timer = with(agent.resume("s", onward(&before), ())).await.unwrap();
    assert!(matches!(timer, Outcome::Waiting(_)), "{timer:?}");
    tokio::time::sleep(hour).await;
    let ended = with(agent.resume("s", Answers::none(), ())).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["said", "attempt 2"]);
}

/// The first process dies as `act` says; the others have the same breakpoints.
fn in_the_end(durability: Durability, n: u64, act: Act) -> (MemoryStore, Done, Vec<Value>, bool) {
    let (memory, done) = (MemoryStore::new(), Done::default());
    let (mut crashed, mut questions) = (false, Vec::new());
    let rig = Rig::nth(&memory, On::Append, n, act);
    let agent = harness(&done).agent("a", ()).store(rig.clone()).durability(durability);
    for _ in 0..40 {
        let log = runtime().block_on(log(&memory, "s"));
        let request = match log.last() {
            None => agent.run(Doc::update(), ()).session("s"),
            Some(last) if last["settle"]["end"]["as"] == "ended" => break,
            Some(last) if last["settle"]["end"]["as"] == "interrupted" => {
                let asked = log.iter().rev().find(|entry| entry.get("ask").is_some()).unwrap();
                let interrupt = &asked["ask"]["interrupts"][0];
                questions.push(interrupt["id"].clone());
                agent.resume(
                    "s",
                    Answers::json(interrupt["id"].as_str().unwrap(), json!("continue")),
                    (),
                )
            }
            Some(_) => agent.resume("s", Answers::none(), ()),
        };
        let request =
            request.break_after(Step::Work).break_before(Step::Fan).break_before(Step::Last);
        crashed |= run_or_crash(&rig, |_| request).is_none();
    }
    (memory, done, questions, crashed)
}

#[test]
fn a_death_at_any_append_fires_no_breakpoint_twice_and_skips_none() {
    let mut crashes = 0;
    for durability in [Durability::Step, Durability::Settle] {
        for act in [Act::HangBefore, Act::HangAfter] {
            for n in 1..32 {
                let what = format!("append {n} {durability:?}");
                let (memory, done, _, crashed) = in_the_end(durability, n, act.clone());
                crashes += usize::from(crashed);
                let state = runtime().block_on(folded(&memory, "s"));
                let lines = state["lines"].as_array().unwrap();
                assert_eq!(lines.len(), whole().len(), "{what}: {lines:?}");
                let log = runtime().block_on(log(&memory, "s"));
                let mut asked: Vec<(u64, String)> = Vec::new();
                for entry in &log {
                    for it in entry["ask"]["interrupts"].as_array().into_iter().flatten() {
                        let key = it["key"].as_str().unwrap().to_owned();
                        asked.push((it["position"].as_u64().unwrap(), key));
                    }
                }
                let [before, after] = ["breakpoint/before", "breakpoint/after"];
                let expected =
                    [(2, after), (2, before), (5, before), (7, after), (7, before), (10, before)];
                let expected = expected.map(|(position, key)| (position, key.to_owned()));
                assert_eq!(asked, expected, "{what}");
                // An effect may repeat if the process dies before its record.
                let paid = done.lock().unwrap().iter().filter(|it| *it == "paid").count();
                assert!((2..=3).contains(&paid), "{what}: {paid}");
            }
        }
    }
    assert!(crashes > 80, "{crashes}");
}
