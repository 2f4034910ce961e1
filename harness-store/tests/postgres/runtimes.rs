//! Runs whose runtime ends while they wait for the server: connections and timers of a runtime end with
//! it, and the process lives.

use std::time::{Duration, Instant};

use harness::prelude::*;
use harness::store::SessionStore as _;
use tokio::runtime::{Builder, Runtime};

use crate::place::{Place, append, claim, page};
use crate::support::id;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Doc {
    lines: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Count,
    Wait,
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    at_work: tokio::sync::mpsc::UnboundedSender<()>,
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn harness() -> Harness<Ctx, Doc> {
    Harness::<Ctx, Doc>::builder("runtimes")
        .start(Step::Count)
        .steps(|define, step| match step {
            Step::Count => define.run(|_, _| async { Ok(Doc::update().lines(1)) }).then(Step::Wait),
            Step::Wait => define
                .run(|_, cx: Cx<Ctx>| async move {
                    let _ = cx.at_work.send(());
                    std::future::pending().await
                })
                .end(),
        })
        .build()
        .unwrap()
}

/// The run waits for the only connection of its store, which another runtime has. Its lease lasts ten
/// minutes.
#[test]
fn a_session_is_free_though_the_runtime_of_its_run_ends_while_it_is_released() {
    for stops in [true, false] {
        let (own, other) = (runtime(), runtime());
        let (said, mut at_work) = tokio::sync::mpsc::unbounded_channel();
        let (place, store, gate) = own.block_on(async {
            let place = Place::new(&format!("runtimes_{stops}")).await;
            let one = place.options().max_connections(1);
            let store = one.connect(&place.clone().named("of_the_run").url).await.unwrap();
            let gate = claim(&store, &id("gate")).await;
            (place, store, gate)
        });
        let run = {
            let _entered = other.enter();
            let agent = harness().agent("a", Ctx::required().at_work(said).build());
            let agent = agent.store(store.clone()).lease(Duration::from_secs(600));
            agent.run(Doc::update(), ()).session("s").start()
        };
        own.block_on(at_work.recv()).unwrap();
        let holder = own.block_on(async {
            let (holder, server) = (place.raw().await, place.raw().await);
            let hold = "BEGIN; SELECT FROM session WHERE id = 'gate' FOR UPDATE";
            holder.batch_execute(hold).await.unwrap();
            tokio::spawn(async move { append(&store, &gate, 0, b"one").await });
            let waits = "SELECT FROM pg_stat_activity
                         WHERE application_name = 'of_the_run' AND wait_event_type = 'Lock'";
            while server.query(waits, &[]).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            match stops {
                true => run.cancel(),
                false => drop(run),
            }
            // Its only thread has come to the run by then.
            for _ in 0..100 {
                other.spawn(tokio::task::yield_now()).await.unwrap();
            }
            holder
        });
        drop(other);
        own.block_on(async {
            holder.batch_execute("ROLLBACK").await.unwrap();
            let (store, begun) = (place.open().await, Instant::now());
            while let Err(error) = store.claim(&id("s"), Duration::from_secs(600)).await {
                assert!(begun.elapsed() < Duration::from_secs(30), "stops: {stops}, {error}");
                tokio::task::yield_now().await;
            }
            let log = page(&store, &id("s")).await;
            let last = log.entries.last().map(|it| String::from_utf8_lossy(&it.bytes).into_owned());
            assert!(
                last.as_deref().is_some_and(|it| it.contains("cancelled")),
                "{stops}: {last:?}"
            );
        });
    }
}
