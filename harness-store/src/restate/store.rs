//! The sessions of a service, from outside of it.

use std::fmt;
use std::time::Duration;

use harness::id::{AgentId, InterruptId};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::{Http, RestateError, quoted};
use super::record::{Given, Resume, Settled, Signal, Start, Stopped};
use super::sdk::Task;

/// How long to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The sessions of an agent that a [`RestateService`](super::RestateService) runs: starts, answers,
/// stops and inspects them, from any process that reaches the server.
///
/// As a [`SessionStore`](harness::store::SessionStore) it can be inspected and answered, by [`Sessions`](harness::Sessions) and by
/// everything that is made for it; no process can run a session in it, because the server does.
#[derive(Clone)]
pub struct RestateStore {
    pub(super) http: Http,
    pub(super) agent: AgentId,
}

/// What the server has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Accepted {
    /// The id of the invocation.
    #[serde(rename = "invocationId")]
    pub invocation: String,
}

/// An invocation that the server could not finish so far, and tries again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trouble {
    /// Its id.
    pub invocation: String,
    /// Whether the server has given up until someone resumes the invocation.
    pub paused: bool,
    /// What happened.
    pub failure: String,
}

impl RestateStore {
    /// The sessions of an agent on a server, by the addresses of its ingress (port 8080 by default)
    /// and of its admin interface (port 9070), which inspection needs.
    ///
    /// # Errors
    /// An address is not one.
    pub fn new(agent: &AgentId, ingress: &str, admin: &str) -> Result<Self, RestateError> {
        Ok(Self { http: Http::new(ingress, admin, TIMEOUT)?, agent: agent.clone() })
    }

    /// The sessions of an agent by one URL, `restate://HOST:PORT/AGENT`: the address of the ingress, and the
    /// agent. The admin interface is at port 9070 of the same host, or where `?admin=http://HOST:PORT` says.
    ///
    /// ```
    /// use harness_store::restate::RestateStore;
    ///
    /// let notices = RestateStore::from_url("restate://127.0.0.1:8080/notices")?;
    /// let behind = RestateStore::from_url("restate://balancer:8080/notices?admin=http://node-1:9070")?;
    /// # Ok::<(), harness_store::restate::RestateError>(())
    /// ```
    ///
    /// # Errors
    /// The URL is not one of these.
    pub fn from_url(url: &str) -> Result<Self, RestateError> {
        let wrong = || RestateError::Address { what: "the agent's sessions", port: 8080 };
        // Only of schemes that it knows does the parser say what the host is.
        let rest = url.strip_prefix("restate://").ok_or_else(wrong)?;
        let mut ingress = Url::parse(&format!("http://{rest}")).map_err(|_| wrong())?;
        let agent = AgentId::new(ingress.path().trim_matches('/'));
        if agent.as_str().is_empty() || agent.as_str().contains('/') {
            return Err(wrong());
        }
        let admin = ingress.query_pairs().find(|(name, _)| name == "admin");
        let admin = admin.map(|(_, admin)| admin.into_owned());
        ingress.set_path("");
        ingress.set_query(None);
        let admin = match admin {
            Some(admin) => admin,
            None => {
                let mut admin = ingress.clone();
                admin.set_port(Some(9070)).map_err(|()| wrong())?;
                admin.into()
            }
        };
        Self::new(&agent, ingress.as_str(), &admin)
    }

    /// The agent whose sessions these are.
    #[must_use]
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Makes a service known to the server, by an address that the server reaches. A new version of
    /// a program has an address of its own: the invocations at work stay with the old one until they
    /// are over, and all others come to the new one.
    ///
    /// # Errors
    /// The server does not reach the service, or refuses it.
    pub async fn register(&self, service: &str) -> Result<(), RestateError> {
        self.http.register(service).await
    }

