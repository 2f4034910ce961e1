//! Processes that die at every append of a step with items; snapshots and forks in the middle of it.

use harness::session::Change;
use harness::store::MemoryStore;
use harness::{Durability, Seq, Sessions};

use super::bench::*;
use super::rig::{Act, On, Rig, count, folded, kinds, log, run_or_crash, runtime};

const ITEMS: [&str; 5] = ["a", "q", "twice", "b", "bad"];

fn harness(probe: &Probe) -> Harness<(), Work> {
    let probe = probe.clone();
    let made = Loop { concurrency: Some(2), retry: Some(1), collects: true, ..Loop::default() };
    made.build(move |item, cx| {
        let probe = probe.clone();
        async move {
            probe.hit(item.clone());
            let (hits, name) = (probe.clone(), item.clone());
            cx.once("k", async move || Ok(hits.hit(format!("once {name}")))).await?;
            match &*item {
                "q" => ask(item, &cx).await,
                "twice" if cx.attempt() == 1 => Err(StepError::retryable("again")),
                "bad" => Err(StepError::fatal("bad")),
                _ => Ok(item),
            }
        }
    })
}

/// Runs and resumes until the turn is over; the first process dies as `act` says.
fn in_the_end(durability: Durability, n: u64, act: Act) -> (Work, MemoryStore, Probe, bool) {
    let (memory, probe) = (MemoryStore::new(), Probe::default());
    let mut crashed = false;
    let mut rig = Rig::nth(&memory, On::Append, n, act);
    for _ in 0..9 {
        let agent = harness(&probe).agent("a", ()).store(rig.clone()).durability(durability);
        let found = runtime().block_on(log(&memory, "s"));
        let request = match found.last() {
            None => agent.run(items(ITEMS), ()).session("s"),
            Some(last) if last["settle"]["end"]["as"] == "ended" => break,
            Some(_) => {
                let status = runtime().block_on(Sessions::new(memory.clone()).status("s")).unwrap();
                agent.resume("s", answers(&status.questions), ())
            }
        };
        match run_or_crash(&rig, |_| request) {
            None => {
                crashed = true;
                rig = Rig::new(memory.clone());
            }
            Some(Outcome::Interrupted(_)) => {}
            Some(Outcome::Ended(_)) => break,
            Some(other) => panic!("{other:?}"),
        }
    }
    let state = runtime().block_on(folded(&memory, "s"));
    (serde_json::from_value(state).unwrap(), memory, probe, crashed)
}

#[test]
fn a_crash_at_every_append_enters_only_items_that_are_not_done() {
    for durability in [Durability::Step, Durability::Relaxed, Durability::Settle] {
        for act in [Act::HangBefore, Act::HangAfter, Act::LoseAnswer, Act::Pass] {
            for n in 1..99 {
                let (state, memory, probe, crashed) = in_the_end(durability, n, act.clone());
                let at = format!("{durability:?} {n}");
                let expected = ["a", "said q", "twice", "b", "Error bad", "After"];
                assert_eq!(state.out, expected, "{at}");
                let (planned, done) = runtime().block_on(async {
                    (count(&memory, "s", "planned").await, count(&memory, "s", "item").await)
                });
                assert_eq!((planned, done), (1, 5), "{at}");
                for item in ITEMS {
                    // An effect repeats only where its own record was lost.
                    let times = probe.count(&format!("once {item}"));
                    assert!(times == 1 || (crashed && times == 2), "{at}: {item} {times}");
                }
                let repeated = ITEMS.iter().filter(|it| probe.count(&format!("once {it}")) > 1);
                assert!(repeated.count() <= 2, "{at}: more than those in flight");
                let hang = matches!(act, Act::HangBefore | Act::HangAfter);
                if !hang && n > 3 || hang && !crashed {
                    break;
                }
            }
        }
    }
}

/// The process dies whenever three more appends were made: more often than one that makes no
/// progress may.
#[test]
fn many_crashes_between_items_are_no_loop_of_crashes() {
    let (memory, probe) = (MemoryStore::new(), Probe::default());
    let names: Vec<String> = (0..12).map(|n| n.to_string()).collect();
    let mut crashes = 0;
    let out = loop {
        let rig = Rig::nth(&memory, On::Append, 4, Act::HangBefore);
        let seen = probe.clone();
        let made = Loop { concurrency: Some(1), ..Loop::default() };
        let harness = made.build(move |item, _| {
            seen.hit(item.clone());
            async move { Ok(item) }
        });
        let agent = harness.agent("a", ()).store(rig.clone());
        let outcome = run_or_crash(&rig, |_| match crashes {
            0 => agent.run(Work::update().items(names.clone()), ()).session("s"),
            _ => agent.resume("s", Answers::none(), ()),
        });
        match outcome {
            Some(outcome) => break ended(outcome),
            None => crashes += 1,
        }
        assert!(crashes < 40);
    };
    assert!(crashes > 5, "{crashes}");
    assert_eq!(out.state.out.len(), 13);
}

