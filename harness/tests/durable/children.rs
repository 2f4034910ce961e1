//! Agents that steps call: started once, attached to after a crash, counted once.

use std::sync::{Arc, Mutex};
#[cfg(feature = "testing")]
use std::time::Duration;

use harness::inspect::Filter;
use harness::llm::{Spend, Usage};
use harness::observe::{self, EventKind, Recorder};
use harness::prelude::*;
use harness::run::Waiting;
use harness::store::MemoryStore;
use harness::{Durability, Sessions};

use super::rig::{Act, On, Rig, folded, log, run_or_crash, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doc {
    #[state(reduce = append)]
    pub lines: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool, name = "sign")]
pub struct Sign;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    First,
    Second,
}

pub type Effects = Arc<Mutex<Vec<String>>>;

pub fn line(text: impl Into<String>) -> StepResult<Doc> {
    Ok(Doc::update().lines([text.into()]))
}

/// Spends so many tokens.
pub fn spend(tokens: u64) {
    let usage = Usage { input: Some(tokens), ..Usage::default() };
    observe::current().unwrap().charge(&Spend { usage, cost_micros: Some(tokens) });
}

pub fn tokens(spent: &Spend) -> u64 {
    spent.usage.input.unwrap_or(0)
}

/// A child of two steps: the first has an effect and spends 10 tokens with it, the second ends.
pub fn child(effects: &Effects) -> Agent<(), Doc> {
    let effects = Arc::clone(effects);
    let work = move |_, cx: Cx<()>| {
        let effects = Arc::clone(&effects);
        async move {
            let done = async move || Ok(effects.lock().unwrap().push("child".to_owned()));
            cx.once("work", done).await?;
            spend(10);
            line("worked")
        }
    };
    Harness::<(), Doc>::builder("child")
        .start(Step::First)
        .steps(move |define, step| match step {
            Step::First => define.run(work.clone()).then(Step::Second),
            Step::Second => define.run(async |_, _| line("ended")).end(),
        })
        .build()
        .unwrap()
        .agent("child", ())
}

/// A parent that calls an agent in its first step, and spends one token in its second.
pub fn calls(child: &Agent<(), Doc>) -> Harness<(), Doc> {
    let child = child.clone();
    Harness::<(), Doc>::builder("parent")
        .start(Step::First)
        .steps(move |define, step| match step {
            Step::First => {
                let child = child.clone();
                let call = move |_, cx: Cx<()>| {
                    let child = child.clone();
                    async move {
                        let input = Doc::update().lines(["input".to_owned()]);
                        let ended = cx.call(&child, input, ()).await?;
                        line(ended.state.lines.join(","))
                    }
                };
                define.run(call).then(Step::Second)
            }
            Step::Second => {
                let last = async |_, _| {
                    spend(1);
                    line("last")
                };
                define.run(last).end()
            }
        })
        .build()
        .unwrap()
}

/// A loop of one step.
pub fn only<F, Fut>(body: F) -> Harness<(), Doc>
where
    F: Fn(View<Doc>, Cx<()>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = StepResult<Doc>> + Send + 'static,
{
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Only,
    }
    Harness::<(), Doc>::builder("only")
        .start(Step::Only)
        .steps(move |define, step| match step {
            Step::Only => define.run(body.clone()).end(),
        })
        .build()
        .unwrap()
}

