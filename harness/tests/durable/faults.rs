//! Stores that fail, and what cannot be recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::observe::{EventKind, Recorder};
use harness::prelude::*;
use harness::state::Edits;
use harness::store::{MemoryStore, StoreError};
use harness::{Durability, FailureKind, step::InDoubt};
use serde_json::to_value;

use super::rig::{Act, On, Rig, count, folded, is_held, log};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    #[state(reduce = add)]
    n: u32,
    ok: Option<bool>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sure;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    One,
    Pay,
    Ask,
    Three,
}

/// Counts what happens outside.
type Paid = Arc<AtomicU32>;

async fn one(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    if cx.attempt() == 1 {
        return Err(StepError::retryable("once more"));
    }
    Ok(Doc::update().lines(["one".to_owned()]).n(1))
}

fn harness(paid: &Paid) -> Harness<(), Doc> {
    let paid = Arc::clone(paid);
    let pay = move |_: View<Doc>, cx: Cx<()>| {
        let paid = Arc::clone(&paid);
        async move {
            let count = move || async move { Ok(paid.fetch_add(1, Ordering::SeqCst)) };
            let _: u32 = cx.once("pay", count).await?;
            let kept: u32 = cx.once("note", async move || Ok(7)).in_doubt(InDoubt::Retry).await?;
            Ok(Doc::update().lines([format!("paid {kept}")]).n(1))
        }
    };
    Harness::<(), Doc>::builder("faults")
        .start(Step::One)
        .steps(|define, step| match step {
            Step::One => {
                define.run(one).retry(Retry::every(Duration::from_millis(1))).then(Step::Pay)
            }
            Step::Pay => define.run(pay.clone()).then(Step::Ask),
            Step::Ask => define
                .ask(|_doc, _cx| async move { Ok(Sure) })
                .answer(
                    |_doc, _cx, said| async move { Ok(Doc::update().ok(Some(said.answer)).n(1)) },
                )
                .then(Step::Three),
            Step::Three => define
                .run(|_doc, _cx| async move { Ok(Doc::update().lines(["three".to_owned()]).n(1)) })
                .end(),
        })
        .build()
        .unwrap()
}

fn whole() -> Doc {
    let lines = ["hi", "one", "paid 7", "three"].map(str::to_owned).to_vec();
    Doc { lines, n: 4, ok: Some(true) }
}

