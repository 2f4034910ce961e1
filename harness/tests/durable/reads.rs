//! What `Sessions` reads from the log is what the run had in memory when it settled.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::observe::Recorder;
use harness::prelude::*;
use harness::run::RunControl;
use harness::store::{MemoryStore, Phase};
use harness::{Durability, Sessions};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::rig::{kinds, log, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    #[state(reduce = add)]
    n: u32,
    #[state(reduce = merge)]
    seen: BTreeMap<u32, Option<bool>>,
    last: Option<f64>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = u32)]
struct HowMany {
    step: usize,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Way {
    Low,
    High,
}

fn way(doc: &Doc) -> Way {
    if doc.n % 7 < 4 { Way::Low } else { Way::High }
}

/// What a step, or an item of it, does.
#[derive(Clone, Copy, Debug)]
enum Does {
    Add(u32),
    Once,
    OncePerSession,
    AtMostOnce,
    FailsFirst,
    FailsTwice,
    Fails,
    Asks,
    AsksTwo,
    Panics,
    Yields,
    Stops,
    Cancels,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Run(Does),
    Gate { expires: bool },
    Each { items: u32, collects: bool, one: Does, others: Does },
}

#[derive(Clone, Debug)]
struct Plan {
    kind: Kind,
    low: usize,
    high: usize,
    on_error: bool,
    at_most: Option<u32>,
}

#[derive(Clone, Debug)]
struct Loop {
    steps: Vec<Plan>,
    on_error: bool,
    finally: Option<Does>,
}

/// The run at work, which steps stop.
type Control = Arc<Mutex<Option<RunControl>>>;

async fn act(step: usize, does: Does, cx: &Cx<()>, control: &Control) -> Result<u32, StepError> {
    let run = || control.lock().unwrap().clone();
    match does {
        Does::Add(n) => Ok(n),
        Does::Once => cx.once("k", async move || Ok(3)).await,
        Does::OncePerSession => cx.once_per_session("kept", async move || Ok(4)).await,
        Does::AtMostOnce => cx.once("k", async move || Ok(5)).at_most_once().await,
        Does::FailsFirst if cx.attempt() == 1 => Err(StepError::retryable("once more")),
        Does::FailsTwice if cx.attempt() < 3 => Err(StepError::retryable("twice more")),
        Does::Fails if cx.attempt() < 3 => Err(StepError::fatal("no")),
        Does::Asks => cx.ask("many", HowMany { step }).await.map_err(Into::into),
        Does::AsksTwo => {
            let first = cx.ask("first", HowMany { step });
            let second = cx.ask("second", HowMany { step: step + 1 });
            let (first, second) = tokio::join!(first, second);
            Ok(first? + second?)
        }
        Does::Panics if cx.attempt() < 2 => panic!("a step panics"),
        Does::Yields => {
            tokio::task::yield_now().await;
            Ok(1)
        }
        Does::Stops => {
            run().iter().for_each(RunControl::stop);
            Ok(1)
        }
        Does::Cancels if cx.attempt() < 2 => {
            run().iter().for_each(RunControl::cancel);
            std::future::pending().await
        }
        _ => Ok(cx.attempt()),
    }
}

fn line(step: usize, n: u32) -> DocUpdate {
    let last = Some(f64::from(n) / 10.0);
    let seen = [(n, (!n.is_multiple_of(3)).then_some(n.is_multiple_of(2)))];
    Doc::update().lines([format!("{step}: {n}")]).n(n).seen(seen).last(last)
}

fn harness(plan: &Loop, control: &Control) -> Harness<(), Doc> {
    let name = |step: usize| format!("s{step}");
    let count = plan.steps.len();
    let target = move |step: usize| if step < count { to(format!("s{step}")) } else { end() };
    let mut builder =
        Harness::<(), Doc>::dynamic("random").start(name(0)).budget(Budget::steps(10));
    for (step, of) in plan.steps.iter().cloned().enumerate() {
        let ways = [("Low", target(of.low)), ("High", target(of.high))];
        let retry = Retry::every(Duration::ZERO).times(1);
        let control = Arc::clone(control);
        builder = builder.step(name(step), |define| {
            macro_rules! finish {
                ($defined:expr) => {{
                    let mut defined = $defined;
                    if of.on_error {
                        defined = defined.on_error("mend");
                    }
                    if let Some(times) = of.at_most {
                        defined = defined.at_most(times, name(count - 1));
                    }
                    defined.route(way, ways)
                }};
            }
            match of.kind {
                Kind::Gate { expires } => {
                    let gate = define
                        .ask(move |_, _| async move { Ok(HowMany { step }) })
                        .answer(move |_, _, said| async move { Ok(line(step, said.answer)) });
                    match expires {
                        true => finish!(gate.expires_or_fails(Duration::from_secs(1))),
                        false => finish!(gate),
                    }
                }
                Kind::Run(does) => finish!(
                    define
                        .run(move |_, cx| {
                            let control = Arc::clone(&control);
                            async move { Ok(line(step, act(step, does, &cx, &control).await?)) }
                        })
                        .retry(retry)
                ),
                Kind::Each { items, collects, one, others } => {
                    let each = define
                        .each(move |_, _| async move { Ok((0..items).collect::<Vec<u32>>()) })
                        .concurrency(2)
                        .run(move |item, _, cx| {
                            let control = Arc::clone(&control);
                            let does = if item == 1 { one } else { others };
                            async move {
                                Ok(act(step + item as usize, does, &cx, &control).await? + item)
                            }
                        });
                    match collects {
                        true => finish!(
                            each.fold_all(move |_, ends| {
                                let failed = ends.iter().filter(|end| end.is_err()).count();
                                let sum: u32 = ends.into_iter().flatten().sum();
                                Ok(line(step, sum + failed as u32))
                            })
                            .retry(retry)
                        ),
                        false => finish!(
                            each.fold(move |_, sums: Vec<u32>| Ok(line(step, sums.iter().sum())))
                                .retry(retry)
                        ),
                    }
                }
            }
        });
    }
    if plan.on_error || plan.steps.iter().any(|of| of.on_error) {
        builder = builder.step("mend", |define| {
            define
                .run(|_, cx: Cx<()>| async move {
                    let failed = cx.failure().is_some();
                    Ok(line(90, u32::from(failed)))
                })
                .end()
        });
    }
    if plan.on_error {
        builder = builder.on_error("mend");
    }
    if let Some(does) = plan.finally {
        let control = Arc::clone(control);
        builder = builder.finally("last").step("last", move |define| {
            define
                .run(move |_, cx| {
                    let control = Arc::clone(&control);
                    async move { Ok(line(99, act(99, does, &cx, &control).await?)) }
                })
                .end()
        });
    }
    builder.build().expect("the loop keeps all rules")
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        (0..5_u32).prop_map(Does::Add),
        Just(Does::Once),
        Just(Does::OncePerSession),
        Just(Does::AtMostOnce),
        Just(Does::FailsFirst),
        Just(Does::FailsTwice),
        Just(Does::Fails),
        Just(Does::Asks),
        Just(Does::AsksTwo),
        Just(Does::Panics),
        Just(Does::Yields),
        Just(Does::Stops),
        Just(Does::Cancels),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => does().prop_map(Kind::Run),
        1 => any::<bool>().prop_map(|expires| Kind::Gate { expires }),
        3 => (0..4_u32, any::<bool>(), does(), does())
            .prop_map(|(items, collects, one, others)| Kind::Each { items, collects, one, others }),
    ]
}