pub fn waiting(outcome: Outcome<Doc>) -> Waiting<Doc> {
    match outcome {
        Outcome::Waiting(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

pub async fn ended(request: harness::RunRequest<Doc>) -> harness::Ended<Doc> {
    request.await.unwrap().ended().unwrap()
}

/// The sessions of children in a log, in the order in which they were started.
pub async fn started(store: &MemoryStore, session: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for entry in log(store, session).await {
        if let Some(session) = entry["child"]["session"].as_str()
            && !found.iter().any(|known| known == session)
        {
            found.push(session.to_owned());
        }
    }
    found
}

#[tokio::test]
async fn a_child_is_a_session_whose_result_the_parent_records() {
    let (memory, effects) = (MemoryStore::new(), Effects::default());
    let parent = calls(&child(&effects)).agent("parent", ()).store(memory.clone());
    let out = ended(parent.run(Doc::update(), ()).session("s")).await;
    assert_eq!(out.state.lines, ["input,worked,ended", "last"]);
    assert_eq!((tokens(&out.spent), out.spent.cost_micros), (11, Some(11)));

    let children = started(&memory, "s").await;
    assert_eq!(children.len(), 1);
    // Its first entry names the step that started it.
    let first = &log(&memory, &children[0]).await[0]["open"];
    assert_eq!((&first["agent"], &first["parent"]["session"]), (&"child".into(), &"s".into()));
    assert_eq!(first["parent"]["position"], 1);
    let own: Vec<_> = log(&memory, "s").await;
    let saved = own.iter().position(|entry| entry.get("child").is_some()).unwrap();
    let done = own.iter().position(|entry| entry.get("child_done").is_some()).unwrap();
    assert!(saved < done, "{own:?}");
    assert_eq!(own[done]["child_done"]["state"]["lines"][1], "worked");
    // The child's session keeps its outcome for itself, too.
    let resumed = child(&effects).store(memory.clone());
    assert!(resumed.resume(&children[0], Answers::none(), ()).await.unwrap_err().is_not_waiting());
}

/// Runs and resumes until the turn is over; the first process dies as `act` says. Says whether one
/// did.
fn in_the_end(durability: Durability, n: u64, act: Act) -> (MemoryStore, Vec<String>, bool) {
    let (memory, effects) = (MemoryStore::new(), Effects::default());
    let mut crashed = false;
    let rig = Rig::nth(&memory, On::Append, n, act);
    let parent = calls(&child(&effects)).agent("p", ()).store(rig.clone()).durability(durability);
    for _ in 0..9 {
        let request = match runtime().block_on(log(&memory, "s")).last() {
            None => parent.run(Doc::update(), ()).session("s"),
            Some(last) if last["settle"]["end"]["as"] == "ended" => break,
            Some(_) => parent.resume("s", Answers::none(), ()),
        };
        crashed |= run_or_crash(&rig, |_| request).is_none();
    }
    let effects = effects.lock().unwrap().clone();
    (memory, effects, crashed)
}

#[test]
fn a_death_at_any_append_of_parent_and_child_starts_no_child_again() {
    let mut crashes = 0;
    for durability in [Durability::Step, Durability::Settle] {
        for act in [Act::HangBefore, Act::HangAfter] {
            for n in 1..16 {
                let what = format!("append {n} {durability:?}");
                let (memory, effects, crashed) = in_the_end(durability, n, act.clone());
                crashes += usize::from(crashed);
                let state = runtime().block_on(folded(&memory, "s"));
                assert_eq!(
                    state["lines"],
                    serde_json::json!(["input,worked,ended", "last"]),
                    "{what}"
                );
                let children = runtime().block_on(started(&memory, "s"));
                assert_eq!(children.len(), 1, "{what}");
                let turns = runtime().block_on(async {
                    let log = log(&memory, &children[0]).await;
                    log.iter().filter(|entry| entry["run"]["start"].is_string()).count()
                });
                assert_eq!(turns, 1, "{what}");
                // An effect may repeat if the process dies before its record.
                assert!((1..=2).contains(&effects.len()), "{what}: {effects:?}");
                // What the child has spent counts once, whatever it is; the parent spends one.
                let of_child = runtime().block_on(spent_in(&memory, &children[0]));
                let spent = runtime().block_on(spent_in(&memory, "s"));
                assert!((10..=20).contains(&of_child), "{what}: {of_child}");
                assert!(
                    (of_child + 1..=of_child + 2).contains(&spent),
                    "{what}: {spent} {of_child}"
                );
            }
        }
    }
    assert!(crashes > 30, "{crashes}");
}

/// What a log says was spent, in tokens.
pub async fn spent_in(store: &MemoryStore, session: &str) -> u64 {
    log(store, session).await.iter().filter_map(|entry| entry["u"]["i"].as_u64()).sum()
}

#[tokio::test]
async fn observers_of_the_parent_receive_the_events_of_its_child() {
    let (memory, effects, seen) = (MemoryStore::new(), Effects::default(), Recorder::default());
    let parent = calls(&child(&effects)).agent("p", ()).store(memory).observe(seen.clone());
    let mut run = parent.run(Doc::update(), ()).start();
    let mut stream = run.events();
    let out = run.await.unwrap().ended().unwrap();
    let events = seen.events();
    let of_child: Vec<_> = events.iter().filter(|it| it.agent.as_str() == "child").collect();
    assert!(of_child.iter().all(|it| it.parent.as_ref() == Some(&out.run)));
    let committed = |it: &&&observe::Event| matches!(it.kind, EventKind::Committed { .. });
    assert_eq!(of_child.iter().filter(committed).count(), 2);
    let charged: u64 = events
        .iter()
        .filter_map(|it| match &it.kind {
            EventKind::Charged { spend } => Some(tokens(spend)),
            _ => None,
        })
        .sum();
    assert_eq!(charged, 11, "each charge is one event");
    let mut streamed = 0;
    while let Some(item) = stream.next().await {
        if let observe::Streamed::Event(event) = item {
            streamed += usize::from(event.agent.as_str() == "child");
        }
    }
    assert_eq!(streamed, of_child.len());
}

/// A child that asks in its first step, and spends 10 tokens before that and 5 after.
pub fn asking() -> Agent<(), Doc> {
    only(async |_, cx: Cx<()>| {
        cx.once("before", async || {
            spend(10);
            Ok(())
        })
        .await?;
        let said = cx.ask("sign", Sign).await?;
        spend(5);
        line(format!("signed {said}"))
    })
    .agent("child", ())
}

#[tokio::test]
async fn a_question_of_a_child_stands_once_and_its_answer_continues_both() {
    let memory = MemoryStore::new();
    let parent = || calls(&asking()).agent("p", ()).store(memory.clone());
    let rests = waiting(parent().run(Doc::update(), ()).session("s").await.unwrap());
    assert_eq!((rests.until, tokens(&rests.spent)), (None, 10));
    let [found] = &rests.children[..] else { panic!("{:?}", rests.children) };
    assert_eq!(
        (found.agent.as_str(), &started(&memory, "s").await[0]),
        ("child", &found.session.to_string())
    );
    let sessions = Sessions::new(memory.clone());
    let inbox = sessions.list_interrupts(&Filter::default(), None, 9).await.unwrap();
    assert_eq!(inbox.rows.len(), 1);
    // An operator sees for what the parent waits, and since when.
    assert_eq!(sessions.status("s").await.unwrap().children, rests.children);
    let since = sessions.status(&found.session).await.unwrap().created;
    assert!(found.since.is_some_and(|at| at <= since), "{:?}, {since}", found.since);
    assert_eq!((found.item, &*found.key), (None, "child"));

    // Nothing has changed: the parent looks, and waits again.
    let again = waiting(parent().resume("s", Answers::none(), ()).await.unwrap());
    assert_eq!((again.children.len(), tokens(&again.spent)), (1, 10));
    let early = parent().run(Doc::update(), ()).session("s").await.unwrap_err();
    assert!(early.is_waiting(), "{early}");

    // Another process answers the child; a third one resumes the parent.
    let answers = Answers::json(inbox.rows[0].interrupt.id.clone(), true.into());
    let answered = asking().store(memory.clone()).resume(&found.session, answers, ());
    assert_eq!(ended(answered).await.state.lines, ["input", "signed true"]);
    let out = ended(parent().resume("s", Answers::none(), ())).await;
    assert_eq!(out.state.lines, ["input,signed true", "last"]);
    assert_eq!(tokens(&out.spent), 16);
    assert_eq!(started(&memory, "s").await.len(), 1);
    assert_eq!(sessions.status("s").await.unwrap().children, []);
}

#[tokio::test]
async fn a_parent_that_resumes_runs_a_child_that_was_answered_and_not_run() {
    let memory = MemoryStore::new();
    let parent = calls(&asking()).agent("p", ()).store(memory.clone());
    let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
    let sessions = Sessions::new(memory.clone());
    let inbox = sessions.list_interrupts(&Filter::default(), None, 9).await.unwrap();
    let answer = Answers::json(inbox.rows[0].interrupt.id.clone(), false.into());
    sessions.answer_json(&rests.children[0].session, answer).await.unwrap();
    let out = ended(parent.resume("s", Answers::none(), ())).await;
    assert_eq!((out.state.lines[0].as_str(), tokens(&out.spent)), ("input,signed false", 16));
}

#[cfg(feature = "testing")]
#[tokio::test(start_paused = true)]
async fn a_parent_is_due_when_its_child_is() {
    const HOUR: Duration = Duration::from_secs(3600);
    let memory = MemoryStore::new();
    let naps = only(async |_, cx: Cx<()>| {
        cx.sleep("nap", HOUR).await?;
        line("slept")
    });
    let parent = calls(&naps.agent("child", ())).agent("p", ()).store(memory.clone());
    let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
    assert!(rests.until.is_some());
    tokio::time::sleep(HOUR).await;
    let seen = Recorder::default();
    let out = ended(parent.resume("s", Answers::none(), ()).observe(seen.clone())).await;
    assert_eq!(out.state.lines, ["input,slept", "last"]);
    let cause = |event: &observe::Event| match event.kind {
        EventKind::RunStarted { cause, .. } => Some((event.agent.to_string(), cause)),
        _ => None,
    };
    let causes: Vec<_> = seen.events().iter().filter_map(cause).collect();
    let expected =
        [("p".to_owned(), observe::Cause::Child), ("child".into(), observe::Cause::Timer)];
    assert_eq!(causes, expected);
}
