//! The process that runs the sessions: an HTTP endpoint that the engine calls.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::SessionId;
use harness::context::RuntimeSlots;
use harness::id::AgentId;
use harness::prelude::*;
use harness::worker::SlotsError;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::http_server::HttpServer;
use serde::de::DeserializeOwned;
use tokio::net::{TcpListener, TcpSocket};

use super::calls::Callable;
use super::object::Served;
use super::sdk::{Object, Treatment, definition};

/// How many writes one invocation makes, unless it is said otherwise.
const WRITES: u64 = 64;
/// How long a step may take.
const LONGEST_STEP: Duration = Duration::from_secs(24 * 60 * 60);
/// How long journals of invocations that are over are kept.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes an object, from the writes of one invocation and the agents that its steps can call.
type Make = Box<dyn FnOnce(u64, Arc<Callable>) -> Arc<dyn Object> + Send>;

/// Runs the sessions of agents for a Restate server. See the [module](super).
#[must_use = "a service does nothing until it listens"]
pub struct RestateService {
    served: Vec<(AgentId, Make)>,
    calls: Vec<AgentId>,
    writes: u64,
    treatment: Treatment,
    identity: Vec<String>,
}

impl Default for RestateService {
    fn default() -> Self {
        let treatment = Treatment { longest_step: LONGEST_STEP, retention: RETENTION };
        let (served, calls, identity) = (Vec::new(), Vec::new(), Vec::new());
        Self { served, calls, writes: WRITES, treatment, identity }
    }
}

impl RestateService {
    /// A service of no agent yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves an agent: its sessions are virtual objects of the agent's id. `slots` makes the runtime
    /// slots of an invocation (`()` if the context has none); the engine repeats an invocation for
    /// which it fails. The agent's own store, if it has one, is not used.
    pub fn serve<C, S, R, F, Fut>(mut self, agent: &Agent<C, S>, slots: F) -> Self
    where
        C: Context,
        S: State,
        S::Update: DeserializeOwned,
        R: RuntimeSlots<C>,
        F: Fn(SessionId) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, SlotsError>> + Send + 'static,
    {
        let (id, agent) = (agent.id().clone(), agent.clone());
        let make = move |at_most, callable| {
            let slots = Box::new(move |session| {
                let making = slots(session);
                let filled = async move { Ok(making.await?.filled()) };
                Box::pin(filled) as futures_util::future::BoxFuture<'static, _>
            });
            let runs = Mutex::new(HashMap::new());
            Arc::new(Served { agent, slots, at_most, callable, runs }) as Arc<dyn Object>
        };
        self.served.push((id, Box::new(make)));
        self
    }

    /// Lets steps of these agents [call](harness::Cx::call) another one though it has runtime slots, or
    /// though another service of the server serves it: a child gets the slots that the service of its
    /// agent makes, and not those of the call. Without this, such a call
    /// [is refused](harness::run::CallError::is_refused).
    pub fn calls(mut self, agent: &AgentId) -> Self {
        self.calls.push(agent.clone());
        self
    }

    /// Bounds an invocation: after so many writes the turn continues in another one. An invocation is
    /// replayed from its beginning, so more writes make recovery slower, and fewer make more
    /// invocations. The default is 64.
    pub fn writes_per_invocation(mut self, writes: u64) -> Self {
        self.writes = writes.max(1);
        self
    }

    /// How long a step may take before the server gives up on this process, and repeats what is not
    /// journalled. The default is a day.
    pub fn longest_step(mut self, longest: Duration) -> Self {
        self.treatment.longest_step = longest;
        self
    }

    /// How long the server keeps the journal and the result of an invocation that is over: so long a
    /// request with the same idempotency key is not a second one. The default is a day.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.treatment.retention = retention;
        self
    }

    /// Takes requests only from the server that has this key (`publickeyv1_..`), which the server
    /// signs them with. Without a key, whatever reaches the address can invoke the service.
    pub fn identity_key(mut self, key: impl Into<String>) -> Self {
        self.identity.push(key.into());
        self
    }

    /// Listens on an address, which the server must reach: `127.0.0.1:0` for a server on the same
    /// machine, on a free port.
    ///
    /// # Errors
    /// It serves no agent, two of one id, or one whose id is no name of a service; a key is invalid;
    /// the address cannot be listened on.
    pub async fn listen(self, address: SocketAddr) -> Result<RestateListener, ServiceError> {
        if self.served.is_empty() {
            return Err(ServiceError::NoAgent);
        }
        let mut endpoint = Endpoint::builder();
        let mut names: Vec<AgentId> = Vec::new();
        let served = self.served.iter().map(|(agent, _)| agent.clone()).collect();
        let callable = Arc::new(Callable { served, declared: self.calls });
        for (agent, make) in self.served {
            if names.contains(&agent) {
                return Err(ServiceError::ServedTwice { agent });
            }
            let object = make(self.writes, Arc::clone(&callable));
            let Some(definition) = definition(agent.as_str(), object, &self.treatment) else {
                return Err(ServiceError::InvalidName { agent });
            };
            endpoint = endpoint.bind(definition);
            names.push(agent);
        }
        for key in &self.identity {
            endpoint = endpoint.identity_key(key).map_err(|_| ServiceError::InvalidKey)?;
        }
        let listener =
            listen(address).map_err(|source| ServiceError::Listen { address, source })?;
        let address =
            listener.local_addr().map_err(|source| ServiceError::Listen { address, source })?;
        Ok(RestateListener { endpoint: endpoint.build(), listener, address })
    }
}

/// A connection that is accepted has the options of its listener. Without this one, a result of some
/// ten kilobytes waits for 40 milliseconds.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_nodelay(true)?;
    socket.bind(address)?;
    socket.listen(1024)
}

impl fmt::Debug for RestateService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<_> = self.served.iter().map(|(agent, _)| agent).collect();
        f.debug_struct("RestateService")
            .field("agents", &agents)
            .field("writes", &self.writes)
            .finish_non_exhaustive()
    }
}

/// A service that listens and does not work yet.
#[must_use = "a listener does nothing until it runs"]
pub struct RestateListener {
    endpoint: Endpoint,
    listener: TcpListener,
    address: SocketAddr,
}

impl RestateListener {
    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Works until `signal`, then lets the invocations at work come to their next write for up to ten
    /// seconds. The server repeats elsewhere what is at work then.
    pub async fn run_until(self, signal: impl Future) {
        HttpServer::new(self.endpoint).serve_with_cancel(self.listener, signal).await;
    }
}

impl fmt::Debug for RestateListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestateListener").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Why a service does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// It serves no agent.
    #[error("the service serves no agent (add `.serve(&agent, ..)`)")]
    NoAgent,
    /// Two agents have one id.
    #[error("agent `{agent}` is served twice (serve each agent once)")]
    ServedTwice {
        /// The agent.
        agent: AgentId,
    },
    /// An id of an agent cannot be a name of a service.
    #[error(
        "agent `{agent}` cannot be a service of Restate (its id must match \
         `[a-zA-Z][a-zA-Z0-9._-]*`)"
    )]
    InvalidName {
        /// The agent.
        agent: AgentId,
    },
    /// A key is not one of a server.
    #[error("an identity key is not one of a server (it begins with `publickeyv1_`)")]
    InvalidKey,
    /// The address cannot be listened on.
    #[error("failed to listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system answers.
        source: std::io::Error,
    },
}
