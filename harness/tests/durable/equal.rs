//! A session in a store does what one in memory does.

use std::time::Duration;

use harness::Durability;
use harness::observe::{EventKind, Recorder};
use harness::prelude::*;
use harness::store::MemoryStore;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::rig::{folded, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    #[state(reduce = add)]
    n: u32,
    #[state(reduce = union)]
    seen: std::collections::BTreeSet<u32>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = u32)]
struct HowMany {
    step: usize,
}

/// What a step of a random loop does.
#[derive(Clone, Copy, Debug)]
enum Does {
    Add(u32),
    Once,
    FailsFirst,
    Fails,
    Asks,
    Naps,
    Gate,
    Panics,
    Yields,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Way {
    Low,
    High,
}

fn way(doc: &Doc) -> Way {
    if doc.n % 7 < 4 { Way::Low } else { Way::High }
}

/// A step and its targets: one of two steps, or the end.
type Plan = (Does, usize, usize);

async fn act(step: usize, does: Does, cx: Cx<()>) -> StepResult<Doc> {
    let line = |text: String| Doc::update().lines([format!("{step}: {text}")]).n(1);
    match does {
        Does::Add(n) => Ok(line("add".into()).n(n).seen([n])),
        Does::Once => {
            let op = cx.op_id().position.0;
            let position: u64 = cx.once("k", async move || Ok(op)).await?;
            Ok(line(format!("at {position}")))
        }
        Does::FailsFirst if cx.attempt() == 1 => Err(StepError::retryable("once more")),
        Does::Fails if cx.attempt() < 3 => Err(StepError::fatal("no")),
        Does::Asks => {
            let many: u32 = cx.ask("many", HowMany { step }).await?;
            Ok(line(format!("{many}")).n(many))
        }
        Does::Naps => {
            cx.sleep("nap", Duration::from_millis(3)).await?;
            Ok(line(format!("attempt {}", cx.attempt())))
        }
        Does::Panics if cx.attempt() < 2 => panic!("a step panics"),
        Does::Yields => {
            tokio::task::yield_now().await;
            Ok(line("yields".into()))
        }
        _ => Ok(line(format!("attempt {}", cx.attempt()))),
    }
}

fn harness(plan: &[Plan], finally: bool) -> Option<Harness<(), Doc>> {
    let name = |step: usize| format!("s{step}");
    let count = plan.len();
    let target = move |step: usize| if step < count { to(format!("s{step}")) } else { end() };
    let mut builder =
        Harness::<(), Doc>::dynamic("random").start(name(0)).budget(Budget::steps(12));
    for (step, (does, low, high)) in plan.iter().copied().enumerate() {
        let ways = [("Low", target(low)), ("High", target(high))];
        builder = builder.step(name(step), |define| match does {
            Does::Gate => define
                .ask(move |_, _| async move { Ok(HowMany { step }) })
                .answer(move |_, _, said| async move {
                    let text = format!("{step} got {}", said.answer);
                    Ok(Doc::update().lines([text]).n(said.answer))
                })
                .route(way, ways),
            _ => define
                .run(move |_, cx| act(step, does, cx))
                .retry(Retry::every(Duration::ZERO).times(1))
                .route(way, ways),
        });
    }
    if finally {
        builder = builder.finally("last").step("last", |define| {
            define.run(|_, _| async move { Ok(Doc::update().lines(["last".to_owned()])) }).end()
        });
    }
    // A loop that breaks a rule is none.
    builder.build().ok()
}

/// An event without what differs from run to run.
fn plain(kind: &EventKind) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for key in ["at", "id", "asked_at", "call", "due", "waited_ms"] {
                    map.remove(key);
                }
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(kind).unwrap();
    strip(&mut value);
    value
}

/// Runs to the end, or as far as five resumes get: what each run came to, and all events.
async fn runs(agent: Agent<(), Doc>) -> (Vec<(String, Option<Doc>)>, Vec<Value>) {
    let seen = Recorder::default();
    let agent = agent.observe(seen.clone());
    let mut outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let mut came_to = Vec::new();
    for n in 0..6_u32 {
        let how = match &outcome {
            Outcome::Ended(it) => format!("ended {} {:?}", it.steps, it.signal()),
            Outcome::Interrupted(it) => format!("interrupted {}", it.questions.len()),
            Outcome::Failed(it) => format!("failed {:#}", it.failure),
            Outcome::Exhausted(it) => format!("exhausted {}", it.limit),
            other => panic!("{other:?}"),
        };
        came_to.push((how, outcome.state().cloned()));
        outcome = match &outcome {
            Outcome::Interrupted(it) => {
                let question = it.pending::<HowMany>().unwrap();
                agent.resume(it, question.answer(n), ()).await.unwrap()
            }
            Outcome::Failed(it) => agent.resume(it, Answers::none(), ()).await.unwrap(),
            Outcome::Exhausted(it) => {
                let more = Budget::steps(12 + 3 * u64::from(n));
                agent.resume(it, Answers::none(), ()).budget(more).await.unwrap()
            }
            _ => break,
        };
    }
    let events = seen.events().into_iter();
    let events = events.map(|event| {
        json!([event.number, event.step, event.position, event.attempt, plain(&event.kind)])
    });
    (came_to, events.collect())
}

/// The events in an order of their own, without their numbers.
fn sorted(events: &[Value]) -> Vec<String> {
    let parts = events.iter().filter_map(|event| event.as_array());
    let mut texts: Vec<String> = parts.map(|parts| json!(parts[1..]).to_string()).collect();
    texts.sort();
    texts
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        (0..5_u32).prop_map(Does::Add),
        Just(Does::Once),
        Just(Does::FailsFirst),
        Just(Does::Fails),
        Just(Does::Asks),
        Just(Does::Naps),
        Just(Does::Gate),
        Just(Does::Panics),
        Just(Does::Yields),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_changes_nothing_but_where_a_session_lives(
        does in prop::collection::vec(does(), 4),
        jumps in prop::collection::vec(0..5_usize, 4),
        finally in any::<bool>(),
    ) {
        // Each step can lead to the next one, so that all are reached, and the last to the end.
        let plan: Vec<Plan> =
            does.into_iter().zip(jumps).enumerate().map(|(n, (does, jump))| (does, n + 1, jump)).collect();
        let harness = || harness(&plan, finally).expect("it keeps all rules");
        let runtime = runtime();
        let private = runtime.block_on(runs(harness().agent("a", ())));
        for durability in [Durability::Step, Durability::Relaxed, Durability::Settle] {
            let store = MemoryStore::new();
            let agent = harness().agent("a", ()).store(store.clone()).durability(durability);
            let stored = runtime.block_on(runs(agent));
            prop_assert_eq!(&stored.0, &private.0);
            if durability == Durability::Step {
                prop_assert_eq!(&stored.1, &private.1);
            } else {
                // What is buffered is reported later: the same events in another order.
                prop_assert_eq!(sorted(&stored.1), sorted(&private.1));
            }
            let last = private.0.last().and_then(|(_, state)| state.clone());
            if private.0.len() < 6 {
                let log = runtime.block_on(folded(&store, "s"));
                let last = serde_json::to_value(last.unwrap()).unwrap();
                let schema = Doc::schema();
                prop_assert_eq!(schema.difference(&log, &last), None);
            }
        }
    }
}
