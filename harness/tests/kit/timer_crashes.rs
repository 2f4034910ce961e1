//! Timers, and processes that die at every append or whose clocks jump.

use harness::Durability;

use super::rig::{Act, On, Rig, folded, log, run_or_crash_at, runtime};
use super::timers::*;

/// A loop with timers of every kind.
fn every_kind(log: &Arc<Mutex<Vec<String>>>) -> Harness<(), Doc> {
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Wait,
        Fan,
        Ask,
    }
    let log = Arc::clone(log);
    Harness::<(), Doc>::builder("timers")
        .start(Step::Wait)
        .steps(move |define, step| match step {
            Step::Wait => {
                let log = Arc::clone(&log);
                let wait = move |_, cx: Cx<()>| {
                    let log = Arc::clone(&log);
                    async move {
                        let effect = async move || Ok(log.lock().unwrap().push("once".to_owned()));
                        cx.once("k", effect).await?;
                        let naps =
                            tokio::join!(cx.sleep("long", HOUR), cx.sleep("short", HOUR / 2));
                        naps.0.and(naps.1)?;
                        line("slept")
                    }
                };
                define.run(wait).after(HOUR).then(Step::Fan)
            }
            Step::Fan => define
                .each(async |_, _| Ok(vec![0_u32, 1, 2]))
                .run(async |hours: u32, _, cx: Cx<()>| {
                    cx.sleep("nap", hours * HOUR).await?;
                    cx.sleep("soon", Duration::from_millis(5)).await?;
                    Ok(hours)
                })
                .fold(|_, hours| Ok(Doc::update().lines([format!("{hours:?}")])))
                .then(Step::Ask),
            Step::Ask => define.run(patient).end(),
        })
        .build()
        .unwrap()
}

/// Runs and resumes at each due time until the turn is over; the first process dies as `act` says.
fn in_the_end(durability: Durability, n: u64, act: Act) -> (MemoryStore, Vec<String>, bool) {
    let (memory, effects) = (MemoryStore::new(), Arc::new(Mutex::new(Vec::new())));
    let (mut crashed, mut at) = (false, UtcMillis(0));
    let rig = Rig::nth(&memory, On::Append, n, act);
    let agent = every_kind(&effects).agent("a", ()).store(rig.clone()).durability(durability);
    for _ in 0..20 {
        let found = runtime().block_on(log(&memory, "s"));
        let request = match found.last() {
            None => agent.run(Doc::update(), ()).session("s"),
            Some(last) if last["settle"]["end"]["as"] == "ended" => break,
            Some(_) => agent.resume("s", Answers::none(), ()),
        };
        match run_or_crash_at(&rig, at, |_| request) {
            None => crashed = true,
            Some(Outcome::Waiting(waiting)) => at = waiting.until.unwrap(),
            Some(Outcome::Interrupted(waiting)) => at = waiting.until.unwrap(),
            Some(Outcome::Ended(_)) => break,
            Some(other) => panic!("{other:?}"),
        }
    }
    let effects = effects.lock().unwrap().clone();
    (memory, effects, crashed)
}

#[test]
fn a_death_at_any_append_starts_no_timer_again() {
    let mut crashes = 0;
    for durability in [Durability::Step, Durability::Settle] {
        for act in [Act::HangBefore, Act::HangAfter] {
            for n in 1..26 {
                let what = format!("append {n} {durability:?}");
                let (memory, effects, crashed) = in_the_end(durability, n, act.clone());
                crashes += usize::from(crashed);
                let state = runtime().block_on(folded(&memory, "s"));
                assert_eq!(
                    state["lines"].as_array().unwrap()[..2],
                    ["slept", "[0, 1, 2]"],
                    "{what}"
                );
                assert!(state["lines"][2].as_str().unwrap().starts_with("late"), "{what}");
                // An effect may repeat if the process dies before its record.
                assert!((1..=2).contains(&effects.len()), "{what}: {effects:?}");
                let mut dues = std::collections::BTreeMap::new();
                let mut position = 0;
                for entry in runtime().block_on(log(&memory, "s")) {
                    position += u32::from(entry.get("commit").is_some());
                    let item = entry["timer"]["i"].as_u64();
                    for timer in entry["timer"]["timers"].as_array().into_iter().flatten() {
                        let key = (position, item, timer["k"].to_string());
                        let first = dues.entry(key).or_insert(timer["due"].clone());
                        assert_eq!(*first, timer["due"], "{what}");
                    }
                }
                assert!(dues.len() >= 7, "{what}: {dues:?}");
            }
        }
    }
    assert!(crashes > 60, "{crashes}");
}

#[test]
fn a_clock_that_is_set_back_only_delays() {
    let memory = MemoryStore::new();
    let rig = Rig::new(memory.clone());
    let agent = || only(nap).store(rig.clone());
    let first = run_or_crash_at(&rig, UtcMillis::now().after(9 * HOUR), |_| {
        agent().run(Doc::update(), ()).session("s")
    });
    let due = until(&first.unwrap());
    // This process's clock is nine hours behind.
    let second = run_or_crash_at(&rig, UtcMillis(0), |_| agent().resume("s", Answers::none(), ()));
    assert_eq!(until(&second.unwrap()), due);
    // A clock that jumps ahead wakes it once.
    let third =
        run_or_crash_at(&rig, due.after(99 * HOUR), |_| agent().resume("s", Answers::none(), ()));
    assert_eq!(lines(third.unwrap()), ["attempt 2"]);
}
