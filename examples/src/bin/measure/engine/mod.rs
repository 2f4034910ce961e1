//! Sessions on a Restate server: a step beside the bare SDK that journals the same, and a turn with a
//! question beside one on PostgreSQL. The servers are those of `HARNESS_RESTATE_INGRESS` and
//! `HARNESS_RESTATE_ADMIN`, or are started from `HARNESS_RESTATE_BIN`.

mod bare;
mod nodes;
mod suspended;
mod turn;

use std::time::{SystemTime, UNIX_EPOCH};

use harness::engine::{Invocation, Turn};
use harness::id::AgentId;
use harness::prelude::*;
use harness_store::restate::{RestateService, RestateStore};
use restate_sdk::endpoint::Endpoint;
use restate_sdk::http_server::HttpServer;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

use super::growing::{self, Talk};
use super::{Figure, compare_waiting, failed};

pub(super) use suspended::suspended;
pub(super) use turn::turns;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn measured(case: &str, figures: Fallible<Vec<Figure>>) -> Vec<Figure> {
    let not = |error| {
        eprintln!("measure: {case}: {error}");
        vec![failed(case)]
    };
    figures.unwrap_or_else(not)
}

/// A name that no earlier measurement on the same server has used.
fn name(of: &str) -> Fallible<String> {
    Ok(format!("{of}-{}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros()))
}

/// Serves an agent from this process, as long as the runtime lives.
async fn serve<S: State>(
    agent: &Agent<(), S>,
    [ingress, admin]: &[String; 2],
) -> Fallible<RestateStore>
where
    S::Update: serde::de::DeserializeOwned,
{
    let store = RestateStore::new(agent.id(), ingress, admin)?;
    let service =
        RestateService::new().writes_per_invocation(10_000).serve(agent, |_| async { Ok(()) });
    let service = service.listen("127.0.0.1:0".parse()?).await?;
    let address = service.address();
    tokio::spawn(service.run_until(std::future::pending::<()>()));
    nodes::retried(async || Ok(store.register(&format!("http://{address}")).await?)).await?;
    Ok(store)
}

/// A run of a state that grows by a message of 200 bytes a step, in one invocation.
pub(super) fn step() -> Vec<Figure> {
    const STEPS: u64 = 100;
    let measure = || -> Fallible<Vec<Figure>> {
        let at = |name| std::env::var(name).map_err(|_| format!("`{name}` is not set"));
        let server = [at("HARNESS_RESTATE_INGRESS")?, at("HARNESS_RESTATE_ADMIN")?];
        let runtime = Runtime::new()?;
        let agent = growing::harness(STEPS)?.agent(&*name("growing")?, ());
        let ours = runtime.block_on(serve(&agent, &server))?;
        let floor = runtime.block_on(bare(&agent, &server))?;
        let session = std::cell::Cell::new(0_u64);
        let round = |store: &RestateStore| {
            let id = format!("s{}", session.replace(session.get() + 1));
            let settled = runtime.block_on(store.run(&id, "in", &Talk::update()));
            assert!(settled.as_ref().is_ok_and(|it| it.failure.is_none()), "{settled:?}");
        };
        let figure = compare_waiting(
            format!("engine-step/{STEPS}"),
            STEPS,
            || round(&ours),
            || round(&floor),
        );
        Ok(vec![figure])
    };
    measured("engine-step", measure())
}

/// The same by hand.
async fn bare(agent: &Agent<(), Talk>, server: &[String; 2]) -> Fallible<RestateStore> {
    let recorder = bare::Recorder::default();
    let turn = Invocation::new(agent, "s").run(&recorder, "in", Talk::update(), ()).await?;
    let Turn::Settled { checkpoint, .. } = turn else { return Err("it was not bounded".into()) };
    let endpoint = Endpoint::builder().bind(recorder.bare(&checkpoint).await?).build();
    let socket = TcpSocket::new_v4()?;
    // As ours: without it each large result waits.
    socket.set_nodelay(true)?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let listener = socket.listen(64)?;
    let address = listener.local_addr()?;
    tokio::spawn(
        HttpServer::new(endpoint).serve_with_cancel(listener, std::future::pending::<()>()),
    );
    let [ingress, admin] = server;
    let store = RestateStore::new(&AgentId::new(bare::NAME), ingress, admin)?;
    store.register(&format!("http://{address}")).await?;
    Ok(store)
}