/// Resumes the session until it has ended.
async fn to_the_end(agent: impl Fn() -> Agent<(), Doc>) -> Doc {
    let hi = || Doc::update().lines(["hi".to_owned()]);
    for _ in 0..20 {
        let outcome = match agent().resume("s", Answers::none(), ()).await {
            Err(error) if error.is_not_found() => agent().run(hi(), ()).session("s").await,
            Ok(Outcome::Interrupted(waiting)) => {
                let yes = waiting.pending::<Sure>().unwrap().answer(true);
                agent().resume("s", yes, ()).await
            }
            other => other,
        };
        if let Ok(Outcome::Ended(ended)) = outcome {
            return ended.state;
        }
    }
    panic!("the session does not end");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_full_at_the_nth_append() {
    for durability in [Durability::Step, Durability::Relaxed, Durability::Settle] {
        let mut cut = 0;
        for n in 1..40 {
            let (store, paid) = (MemoryStore::new(), Paid::default());
            let rig = Rig::nth(&store, On::Append, n, Act::Full);
            let agent = || harness(&paid).agent("a", ()).store(rig.clone()).durability(durability);
            let hi = Doc::update().lines(["hi".to_owned()]);
            let mut outcome = agent().run(hi, ()).session("s").await;
            if let Ok(Outcome::Interrupted(waiting)) = &outcome {
                let yes = waiting.pending::<Sure>().unwrap().answer(true);
                outcome = agent().resume("s", yes, ()).await;
            }
            match &outcome {
                Ok(Outcome::Failed(failed)) => {
                    cut += 1;
                    assert_eq!(failed.failure.kind, FailureKind::Store, "{n}: {failed:?}");
                    let state = to_value(failed.state.as_deref().unwrap()).unwrap();
                    assert_eq!(state, folded(&store, "s").await, "append {n}, {durability:?}");
                }
                Ok(Outcome::Ended(ended)) => assert_eq!(ended.state, whole()),
                Err(error) => {
                    assert!(matches!(error.store_error(), Some(StoreError::Full(_))), "{error}");
                }
                other => panic!("append {n}: {other:?}"),
            }
            assert!(!is_held(&store, "s").await, "append {n}");
            if rig.count(On::Append) < n {
                break;
            }
            let agent = || harness(&paid).agent("a", ()).store(store.clone());
            if !matches!(outcome, Ok(Outcome::Ended(_))) {
                assert_eq!(to_the_end(agent).await, whole(), "append {n}, {durability:?}");
            }
            assert!(paid.load(Ordering::SeqCst) <= 2);
        }
        assert!(cut > 3, "{durability:?}: {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_append_whose_answer_is_lost_is_neither_repeated_nor_lost() {
    for durability in [Durability::Step, Durability::Relaxed, Durability::Settle] {
        for act in [Act::LoseAnswer, Act::Fail] {
            for each in [1, 2, 3] {
                let (store, paid) = (MemoryStore::new(), Paid::default());
                let act = act.clone();
                let mut last = 0;
                // Of the appends, each, every second, .. is done and its answer lost.
                let rig = Rig::with(&store, move |on, count| {
                    if on != On::Append || count % each != 0 || count == last + 1 {
                        return Act::Pass;
                    }
                    last = count;
                    act.clone()
                });
                let agent =
                    || harness(&paid).agent("a", ()).store(rig.clone()).durability(durability);
                let hi = Doc::update().lines(["hi".to_owned()]);
                let outcome = agent().run(hi, ()).session("s").await.unwrap();
                let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
                let yes = waiting.pending::<Sure>().unwrap().answer(true);
                let ended = agent().resume("s", yes, ()).await.unwrap().ended().unwrap();
                assert_eq!(ended.state, whole());
                assert_eq!(folded(&store, "s").await, to_value(whole()).unwrap());
                assert_eq!(paid.load(Ordering::SeqCst), 1);
            }
        }
    }
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Odd {
    #[state(reduce = append)]
    lines: Vec<String>,
    #[state(reduce = picky, update = u32)]
    count: u32,
    #[state(reduce = lie, update = u32)]
    lied: Vec<u32>,
    share: f64,
    blob: String,
}

fn picky(count: &mut u32, more: u32) {
    *count += more;
    assert!(more != 13, "13 is refused");
}

fn lie(list: &mut Vec<u32>, item: u32) -> Edits {
    list.push(item);
    Edits::record(|log| log.push(&(item + 1)))
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum OddStep {
    First,
    Second,
    Mend,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Go {
    On,
    Out,
}

impl Go {
    const LAST: [Self; 2] = [Self::On, Self::Out];
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Much {
    Step,
}

/// What the second step does, at its first attempt.
fn odd(second: fn() -> <Odd as State>::Update, route_panics: bool) -> Harness<(), Odd> {
    Harness::<(), Odd>::builder("odd")
        .start(OddStep::First)
        .on_error(OddStep::Mend)
        .steps(|define, step| match step {
            OddStep::First => {
                let first = || Odd::update().lines(["first".to_owned()]).share(0.5).blob("");
                define.run(move |_, _| async move { Ok(first()) }).then(OddStep::Second)
            }
            OddStep::Second => define
                .run(move |_, cx: Cx<()>| async move {
                    if cx.attempt() > 1 {
                        return Ok(Odd::update().lines(["again".to_owned()]));
                    }
                    Ok(second().lines(["second".to_owned()]))
                })
                .route(
                    move |odd: &Odd| {
                        assert!(!route_panics || odd.lines.last().unwrap() != "second", "no way");
                        Go::On
                    },
                    |_| end(),
                ),
            OddStep::Mend => define
                .run(|_, cx: Cx<()>| async move {
                    let kind = cx.failure().map(|failure| failure.kind);
                    Ok(Odd::update().lines([format!("{kind:?}")]))
                })
                .end(),
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_reducer_or_a_route_that_panics() {
    for durability in [Durability::Step, Durability::Settle] {
        for (second, route) in
            [((|| Odd::update().count(13)) as fn() -> _, false), (|| Odd::update().count(1), true)]
        {
            let store = MemoryStore::new();
            let agent =
                || odd(second, route).agent("a", ()).store(store.clone()).durability(durability);
            let outcome = agent().run(Odd::update(), ()).session("s").await.unwrap();
            let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
            let kind = if route { FailureKind::RoutePanic } else { FailureKind::ReducerPanic };
            assert_eq!(failed.failure.kind, kind);
            let state = failed.state.clone().unwrap();
            assert_eq!((&state.lines[..], state.count), (&["first".to_owned()][..], 0));
            assert_eq!(to_value(&*state).unwrap(), folded(&store, "s").await);
            let ended = agent().resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
            assert_eq!(ended.state.lines, ["first", "again"]);
            assert_eq!(to_value(&ended.state).unwrap(), folded(&store, "s").await);
        }
    }
}

#[tokio::test]
async fn what_json_cannot_hold_takes_the_error_route() {
    let store = MemoryStore::new();
    let agent = odd(|| Odd::update().share(f64::NAN).count(2), false).agent("a", ());
    let outcome = agent.store(store.clone()).run(Odd::update(), ()).session("s").await.unwrap();
    let ended = outcome.ended().unwrap();
    assert_eq!(ended.state.lines, ["first", "Some(Encode)"]);
    assert_eq!((ended.state.share, ended.state.count), (0.5, 0));
    assert_eq!(to_value(&ended.state).unwrap(), folded(&store, "s").await);
}

#[tokio::test]
async fn a_reducer_that_lies_is_found_at_the_next_snapshot() {
    let store = MemoryStore::new();
    // So much is replaced that the log outweighs the state, and a snapshot is due.
    let harness = Harness::<(), Odd>::builder("much")
        .start(Much::Step)
        .steps(|define, Much::Step| {
            define
                .run(|odd: View<Odd>, _| async move {
                    Ok(Odd::update().blob(odd.count.to_string().repeat(30_000)).count(1))
                })
                .route(
                    |odd: &Odd| Go::LAST[usize::from(odd.count > 11)],
                    |go| match go {
                        Go::On => to(Much::Step),
                        Go::Out => end(),
                    },
                )
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(store.clone());
    agent.run(Odd::update(), ()).session("honest").await.unwrap().ended().unwrap();
    assert_eq!(count(&store, "honest", "snapshot").await, 1);
    let outcome = agent.run(Odd::update().lied(1), ()).session("s").await.unwrap();
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.kind, FailureKind::NotReplayable);
    assert!(failed.failure.message.contains("`lied`"), "{}", failed.failure);
    assert_eq!(to_value(&**failed.state.as_ref().unwrap()).unwrap(), folded(&store, "s").await);
    assert_eq!(count(&store, "s", "snapshot").await, 0);
}

#[tokio::test(start_paused = true)]
async fn events_of_commits_follow_what_is_durable() {
    for durability in [Durability::Step, Durability::Relaxed, Durability::Settle] {
        let (store, paid) = (MemoryStore::new(), Paid::default());
        let rig = Rig::new(store.clone());
        let at_event = {
            let rig = rig.clone();
            let unsound = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&unsound);
            let observer = harness::observe::from_fn(move |event| {
                let committed =
                    matches!(event.kind, EventKind::Committed { .. } | EventKind::Asked { .. });
                if committed {
                    let seq = event.seq.expect("a commit has a seq");
                    if rig.flushed_to() < seq {
                        counted.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
            (observer, unsound)
        };
        let (observer, unsound) = at_event;
        let seen = Recorder::default();
        let agent = harness(&paid).agent("a", ()).store(rig.clone()).durability(durability);
        let agent = agent.observe(observer).observe(seen.clone());
        let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let yes = waiting.pending::<Sure>().unwrap().answer(true);
        agent.resume("s", yes, ()).await.unwrap().ended().unwrap();
        assert_eq!(unsound.load(Ordering::SeqCst), 0, "{durability:?}");
        let committed: Vec<_> = seen
            .events()
            .into_iter()
            .filter(|event| matches!(event.kind, EventKind::Committed { .. }))
            .collect();
        assert_eq!(committed.len(), 4);
        let log = log(&store, "s").await;
        for event in committed {
            let seq = event.seq.unwrap();
            assert!(seq.0 as usize <= log.len());
        }
    }
}