fn loops() -> impl Strategy<Value = Loop> {
    let step = (kind(), 0..5_usize, any::<bool>(), prop::option::weighted(0.3, 1..3_u32));
    let finally = prop::option::weighted(0.4, does());
    (prop::collection::vec(step, 4), any::<bool>(), finally).prop_map(
        |(steps, on_error, finally)| {
            // Each step can lead to the next one, so that all are reached, and the last to the end.
            let steps =
                steps.into_iter().enumerate().map(|(at, (kind, jump, on_error, at_most))| Plan {
                    kind,
                    low: at + 1,
                    high: jump,
                    on_error,
                    at_most: at_most.filter(|_| at < 3),
                });
            Loop { steps: steps.collect(), on_error, finally }
        },
    )
}

fn phase(outcome: &Outcome<Doc>) -> Phase {
    match outcome {
        Outcome::Ended(_) => Phase::Ended,
        Outcome::Interrupted(_) => Phase::Interrupted,
        Outcome::Stopped(_) => Phase::Stopped,
        Outcome::Exhausted(_) => Phase::Exhausted,
        Outcome::Failed(_) => Phase::Failed,
        other => panic!("{other:?}"),
    }
}

/// Compares a session in the store with the outcome of its last run.
async fn compare(store: &MemoryStore, agent: &Agent<(), Doc>, outcome: &Outcome<Doc>, turn: u64) {
    let sessions = Sessions::new(store.clone());
    let status = sessions.status("s").await.unwrap();
    let settled = status.settled.as_ref().expect("the run has settled");
    assert_eq!(status.phase, phase(outcome));
    assert_eq!((status.turn, &status.spent), (turn, outcome.spent()));
    assert_eq!((status.unread, status.holder.is_some()), (0, false));
    let (run, finally_failure) = match outcome {
        Outcome::Ended(it) => {
            assert_eq!(status.steps, it.steps);
            assert_eq!(settled.end.signal(), it.signal());
            (&it.run, it.finally_failure.as_ref())
        }
        Outcome::Interrupted(it) => {
            assert_eq!(status.questions, it.questions);
            assert!(!it.questions.is_empty());
            (&it.run, None)
        }
        Outcome::Stopped(it) => {
            let expected = if it.cancelled { "cancelled" } else { "stopped" };
            assert_eq!(settled.end.to_string(), expected);
            (&it.run, None)
        }
        Outcome::Exhausted(it) => {
            let expected = format!("exhausted its budget of {}", it.limit);
            assert_eq!(settled.end.to_string(), expected);
            (&it.run, it.finally_failure.as_ref())
        }
        Outcome::Failed(it) => {
            assert_eq!(settled.end.failure(), Some(&it.failure));
            assert_eq!(status.failure.as_ref(), Some(&*it.failure));
            (&it.run, it.finally_failure.as_ref())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(settled.finally_failure.as_ref(), finally_failure);
    assert_eq!(
        settled.end.is_of_turn(),
        status.phase != Phase::Interrupted && status.phase != Phase::Stopped
    );
    let history = sessions.history("s", status.head, 1).await.unwrap();
    assert_eq!(history.entries.last().map(|(seq, _)| *seq), Some(status.head));
    let entries = log(store, "s").await;
    let began = entries.iter().rev().find_map(|entry| entry["run"]["run"].as_str());
    assert_eq!(began, Some(run.as_str()));

    // The state, as JSON and with its type.
    let live = outcome.state().expect("no state was lost");
    let live: Value = serde_json::to_value(live).unwrap();
    let schema = Doc::schema();
    let read = sessions.state("s").await.unwrap();
    assert_eq!(schema.difference(&read, &live), None);
    let at_head = sessions.state_at("s", status.head).await.unwrap();
    assert_eq!(schema.difference(&at_head, &live), None);
    let typed = agent.state_at("s", status.head).await.unwrap();
    assert_eq!(Some(&typed), outcome.state());
}

/// Runs two turns, as far as some resumes get, and compares after each run. Says how the runs
/// settled, and the kinds of all entries.
async fn runs(plan: &Loop, durability: Durability, partly: bool) -> (Vec<Phase>, Vec<String>) {
    let control = Control::default();
    let store = MemoryStore::new();
    let agent = harness(plan, &control).agent("a", ());
    let agent = agent.store(store.clone()).durability(durability).observe(Recorder::default());
    let (mut turn, mut phases) = (1, Vec::new());
    let mut request = agent.run(Doc::update().n(1), ()).session("s");
    for n in 0..12_u32 {
        let run = request.start();
        *control.lock().unwrap() = Some(run.control());
        let outcome = run.await.unwrap();
        compare(&store, &agent, &outcome, turn).await;
        phases.push(phase(&outcome));
        request = match &outcome {
            Outcome::Interrupted(it) => {
                // Expired questions are resolved by the run that finds them.
                if n % 4 == 3 {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                }
                let count = if partly { 1 } else { it.questions.len() };
                let answers = it
                    .questions
                    .iter()
                    .take(count)
                    .map(|question| question.as_question::<HowMany>().unwrap().answer(n));
                let answers = answers.fold(Answers::none(), Answers::and);
                match n % 4 {
                    3 => agent.resume("s", Answers::none(), ()),
                    _ => agent.resume(it, answers, ()),
                }
            }
            Outcome::Failed(it) => agent.resume(it, Answers::none(), ()),
            Outcome::Stopped(it) => agent.resume(it, Answers::none(), ()),
            Outcome::Exhausted(it) => {
                let more = Budget::steps(10 + 4 * u64::from(n));
                agent.resume(it, Answers::none(), ()).budget(more)
            }
            _ if turn == 2 => break,
            _ => {
                turn += 1;
                agent.run(Doc::update().n(n), ()).session("s")
            }
        };
    }
    (phases, kinds(&store, "s").await)
}

#[test]
fn sessions_read_what_the_run_had_in_memory() {
    let config = ProptestConfig { cases: 192, failure_persistence: None, ..Default::default() };
    let (seen_phases, seen_kinds) = (RefCell::new(Vec::new()), RefCell::new(BTreeSet::new()));
    let tested = TestRunner::new(config).run(&(loops(), any::<bool>()), |(plan, partly)| {
        for durability in [Durability::Step, Durability::Settle] {
            let (phases, kinds) = runtime().block_on(runs(&plan, durability, partly));
            seen_phases.borrow_mut().extend(phases);
            seen_kinds.borrow_mut().extend(kinds);
        }
        Ok(())
    });
    tested.unwrap_or_else(|error| panic!("{error}"));
    // The loops did everything that is to be compared.
    let phases = seen_phases.into_inner();
    for phase in [Phase::Ended, Phase::Interrupted, Phase::Stopped, Phase::Exhausted, Phase::Failed]
    {
        assert!(phases.contains(&phase), "{phase:?}");
    }
    let expected = [
        "ask", "attempt", "commit", "divert", "effect", "finish", "intent", "item", "open",
        "planned", "resolve", "run", "settle",
    ];
    let kinds = seen_kinds.into_inner();
    for kind in expected {
        assert!(kinds.contains(kind), "{kind}");
    }
}

/// The budget ends while one of two questions is answered, and the last step of the turn runs: with more
/// budget, the other question can be answered.
#[test]
fn a_question_stands_open_again_after_the_last_step_of_an_exhausted_turn() {
    let each = |items, others| Kind::Each { items, collects: false, one: Does::Add(0), others };
    let kinds = [each(0, Does::Add(0)), each(1, Does::AsksTwo), Kind::Gate { expires: false }];
    let last = [Kind::Run(Does::Add(0))];
    let steps = kinds.into_iter().chain(last).zip(1..);
    let plan = |(kind, low)| Plan { kind, low, high: 0, on_error: false, at_most: None };
    let steps = steps.map(plan).collect();
    let plan = Loop { steps, on_error: false, finally: Some(Does::Once) };
    for durability in [Durability::Step, Durability::Settle] {
        let (phases, kinds) = runtime().block_on(runs(&plan, durability, true));
        assert!(phases.contains(&Phase::Exhausted), "{phases:?}");
        let seen: Vec<&str> = kinds
            .iter()
            .map(String::as_str)
            .filter(|kind| ["ask", "resolve", "finish"].contains(kind))
            .collect();
        // What is resolved after the last step was asked before it.
        assert!(seen.windows(2).any(|two| two == ["finish", "resolve"]), "{seen:?}");
    }
}
