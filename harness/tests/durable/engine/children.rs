//! Children on an engine: sessions of their own, which other invocations run, and processes that die at
//! any call of the engine.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use harness::SessionId;
use harness::engine::{
    Checkpoint, ChildStart, Delivery, Engine, EngineError, HostError, Invocation, Turn, Work,
};
use harness::id::AgentId;
use harness::prelude::*;
use harness::store::{MemoryStore, Phase};

use super::in_a_process;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Part {
    number: u32,
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Whole {
    #[state(reduce = append)]
    parts: Vec<u32>,
    failed: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Work,
}

/// What the children have done to the world.
#[derive(Clone, Default)]
struct World(Arc<Mutex<Vec<u32>>>);

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    world: World,
}

fn child(world: &World) -> Agent<Ctx, Part> {
    Harness::<Ctx, Part>::builder("part")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define
                .run(|part: View<Part>, cx: Cx<Ctx>| async move {
                    let (world, number) = (cx.world.clone(), part.number);
                    let make = async move || {
                        world.0.lock().unwrap().push(number);
                        Ok(number * 10)
                    };
                    let made = cx.once("make", make).await?;
                    if number == 7 {
                        return Err(StepError::fatal("there is no seventh part"));
                    }
                    Ok(Part::update().number(made))
                })
                .end(),
        })
        .build()
        .unwrap()
        .agent("part", Ctx::required().world(world.clone()).build())
}

fn parent(child: &Agent<Ctx, Part>) -> Agent<(), Whole> {
    let child = child.clone();
    Harness::<(), Whole>::builder("whole")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => {
                let child = child.clone();
                define
                    .run(move |_, cx: Cx<()>| {
                        let child = child.clone();
                        async move {
                            let part = |number: u32| {
                                cx.call(&child, Part::update().number(number), ())
                                    .key(number.to_string())
                            };
                            let (one, two) = tokio::join!(part(1), part(2));
                            let three = part(3).await?.state.number;
                            let failed =
                                part(7).await.map_or_else(|it| it.to_string(), |_| String::new());
                            let parts = [one?.state.number, two?.state.number, three];
                            Ok(Whole::update().parts(parts).failed(failed))
                        }
                    })
                    .end()
            }
        })
        .build()
        .unwrap()
        .agent("whole", ())
}

/// A call of one invocation: a result, or a delivery.
#[derive(Clone)]
enum Call {
    Result(Vec<u8>),
    Delivered,
}

/// An engine in memory: sessions, and what they have for one another.
#[derive(Clone, Default)]
struct House {
    queue: Arc<Mutex<VecDeque<Delivery>>>,
    /// The calls of the invocation at work.
    journal: Arc<Mutex<Vec<Call>>>,
    /// The call in all at which the process dies, after it was journalled or before.
    death: Option<(usize, bool)>,
    calls: Arc<Mutex<usize>>,
}

/// One attempt of an invocation.
struct Attempt {
    house: House,
    at: Mutex<usize>,
}

impl Attempt {
    /// The next call, if the journal has it.
    fn replayed(&self) -> Option<Call> {
        let mut at = self.at.lock().unwrap();
        *at += 1;
        self.house.journal.lock().unwrap().get(*at - 1).cloned()
    }

    fn dies(&self, journalled: bool) -> Result<(), EngineError> {
        let mut calls = self.house.calls.lock().unwrap();
        *calls += usize::from(!journalled);
        match self.house.death == Some((*calls, journalled)) {
            true => {
                // No other process dies here.
                *calls += 1000;
                Err("died".into())
            }
            false => Ok(()),
        }
    }
}

#[harness::async_trait]
impl Engine for Attempt {
    async fn run(&self, _number: u64, work: Work) -> Result<Vec<u8>, EngineError> {
        if let Some(Call::Result(result)) = self.replayed() {
            return Ok(result);
        }
        self.dies(false)?;
        let result = work.await;
        self.house.journal.lock().unwrap().push(Call::Result(result.clone()));
        self.dies(true)?;
        Ok(result)
    }

    fn delivers(&self) -> bool {
        true
    }

    async fn deliver(&self, delivery: Delivery) -> Result<(), EngineError> {
        if let Some(Call::Delivered) = self.replayed() {
            return Ok(());
        }
        self.dies(false)?;
        self.house.queue.lock().unwrap().push_back(delivery);
        self.house.journal.lock().unwrap().push(Call::Delivered);
        self.dies(true)
    }
}