    /// Starts a turn of a session, which is created if it does not exist, and does not wait for it. If
    /// the session is in a turn, the input waits for the end of it. `id` identifies the input: it
    /// applies once, however often it is sent.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn start(
        &self,
        session: &str,
        id: &str,
        input: &impl Serialize,
    ) -> Result<Accepted, RestateError> {
        let start = Start { input_id: Some(id.to_owned()), input };
        // A request that is sent again because its answer was lost is no second invocation.
        self.send(Task::Start, session, &start, Some(&format!("start/{id}"))).await
    }

    /// Starts a turn of a session and waits until the invocation has settled, for at most half a
    /// minute. What takes longer continues.
    ///
    /// # Errors
    /// [Another input has the id, or the loop refuses the session](RestateError::is_conflict); the
    /// server does not answer in time.
    pub async fn run(
        &self,
        session: &str,
        id: &str,
        input: &impl Serialize,
    ) -> Result<Settled, RestateError> {
        let start = Start { input_id: Some(id.to_owned()), input };
        self.call(Task::Start, session, &start).await
    }

    /// Resumes a session without an answer: a turn that failed, was stopped or reached its budget.
    /// Waits as [`run`](Self::run).
    ///
    /// # Errors
    /// The session [does not exist](RestateError::is_not_found) or
    /// [cannot be resumed](RestateError::is_conflict); the server does not answer in time.
    pub async fn resume(&self, session: &str) -> Result<Settled, RestateError> {
        self.call(Task::Resume, session, &Resume::default()).await
    }

    /// Answers an interrupt with JSON and resumes the session. Waits as [`run`](Self::run).
    ///
    /// # Errors
    /// The interrupt [has another answer, or is not open](RestateError::is_conflict), or the answer
    /// does not fit the question. Also those of [`resume`](Self::resume).
    pub async fn answer(
        &self,
        session: &str,
        interrupt: impl Into<InterruptId>,
        answer: Value,
        by: Option<&str>,
    ) -> Result<Settled, RestateError> {
        self.call(Task::Resume, session, &given(interrupt, answer, by)).await
    }

    /// Leaves an answer to the server, which keeps it while no service is there to apply it.
    ///
    /// # Errors
    /// The server does not answer. What the service says to the answer is in its invocation.
    pub async fn leave_answer(
        &self,
        session: &str,
        interrupt: impl Into<InterruptId>,
        answer: Value,
        by: Option<&str>,
    ) -> Result<Accepted, RestateError> {
        self.send(Task::Resume, session, &given(interrupt, answer, by), None).await
    }

    /// Stops the turn of a session at its next boundary. Returns whether there was one to stop. The
    /// process that runs the session stops it at once if it is the one that the server asks; if not,
    /// the turn ends with its invocation.
    ///
    /// # Errors
    /// The session [does not exist](RestateError::is_not_found); the server does not answer in time.
    pub async fn stop(&self, session: &str) -> Result<bool, RestateError> {
        self.end(session, false).await
    }

    /// Cancels the turn of a session: as [`stop`](Self::stop), and the process drops the step at work.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub async fn cancel(&self, session: &str) -> Result<bool, RestateError> {
        self.end(session, true).await
    }

    async fn end(&self, session: &str, cancel: bool) -> Result<bool, RestateError> {
        let signalled: Stopped = self.call(Task::Signal, session, &Signal { cancel }).await?;
        // The run that was signalled may be over, and continued by another invocation.
        let stopped: Stopped = self.call(Task::Stop, session, &Signal { cancel }).await?;
        Ok(signalled.stopped || stopped.stopped)
    }

    /// The invocations of a session that failed so far: which the server tries again, or has paused.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn troubles(&self, session: &str) -> Result<Vec<Trouble>, RestateError> {
        #[derive(Deserialize)]
        struct Found {
            id: String,
            status: String,
            last_failure: Option<String>,
            last_failure_error_code: Option<String>,
        }
        let sql = format!(
            "select id, status, last_failure, last_failure_error_code from sys_invocation where \
             target_service_name = {} and target_service_key = {} and status in ('backing-off', \
             'paused')",
            quoted(self.agent.as_str()),
            quoted(session)
        );
        let found: Vec<Found> = self.http.query(&sql).await?;
        let trouble = |found: Found| {
            let failure = match found.last_failure_error_code.as_deref() {
                Some("RT0016") => {
                    "the program that repeats this invocation is not the one that began \
                                   it: it asks the engine for other things than the journal has \
                                   (start the old program at its address, and give the new one an \
                                   address of its own)"
                        .to_owned()
                }
                _ => said(found.last_failure.unwrap_or_default()),
            };
            Trouble { invocation: found.id, paused: found.status == "paused", failure }
        };
        Ok(found.into_iter().map(trouble).collect())
    }

    pub(super) async fn call<T: serde::de::DeserializeOwned>(
        &self,
        task: Task,
        session: &str,
        body: &impl Serialize,
    ) -> Result<T, RestateError> {
        let target = [self.agent.as_str(), session, task.name()];
        self.http.invoke("call", target, body, None).await
    }

    async fn send(
        &self,
        task: Task,
        session: &str,
        body: &impl Serialize,
        idempotency: Option<&str>,
    ) -> Result<Accepted, RestateError> {
        let target = [self.agent.as_str(), session, task.name()];
        self.http.invoke("send", target, body, idempotency).await
    }
}

/// What the server says of an invocation, in words of agents where it has no such ones.
fn said(failure: String) -> String {
    let missing = failure
        .split_once("the service handler ")
        .and_then(|(_, rest)| rest.split_once(" was not found"))
        .and_then(|(target, _)| target.split_once('/'));
    match missing {
        Some((agent, _)) => format!(
            "a step calls agent `{agent}`, and no service of the server serves it (start one and \
             register it: the invocation is repeated, and continues then)"
        ),
        None => failure,
    }
}

fn given(interrupt: impl Into<InterruptId>, value: Value, by: Option<&str>) -> Resume {
    let by = by.map(str::to_owned);
    Resume { answers: vec![Given { interrupt: interrupt.into(), value, by }] }
}

impl fmt::Debug for RestateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestateStore").field("agent", &self.agent).finish_non_exhaustive()
    }
}
