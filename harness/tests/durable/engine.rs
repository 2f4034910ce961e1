//! Sessions on a durable-execution engine: a journal of the results of pieces of work, and a process
//! that dies at any of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use harness::engine::{Checkpoint, Engine, EngineError, HostError, Invocation, Turn, Work};
use harness::prelude::*;
use harness::store::{MemoryStore, Phase};

use super::rig::{log, runtime};

mod children;
mod kept;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Order {
    #[state(reduce = append)]
    done: Vec<String>,
    #[state(reduce = add)]
    sum: u32,
}

/// What the steps have done to the world, by effect. It survives every process.
#[derive(Clone, Default)]
struct World {
    effects: Arc<Mutex<BTreeMap<String, u32>>>,
    entered: Arc<AtomicU32>,
}

impl World {
    fn act(&self, effect: impl Into<String>) {
        *self.effects.lock().unwrap().entry(effect.into()).or_default() += 1;
    }

    fn counts(&self) -> BTreeMap<String, u32> {
        self.effects.lock().unwrap().clone()
    }
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    world: World,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send {
    to: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Pay,
    Pack,
    Close,
}

/// Three effects, one of which must happen at most once, with a question between them.
async fn pay(_: View<Order>, cx: Cx<Ctx>) -> StepResult<Order> {
    cx.world.entered.fetch_add(1, Ordering::Relaxed);
    let effect = |name: &'static str| {
        let (world, op) = (cx.world.clone(), cx.op_id());
        async move || {
            world.act(format!("{name} {}", op.position));
            Ok(name.to_owned())
        }
    };
    let reserved = cx.once("reserve", effect("reserve")).await?;
    let paid = cx.once("pay", effect("pay")).await?;
    let send = cx.ask("send", Send { to: "sam".into() }).await?;
    let sent = cx.once("send", effect("send")).await?;
    Ok(Order::update().done([reserved, paid, format!("{sent} {send}")]))
}

fn agent() -> Agent<Ctx, Order> {
    Harness::<Ctx, Order>::builder("orders")
        .start(Step::Pay)
        .steps(|define, step| match step {
            Step::Pay => define.run(pay).then(Step::Pack),
            Step::Pack => define
                .each(|_: View<Order>, _| async { Ok(vec![1_u32, 2, 3]) })
                .run(|part: u32, _, cx: Cx<Ctx>| async move {
                    let world = cx.world.clone();
                    cx.once("pack", async move || {
                        world.act(format!("pack {part}"));
                        Ok(part)
                    })
                    .await
                })
                .fold(|_, parts: Vec<u32>| Ok(Order::update().sum(parts.into_iter().sum())))
                .then(Step::Close),
            Step::Close => {
                define.run(|_, _| async { Ok(Order::update().done(["closed".to_owned()])) }).end()
            }
        })
        .build()
        .unwrap()
        .agent("shop", ())
}

/// When the process of an invocation dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// Before a piece of work.
    Before(u64),
    /// The work is done, and its result is not in the journal.
    After(u64),
    /// The result is in the journal, and the process does not get it.
    Journalled(u64),
}

/// An engine in memory: what it has journalled of one invocation.
#[derive(Clone, Default)]
struct Toy {
    journal: Arc<Mutex<Vec<Vec<u8>>>>,
    death: Option<Death>,
}

impl Toy {
    fn dies(&self, death: Death) -> Self {
        Self { journal: Arc::clone(&self.journal), death: Some(death) }
    }

    fn lives(&self) -> Self {
        Self { journal: Arc::clone(&self.journal), death: None }
    }

    fn length(&self) -> u64 {
        self.journal.lock().unwrap().len() as u64
    }

    /// The kinds of the entries that were journalled.
    fn kinds(&self) -> Vec<String> {
        let journal = self.journal.lock().unwrap();
        let writes = journal.iter().map(|result| serde_json::from_slice(result).unwrap());
        let entries = writes
            .filter_map(|write: serde_json::Value| write["append"]["entries"].as_array().cloned());
        entries.flatten().map(|line| kind(line["e"].as_str().unwrap())).collect()
    }
}

fn kind(entry: &str) -> String {
    let entry: serde_json::Map<String, serde_json::Value> = serde_json::from_str(entry).unwrap();
    entry.keys().find(|key| !["t", "u"].contains(&key.as_str())).unwrap().clone()
}