impl House {
    /// Runs an invocation to its end, in as many processes as it takes.
    fn invoke<S: State>(
        &self,
        attempt: impl Fn(&Attempt) -> Result<Turn<S>, HostError>,
    ) -> (Checkpoint, Phase) {
        self.journal.lock().unwrap().clear();
        loop {
            match attempt(&Attempt { house: self.clone(), at: Mutex::new(0) }) {
                Ok(Turn::Settled { checkpoint, .. } | Turn::Unfinished { checkpoint }) => {
                    let phase = checkpoint.summary().phase;
                    // Only JSON comes to the next invocation.
                    let json = serde_json::to_string(&checkpoint).unwrap();
                    break (serde_json::from_str(&json).unwrap(), phase);
                }
                Err(HostError::Engine { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Runs the parent and its children until nothing is left to do.
    fn story(&self, world: &World) -> Whole {
        let (part, mut kept) = (child(world), BTreeMap::<SessionId, Checkpoint>::new());
        let whole = parent(&part);
        let id = SessionId::new("w").unwrap();
        let begin = |engine: &Attempt| {
            in_a_process(Invocation::new(&whole, "w").run(engine, "in", Whole::update(), ()))
        };
        let (checkpoint, phase) = self.invoke(begin);
        assert_eq!(phase, Phase::Waiting);
        kept.insert(id.clone(), checkpoint);
        loop {
            let Some(next) = self.queue.lock().unwrap().pop_front() else { break };
            match next {
                Delivery::Start(start) => self.start(&part, start, &mut kept),
                Delivery::Over(over) => {
                    assert_eq!(
                        (&over.parent.agent, &over.parent.session),
                        (&AgentId::new("whole"), &id)
                    );
                    let before = kept.remove(&id).unwrap();
                    let taken = in_a_process(before.child_over(&id, over)).unwrap();
                    let work = |engine: &Attempt| {
                        let invocation = Invocation::new(&whole, "w").checkpoint(taken.clone());
                        in_a_process(invocation.work(engine, ()))
                    };
                    kept.insert(id.clone(), self.invoke(work).0);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(kept.len(), 5, "each child is one session");
        let store = kept.remove(&id).unwrap().into_store(&id);
        let state = in_a_process(async { harness::Sessions::new(store).state("w").await.unwrap() });
        serde_json::from_value(state).unwrap()
    }

    fn start(
        &self,
        part: &Agent<Ctx, Part>,
        start: ChildStart,
        kept: &mut BTreeMap<SessionId, Checkpoint>,
    ) {
        if let Some(before) = kept.get(&start.session) {
            // It was started before.
            if let Some(over) = before.as_over(&start.session) {
                self.queue.lock().unwrap().push_back(Delivery::Over(over));
            }
            return;
        }
        let (session, text) = (start.session.clone(), start.session.to_string());
        let run = |engine: &Attempt| {
            in_a_process(Invocation::new(part, &*text).child(engine, start.clone(), ()))
        };
        kept.insert(session, self.invoke(run).0);
    }
}

#[test]
fn a_child_runs_once_wherever_a_process_dies() {
    let (world, house) = (World::default(), House::default());
    let expected = house.story(&world);
    assert_eq!(expected.parts, [10, 20, 30]);
    assert!(expected.failed.contains("there is no seventh part"), "{}", expected.failed);
    let mut made = world.0.lock().unwrap().clone();
    made.sort_unstable();
    assert_eq!(made, [1, 2, 3, 7]);
    let calls = *house.calls.lock().unwrap();
    assert!(calls > 20, "{calls}");
    for death in (1..=calls).flat_map(|at| [(at, false), (at, true)]) {
        let (world, house) = (World::default(), House { death: Some(death), ..House::default() });
        let whole = house.story(&world);
        assert_eq!(whole.parts, expected.parts, "{death:?}");
        assert!(whole.failed.contains("there is no seventh part"), "{death:?}: {}", whole.failed);
        let mut made = world.0.lock().unwrap().clone();
        made.sort_unstable();
        // A process dies at a call, and not between an effect and its record.
        assert_eq!(made, [1, 2, 3, 7], "{death:?}");
    }
}

#[test]
fn on_a_store_the_same_comes_of_it() {
    let world = World::default();
    let state = in_a_process(async {
        let store = MemoryStore::new();
        let whole = parent(&child(&world)).store(store);
        whole.run(Whole::update(), ()).session("w").await.unwrap().ended().unwrap().state
    });
    let there = House::default().story(&World::default());
    // The session of the child that failed has another id.
    assert_eq!(state.parts, there.parts);
}

#[test]
fn what_stops_a_parent_stops_its_children() {
    let (world, house) = (World::default(), House::default());
    let whole = parent(&child(&world));
    let begin = |engine: &Attempt| {
        in_a_process(Invocation::new(&whole, "w").run(engine, "in", Whole::update(), ()))
    };
    let (waits, phase) = house.invoke(begin);
    assert_eq!(phase, Phase::Waiting);
    let started = |delivery: Delivery| match delivery {
        Delivery::Start(start) => start.session,
        other => panic!("{other:?}"),
    };
    let started: Vec<SessionId> = house.queue.lock().unwrap().drain(..).map(started).collect();
    assert!(!started.is_empty());
    for cancels in [false, true] {
        let stop = |engine: &Attempt| {
            let invocation = Invocation::new(&whole, "w").checkpoint(waits.clone());
            let invocation = invocation.on_begin(move |control| match cancels {
                true => control.cancel(),
                false => control.stop(),
            });
            in_a_process(invocation.resume(engine, Answers::none(), ()))
        };
        let (stopped, phase) = house.invoke(stop);
        assert_eq!(phase, Phase::Stopped);
        let mut stops = Vec::new();
        for delivery in house.queue.lock().unwrap().drain(..) {
            if let Delivery::Stop(child) = delivery {
                assert_eq!((child.agent.as_str(), child.cancel), ("part", cancels));
                stops.push(child.session);
            }
        }
        assert_eq!(stops, started);
        let id = SessionId::new("w").unwrap();
        let open = in_a_process(stopped.open_children(&id)).unwrap();
        assert_eq!(open.into_iter().map(|child| child.session).collect::<Vec<_>>(), started);
    }
}
