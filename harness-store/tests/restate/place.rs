//! A place for the sessions of one test: services of its own, on the server of all tests.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::Sessions;
use harness::inspect::{Phase, Status};
use harness::prelude::*;
use harness_store::restate::{RestateService, RestateStore};
use tokio::sync::oneshot;

/// The addresses of a server.
#[derive(Clone)]
pub(crate) struct Addresses {
    pub(crate) ingress: String,
    pub(crate) admin: String,
}

impl Addresses {
    pub(crate) fn shared() -> Self {
        let at = |name| std::env::var(name).unwrap_or_else(|_| panic!("`{name}` is not set"));
        Self { ingress: at("HARNESS_RESTATE_INGRESS"), admin: at("HARNESS_RESTATE_ADMIN") }
    }

    pub(crate) fn sessions<C: Context, S: State>(&self, agent: &Agent<C, S>) -> RestateStore {
        RestateStore::new(agent.id(), &self.ingress, &self.admin).unwrap()
    }
}

/// A name that no other test has, also if the server is that of an earlier run.
pub(crate) fn name(of: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{of}-{}-{}", since.as_micros(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A service in this process. It ends when it is dropped.
pub(crate) struct Running {
    _stop: oneshot::Sender<()>,
}

/// Runs a service, and makes it known to the server.
pub(crate) async fn run(service: RestateService, sessions: &RestateStore) -> Running {
    let listener = service.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.address();
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(listener.run_until(stopped));
    sessions.register(&format!("http://{address}")).await.unwrap();
    Running { _stop: stop }
}

/// Waits until a session is as it should be.
pub(crate) async fn until(
    store: &RestateStore,
    session: &str,
    is: impl Fn(&Status) -> bool,
) -> Status {
    let sessions = Sessions::new(store.clone());
    let wait = async {
        loop {
            match sessions.status(session).await {
                Ok(status) if is(&status) => break status,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    match tokio::time::timeout(Duration::from_secs(60), wait).await {
        Ok(status) => status,
        Err(_) => panic!(
            "`{session}` stays {:?}, {:?}",
            sessions.status(session).await,
            store.troubles(session).await
        ),
    }
}

pub(crate) async fn rests(store: &RestateStore, session: &str, phase: Phase) -> Status {
    until(store, session, |status| status.phase == phase).await
}