#[harness::async_trait]
impl Engine for Toy {
    async fn run(&self, number: u64, work: Work) -> Result<Vec<u8>, EngineError> {
        let known = self.journal.lock().unwrap().get(number as usize - 1).cloned();
        if let Some(result) = known {
            return Ok(result);
        }
        assert_eq!(number, self.length() + 1, "a piece of work was left out");
        match self.death {
            Some(Death::Before(n)) if n == number => return Err("died".into()),
            Some(Death::After(n)) if n == number => {
                work.await;
                return Err("died".into());
            }
            _ => {}
        }
        let result = work.await;
        self.journal.lock().unwrap().push(result.clone());
        match self.death {
            Some(Death::Journalled(n)) if n == number => Err("died".into()),
            _ => Ok(result),
        }
    }
}

/// A process with the agent: it has nothing of the ones before it but the checkpoint.
fn invocation(checkpoint: Option<&str>) -> Invocation<Ctx, Order> {
    let invocation = Invocation::new(&agent(), "order-7");
    match checkpoint {
        Some(json) => invocation.checkpoint(serde_json::from_str(json).unwrap()),
        None => invocation,
    }
}

fn slots(world: &World) -> <Ctx as Context>::Runtime {
    Ctx::runtime().world(world.clone()).build()
}

fn in_a_process<T>(work: impl Future<Output = T>) -> T {
    // Its tasks end with it.
    runtime().block_on(work)
}

fn starts(world: &World, toy: &Toy) -> Result<Turn<Order>, HostError> {
    let run = invocation(None).run(toy, "in-1", Order::update(), slots(world));
    in_a_process(run)
}

fn resumes(
    world: &World,
    toy: &Toy,
    checkpoint: &str,
    answers: Answers,
) -> Result<Turn<Order>, HostError> {
    let resume = invocation(Some(checkpoint)).resume(toy, answers, slots(world));
    in_a_process(resume)
}

fn json(checkpoint: &Checkpoint) -> String {
    serde_json::to_string(checkpoint).unwrap()
}

/// The question, and what is kept until it is answered.
fn asked(turn: Turn<Order>) -> (Answers, String) {
    match turn {
        Turn::Settled { outcome: Outcome::Interrupted(waiting), checkpoint } => {
            assert_eq!(checkpoint.summary().phase, Phase::Interrupted);
            assert_eq!(checkpoint.interrupts().len(), 1);
            (waiting.pending::<Send>().unwrap().answer(true).by("sam"), json(&checkpoint))
        }
        other => panic!("{other:?}"),
    }
}

fn ended(turn: Turn<Order>) -> Order {
    match turn {
        Turn::Settled { outcome, .. } => outcome.ended().unwrap().state,
        other => panic!("{other:?}"),
    }
}

/// The same two runs on a store.
fn on_a_store() -> (Order, World, Vec<String>) {
    let (store, world) = (MemoryStore::new(), World::default());
    let agent = agent().store(store.clone());
    let (state, kinds) = in_a_process(async {
        let run = agent.run(Order::update(), slots(&world)).session("order-7").input_id("in-1");
        let Outcome::Interrupted(waiting) = run.await.unwrap() else { panic!() };
        let yes = waiting.pending::<Send>().unwrap().answer(true).by("sam");
        let ended = agent.resume("order-7", yes, slots(&world)).await.unwrap().ended().unwrap();
        let log = log(&store, "order-7").await;
        (ended.state, log.iter().map(|entry| kind(&entry.to_string())).collect())
    });
    (state, world, kinds)
}

#[test]
fn a_session_on_an_engine_is_the_session_on_a_store() {
    let (expected, there, kinds) = on_a_store();
    let (world, first, second) = (World::default(), Toy::default(), Toy::default());
    let (yes, checkpoint) = asked(starts(&world, &first).unwrap());
    assert_eq!(ended(resumes(&world, &second, &checkpoint, yes).unwrap()), expected);
    assert_eq!(world.counts(), there.counts());
    assert_eq!([first.kinds(), second.kinds()].concat(), kinds);
}

#[test]
fn a_replay_runs_no_code_of_the_loop() {
    let (world, first, second) = (World::default(), Toy::default(), Toy::default());
    let (yes, checkpoint) = asked(starts(&world, &first).unwrap());
    let state = ended(resumes(&world, &second, &checkpoint, yes.clone()).unwrap());
    let (entered, lengths) =
        (world.entered.load(Ordering::Relaxed), (first.length(), second.length()));
    let (_, again) = asked(starts(&world, &first).unwrap());
    assert_eq!(again, checkpoint);
    assert_eq!(ended(resumes(&world, &second, &checkpoint, yes).unwrap()), state);
    assert_eq!(world.entered.load(Ordering::Relaxed), entered);
    assert_eq!((first.length(), second.length()), lengths);
}

