//! Three worker processes share the sessions of one store. One is killed at work, and the others continue
//! its sessions: no order is lost, and none is shipped twice.
//!
//! ```text
//! cargo run -p examples --bin workers
//! cargo run -p examples --bin workers -- --store postgres://harness@localhost/orders
//! ```
//!
//! Needs no network. Without `--store` the sessions are in an SQLite database in a temporary directory.
//! The program starts itself as its own workers, checks what they did, and fails if anything is missing,
//! doubled or late.

mod parcels;
mod processes;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Parser, value_parser};
use harness::prelude::*;
use harness::run::Queued;
use harness::worker::Worker;
use harness::{Agent, BuildError};
use tokio::time::timeout;

use parcels::Parcels;
use processes::{Processes, Report, SILENCE, dismissed, role, say};

/// A session stays claimed for so long by a process that does not renew its lease.
const LEASE: Duration = Duration::from_secs(2);
/// The sessions of a killed worker continue within a lease and two seconds.
const LATEST: Duration = Duration::from_secs(4);
const WORKERS: usize = 3;
/// How many orders a worker has in flight at most.
const ROOM: usize = 4;
const PACKING: Duration = Duration::from_millis(300);

/// What workers report of an order.
const BEGUN: &str = "begun";
const SHIPPED: &str = "shipped";

#[derive(Parser)]
#[command(about = "Kills one of three workers at work, and shows that nothing is lost")]
struct Options {
    /// Where the sessions are: `sqlite:FILE`, `file:DIR`, `postgres://..`, `redis://..`
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How many orders there are
    #[arg(long, value_name = "COUNT", default_value_t = 40, value_parser = value_parser!(u32).range(40..))]
    orders: u32,
}

/// The state of a session: an order.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Order {
    /// The worker that shipped it.
    shipped_by: Option<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Pack,
    Ship,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    parcels: Parcels,
}

async fn pack(_: View<Order>, cx: Cx<Ctx>) -> StepResult<Order> {
    say(BEGUN, cx.session_id());
    tokio::time::sleep(PACKING).await;
    Ok(Order::update())
}

/// Ships the order once. A process may be killed after the parcel has left and before the store knows of
/// it: then the next run looks for the parcel.
async fn ship(_: View<Order>, cx: Cx<Ctx>) -> StepResult<Order> {
    let (order, parcels) = (cx.session_id().clone(), cx.parcels.clone());
    let (same_order, same_parcels) = (order.clone(), parcels.clone());
    let worker = cx
        .once("ship", async move || Ok(parcels.ship(&order).await?))
        .at_most_once()
        .probe(async move || Ok(same_parcels.find(&same_order).await?))
        .await?;
    say(SHIPPED, cx.session_id());
    Ok(Order::update().shipped_by(Some(worker)))
}

fn orders() -> Result<Harness<Ctx, Order>, BuildError> {
    Harness::builder("orders")
        .start(Step::Pack)
        .steps(|define, step| match step {
            Step::Pack => define.run(pack).then(Step::Ship),
            Step::Ship => define.run(ship).end(),
        })
        .build()
}

async fn agent(store: &str) -> Result<Agent<Ctx, Order>, Box<dyn Error>> {
    let store = harness_store::open(store).await?;
    Ok(orders()?.agent("orders", ()).shared_store(store).lease(LEASE))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match role() {
        Some((store, parcels)) => work(&store, parcels).await,
        None => demonstrate(Options::parse()).await,
    }
}

/// What each worker process does.
async fn work(store: &str, parcels: Parcels) -> Result<(), Box<dyn Error>> {
    let slots = move |_session| {
        let slots = Ctx::runtime().parcels(parcels.clone()).build();
        async { Ok(slots) }
    };
    let worker = Worker::new().at_most(ROOM).serve(&agent(store).await?, slots);
    // The orders in flight are finished first.
    Ok(worker.run_until(dismissed()).await?)
}

/// Queues the orders, starts the workers, kills one, and checks what became of the orders.
async fn demonstrate(options: Options) -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let sqlite = || format!("sqlite:{}", dir.path().join("orders.db").display());
    let store = options.store.unwrap_or_else(sqlite);
    // Not all of the URL, which may have a password.
    let kind = store.split(':').next().unwrap_or_default();
    if kind == "memory" {
        return Err("processes cannot share a store in memory (give another URL)".into());
    }
    let parcels = Parcels::new(dir.path().join("parcels.txt"), "");

    let queued = queue(&agent(&store).await?, options.orders).await?;
    println!("{} orders are queued ({kind})", queued.len());
    let mut workers = Processes::start(WORKERS, &store, &parcels)?;
    println!("{WORKERS} workers are started, each with room for {ROOM} orders");
    kill_one(&mut workers).await?;
    let mut shipped = BTreeMap::<String, usize>::new();
    for queued in &queued {
        let order = timeout(SILENCE, queued.outcome()).await??.ended()?.state;
        *shipped.entry(order.shipped_by.unwrap_or_default()).or_default() += 1;
    }
    workers.dismiss().await?;

    parcels.check(queued.iter().map(|queued| &queued.session)).await?;
    for (worker, orders) in &shipped {
        println!("{worker} has shipped {orders}");
    }
    println!("nothing is lost: {} orders were queued, and each was shipped once", queued.len());
    Ok(())
}

async fn queue(
    agent: &Agent<Ctx, Order>,
    orders: u32,
) -> Result<Vec<Queued<Order>>, Box<dyn Error>> {
    // Those of an earlier run may be in the store.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let mut queued = Vec::new();
    for order in 1..=orders {
        queued.push(agent.enqueue(format!("{now}-{order}"), Order::update()).await?);
    }
    Ok(queued)
}

/// Kills the first worker that is busy and has shipped something, and waits until others continue what it
/// had in flight.
async fn kill_one(workers: &mut Processes) -> Result<(), Box<dyn Error>> {
    let mut in_flight = BTreeMap::<usize, BTreeSet<String>>::new();
    let mut has_shipped = BTreeSet::new();
    let victim = loop {
        let Report { worker, said } = workers.next().await?;
        let (what, order) = said.ok_or_else(|| format!("worker {worker} has ended by itself"))?;
        let its = in_flight.entry(worker).or_default();
        if what == SHIPPED {
            its.remove(&order);
            has_shipped.insert(worker);
        } else {
            its.insert(order);
        }
        if its.len() == ROOM && has_shipped.contains(&worker) {
            break worker;
        }
    };
    workers.kill(victim).await?;
    let killed = Instant::now();

    let mut left = in_flight.remove(&victim).unwrap_or_default();
    let (mut elsewhere, mut gone) = (BTreeSet::new(), false);
    while !gone || !left.is_subset(&elsewhere) {
        match workers.next().await? {
            // It has said this before it was killed.
            Report { worker, said: Some((what, order)) } if worker == victim => match &*what {
                SHIPPED => drop(left.remove(&order)),
                _ => drop(left.insert(order)),
            },
            Report { worker, said: None } if worker == victim => gone = true,
            Report { said: Some((_, order)), .. } => drop(elsewhere.insert(order)),
            Report { worker, said: None } => {
                return Err(format!("worker {worker} has ended by itself").into());
            }
        }
    }
    let took = killed.elapsed();
    println!("worker {victim} was killed with {} orders in flight", left.len());
    println!("the others continued them within {took:.1?} (a lease lasts {LEASE:?})");
    match took <= LATEST {
        true => Ok(()),
        false => Err(format!("it took {took:.1?}, longer than {LATEST:?}").into()),
    }
}