#[test]
fn a_snapshot_in_the_middle_replays() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = MemoryStore::new();
        let made = Loop { concurrency: Some(8), retry: Some(9), ..Loop::default() };
        let harness = made.build(|item, cx| async move {
            // Much is written that the session does not keep.
            if cx.attempt() <= 3 {
                tokio::task::yield_now().await;
                let why = format!("{item} {}", "x".repeat(2000));
                return Err(StepError::retryable(why));
            }
            let kept: String = cx.once("k", async move || Ok(item)).await?;
            if kept == "9" { ask(kept, &cx).await } else { Ok(kept) }
        });
        let agent = harness.agent("a", ()).store(store.clone());
        let names: Vec<String> = (0..150).map(|n| n.to_string()).collect();
        let input = Work::update().items(names);
        let asked = waiting(agent.run(input, ()).session("s").await.unwrap());
        let kinds = kinds(&store, "s").await;
        let snapshot = kinds.iter().position(|kind| kind == "snapshot").expect("a snapshot");
        let commit = kinds.iter().position(|kind| kind == "commit");
        assert!(commit.is_none_or(|commit| snapshot < commit));
        assert!(kinds[snapshot..].iter().any(|kind| kind == "item"));
        // From the beginning and from the snapshot.
        folded(&store, "s").await;
        let out = agent.resume("s", answers(&asked.questions), ()).await.unwrap();
        assert_eq!(ended(out).state.out.len(), 151);
        folded(&store, "s").await;
    });
}

#[tokio::test(start_paused = true)]
async fn boundaries_are_as_without_items_and_a_fork_asks_again() {
    let (probe, store) = (Probe::default(), MemoryStore::new());
    let agent = harness(&probe).agent("a", ()).store(store.clone());
    let asked = waiting(agent.run(items(ITEMS), ()).session("s").await.unwrap());
    let sessions = Sessions::new(store.clone());
    let page = sessions.history("s", Seq(0), 99).await.unwrap();
    let planned = page.entries.iter().find(|(_, it)| matches!(it.change, Change::Planned(_)));
    // Neither the plan nor an item ends a step.
    assert!(agent.fork("s", planned.unwrap().0, "no").await.is_err());
    let head = page.head;
    agent.fork("s", head, "t").await.unwrap();
    let fork = waiting(agent.resume("t", Answers::none(), ()).await.unwrap());
    assert_eq!(asking(&fork.questions), [1]);
    assert_ne!(fork.questions[0].id, asked.questions[0].id);
    let out = ended(agent.resume("t", answers(&fork.questions), ()).await.unwrap());
    assert_eq!(out.state.out.len(), 6);
    // The source still waits.
    let out = ended(agent.resume("s", answers(&asked.questions), ()).await.unwrap());
    assert_eq!(out.state.out[1], "said q");
    assert_eq!(probe.count("once q"), 1);
    let moments = agent.history("s", Seq(0), 99).await.unwrap().moments;
    let out: Vec<usize> = moments.iter().map(|moment| moment.state.out.len()).collect();
    assert!(out.is_sorted() && out.contains(&5), "{out:?}");
}

/// A store that fails for good while items are in flight: the effects that they began are over
/// before the run settles.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_waits_for_the_effects_in_flight() {
    let (probe, memory) = (Probe::default(), MemoryStore::new());
    let rig = Rig::new(memory.clone());
    let (seen, broken) = (probe.clone(), rig.clone());
    let harness = Loop::default().build(move |item, cx| {
        let (probe, rig) = (seen.clone(), broken.clone());
        async move {
            if item == "breaks" {
                probe.pass("working").await;
                rig.plan(|on, _| if on == On::Append { Act::Full } else { Act::Pass });
                return Ok(item);
            }
            cx.once("slow", async move || {
                probe.open("working");
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
                Ok(probe.hit("effect"))
            })
            .await?;
            Ok(item)
        }
    });
    let agent = harness.agent("a", ()).store(rig.clone());
    let out = failed(agent.run(items(["breaks", "slow"]), ()).session("s").await.unwrap());
    assert_eq!(out.failure.kind, FailureKind::Store);
    assert_eq!(probe.hits(), ["effect"]);
}

/// A process dies between the intent and the record of one item's effect: of that item alone it is
/// asked whether it happened.
#[test]
fn an_effect_in_doubt_is_that_of_its_item() {
    let mut doubts = 0;
    for n in 1..20 {
        let (memory, probe) = (MemoryStore::new(), Probe::default());
        let harness = || {
            let seen = probe.clone();
            let made = Loop { concurrency: Some(1), ..Loop::default() };
            made.build(move |item, cx| {
                let (probe, name) = (seen.clone(), item.clone());
                async move {
                    let effect = async move || Ok(probe.hit(name));
                    cx.once("k", effect).in_doubt(harness::step::InDoubt::Ask).await?;
                    Ok(item)
                }
            })
        };
        let rig = Rig::nth(&memory, On::Append, n, Act::HangBefore);
        let agent = harness().agent("a", ()).store(rig.clone());
        let crashed = run_or_crash(&rig, |_| agent.run(items(["a", "b"]), ()).session("s"));
        if crashed.is_some() {
            break;
        }
        if runtime().block_on(log(&memory, "s")).is_empty() {
            continue;
        }
        let begun = probe.hits().len() as u32;
        let agent = harness().agent("a", ()).store(memory.clone());
        let out = runtime().block_on(async {
            let mut outcome = agent.resume("s", Answers::none(), ()).await.unwrap();
            if let Outcome::Interrupted(asked) = &outcome {
                doubts += 1;
                assert_eq!(asking(&asked.questions), [begun - 1], "{n}");
                let repeat = serde_json::to_value(harness::question::Doubt::Repeat).unwrap();
                let answer = Answers::json(asked.questions[0].id.clone(), repeat);
                outcome = agent.resume(asked, answer, ()).await.unwrap();
            }
            ended(outcome)
        });
        assert_eq!(out.state.out, ["a", "b", "After"], "{n}");
    }
    assert_eq!(doubts, 2);
}