#[test]
fn a_process_that_dies_at_any_piece_of_work_repeats_only_what_has_no_result() {
    let (expected, there, _) = on_a_store();
    let (whole_first, whole_second) = (Toy::default(), Toy::default());
    let (yes, checkpoint) = asked(starts(&World::default(), &whole_first).unwrap());
    ended(resumes(&World::default(), &whole_second, &checkpoint, yes).unwrap());
    let deaths = |length: u64| {
        (1..=length).flat_map(|n| [Death::Before(n), Death::After(n), Death::Journalled(n)])
    };
    for death in deaths(whole_first.length()) {
        let (world, first, second) = (World::default(), Toy::default(), Toy::default());
        let died = starts(&world, &first.dies(death));
        assert!(matches!(died, Err(HostError::Engine { .. })), "{death:?}");
        let (yes, checkpoint) = asked(starts(&world, &first.lives()).unwrap());
        let state = ended(resumes(&world, &second, &checkpoint, yes).unwrap());
        same(&state, &expected, &world, &there, death);
    }
    for death in deaths(whole_second.length()) {
        let (world, first, second) = (World::default(), Toy::default(), Toy::default());
        let (yes, checkpoint) = asked(starts(&world, &first).unwrap());
        let died = resumes(&world, &second.dies(death), &checkpoint, yes.clone());
        assert!(matches!(died, Err(HostError::Engine { .. })), "{death:?}");
        let state = ended(resumes(&world, &second.lives(), &checkpoint, yes).unwrap());
        same(&state, &expected, &world, &there, death);
    }
}

/// The state is that of a run without a death. Effects are made again only if the process died after
/// they were made and before their results were journalled.
fn same(state: &Order, expected: &Order, world: &World, there: &World, death: Death) {
    assert_eq!(state, expected, "{death:?}");
    let (counts, once) = (world.counts(), there.counts());
    assert_eq!(counts.keys().collect::<Vec<_>>(), once.keys().collect::<Vec<_>>(), "{death:?}");
    let again: u32 = counts.values().sum::<u32>() - once.values().sum::<u32>();
    // Items are at work side by side: all three have acted when the first one has a result.
    let most = if matches!(death, Death::Journalled(_) | Death::After(_)) { 3 } else { 2 };
    assert!(again <= most, "{death:?}: {counts:?}");
}

#[test]
fn an_invocation_that_is_bounded_is_continued_by_others() {
    let (expected, there, _) = on_a_store();
    for most in 1..=6 {
        let world = World::default();
        let bounded = |checkpoint: Option<&str>| invocation(checkpoint).at_most(most);
        let toy = Toy::default();
        let begin = bounded(None).run(&toy, "in-1", Order::update(), slots(&world));
        let mut turn = in_a_process(begin).unwrap_or_else(|e| panic!("{most}: {e}"));
        let mut invocations = 1;
        let state = loop {
            let (answers, checkpoint) = match turn {
                Turn::Unfinished { checkpoint } => (Answers::none(), json(&checkpoint)),
                Turn::Settled { outcome: Outcome::Ended(it), .. } => break it.state,
                other => asked(other),
            };
            let toy = Toy::default();
            let next = bounded(Some(&checkpoint)).resume(&toy, answers, slots(&world));
            turn = in_a_process(next).unwrap_or_else(|e| panic!("{most}: {e}"));
            invocations += 1;
            assert!(invocations < 30, "{most}");
        };
        assert_eq!(state, expected, "{most}");
        assert_eq!(world.counts(), there.counts(), "{most}");
        assert!(invocations > 2 || most > 4, "{most}: {invocations}");
    }
}

#[test]
fn a_refusal_leaves_the_session_as_it_was() {
    let (world, first) = (World::default(), Toy::default());
    let (_, checkpoint) = asked(starts(&world, &first).unwrap());
    let toy = Toy::default();
    let again = invocation(Some(&checkpoint)).run(&toy, "in-2", Order::update(), slots(&world));
    let Err(HostError::Run(refused)) = in_a_process(again) else { panic!() };
    assert!(refused.to_string().contains("waits for answers"), "{refused}");
    // Nothing is journalled of it but that it is over, so the next replay asks again.
    let toy = Toy::default();
    for _ in 0..2 {
        let wrong = Answers::json("int-none", true.into());
        assert!(matches!(resumes(&world, &toy, &checkpoint, wrong), Err(HostError::Run(_))));
    }
}

#[test]
fn results_that_are_no_writes_are_reported() {
    let toy = Toy::default();
    toy.journal.lock().unwrap().push(b"{}".to_vec());
    let Err(error) = starts(&World::default(), &toy) else { panic!() };
    assert!(matches!(error, HostError::Journal { number: 1, .. }), "{error}");
}
