//! A cluster of three nodes, each of which is killed while sessions work.

use std::collections::BTreeSet;
use std::time::Duration;

use harness::Sessions;
use harness::inspect::Phase;
use harness::prelude::*;
use harness_store::restate::{RestateService, RestateStore};
use tokio::sync::{mpsc, watch};

use crate::orders::{Order, World, agent, effects, expected, slots};
use crate::place::{name, run};
use crate::server::Cluster;

const SESSIONS: usize = 6;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    done: bool,
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    world: World,
    #[slot(required)]
    entered: mpsc::UnboundedSender<String>,
    #[slot(required)]
    open: watch::Receiver<bool>,
}

/// An effect whose result is journalled, and work after it that waits while its gate is closed. An
/// attempt of a dead node or a repeated one passes as well: the gate does not count.
fn working(
    name: &str,
    world: &World,
) -> (Agent<Ctx, Doc>, mpsc::UnboundedReceiver<String>, watch::Sender<bool>) {
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Work,
    }
    let harness = Harness::<Ctx, Doc>::builder("work")
        .start(Step::Work)
        .steps(|define, step| match step {
            Step::Work => define
                .run(|_, cx: Cx<Ctx>| async move {
                    let (world, session) = (cx.world.clone(), cx.session_id().to_string());
                    let pay = async move || {
                        world.act(&session);
                        Ok(())
                    };
                    cx.once("pay", pay).await?;
                    cx.entered.send(cx.session_id().to_string())?;
                    cx.open.clone().wait_for(|open| *open).await?;
                    Ok(Doc::update().done(true))
                })
                .end(),
        })
        .build()
        .unwrap();
    let (entered, receiver) = mpsc::unbounded_channel();
    let (gate, open) = watch::channel(false);
    let slots = Ctx::required().world(world.clone()).entered(entered).open(open).build();
    (harness.agent(name, slots), receiver, gate)
}

async fn ended(store: &RestateStore, session: &str) {
    let sessions = Sessions::new(store.clone());
    let wait = async {
        while !sessions.status(session).await.is_ok_and(|it| it.phase == Phase::Ended) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(90), wait).await;
    if waited.is_err() {
        let status = sessions.status(session).await;
        panic!("`{session}` did not end: {status:?}, {:?}", store.troubles(session).await);
    }
}

/// The sessions of a round that have paid, once for each time, in alphabetical order.
fn of_round(paid: &World, round: &str) -> Vec<String> {
    let mut lines: Vec<_> =
        paid.lines().into_iter().filter(|line| line.starts_with(round)).collect();
    lines.sort();
    lines
}

/// How often the effects of an order before its question were made.
fn of_orders(world: &World) -> [usize; 2] {
    let lines = world.lines();
    ["reserve", "pay"].map(|effect| lines.iter().filter(|line| *line == effect).count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_of_three_may_be_killed_and_sessions_continue() {
    let mut cluster = Cluster::start();
    let dir = tempfile::tempdir().unwrap();
    let (world, paid) =
        (World::new(dir.path().join("effects")), World::new(dir.path().join("paid")));
    let (orders, (work, mut entered, gate)) = (agent("orders"), working("work", &paid));
    let its = world.clone();
    let service = RestateService::new()
        .serve(&orders, move |_| {
            let slots = slots(&its);
            async move { Ok(slots) }
        })
        .serve(&work, |_| async { Ok(()) });
    let _running = run(service, &cluster.nodes[0].addresses().sessions(&orders)).await;

    // Each node leads some sessions, so the leader of each session is killed once.
    for node in 0..cluster.nodes.len() {
        let round = name(&format!("n{node}"));
        let there = cluster.nodes[node].addresses();
        let other = cluster.nodes[(node + 1) % 3].addresses();
        let names: Vec<_> = (0..SESSIONS).map(|at| format!("{round}-{at}")).collect();
        let (orders_there, work_there) = (there.sessions(&orders), there.sessions(&work));
        for session in &names {
            work_there.start(session, "in", &Doc::update()).await.unwrap();
            let asked = orders_there.run(session, "in", &Order::update()).await.unwrap();
            assert_eq!(asked.phase, Phase::Interrupted);
            // The node that is killed has accepted the answer.
            let asked = asked.interrupts[0].clone();
            orders_there.leave_answer(session, asked, true.into(), Some("sam")).await.unwrap();
        }
        // A cluster that starts moves its leaders, which repeats attempts: each name counts once.
        let mut missing: BTreeSet<_> = names.iter().cloned().collect();
        while !missing.is_empty() {
            missing.remove(&entered.recv().await.unwrap());
        }
        let journalled = (of_round(&paid, &round), of_orders(&world));
        let mut payers = journalled.0.clone();
        payers.dedup();
        assert_eq!(payers, names);
        cluster.nodes[node].kill();
        gate.send_replace(true);
        let (orders, work) = (other.sessions(&orders), other.sessions(&work));
        // An inspection waits until another node leads what this one led.
        Sessions::new(orders.clone()).pending_interrupts().await.unwrap();
        for session in &names {
            ended(&orders, session).await;
            ended(&work, session).await;
            let state = Sessions::new(orders.clone()).state(session).await.unwrap();
            assert_eq!(state, serde_json::to_value(expected()).unwrap());
        }
        // What was journalled before is not made again.
        assert_eq!((of_round(&paid, &round), of_orders(&world)), journalled);
        gate.send_replace(false);
        while entered.try_recv().is_ok() {}
        cluster.nodes[node].restart();
    }
    // An effect in flight may be made again, none is left out.
    let lines = world.lines();
    for effect in effects() {
        let times = lines.iter().filter(|line| **line == effect).count();
        assert!(times >= 3 * SESSIONS, "{effect}: {times}");
    }
}
