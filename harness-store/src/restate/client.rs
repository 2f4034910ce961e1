//! The HTTP interfaces of a Restate server: its ingress, which takes requests, and its admin
//! interface, which answers queries.

use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Why a request to a Restate server failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestateError {
    /// The server did not answer, or not in time.
    #[error("Restate did not answer: {source}")]
    Unreachable {
        /// Whether the request may have reached it. What was sent to a service that does not answer is
        /// done when it does.
        ambiguous: bool,
        /// What happened.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The service, or the server, refused the request. Nothing is changed.
    #[error("{message}")]
    Refused {
        /// 404 if the session does not exist, 409 if it is not in a place for the request, 413 if
        /// something is too large, 400 if the request does not fit.
        code: u16,
        /// Why.
        message: String,
    },
    /// The server could not answer an inspection for half a minute: of a cluster, a node that leads
    /// some of the sessions has died, and no other one has taken its place.
    #[error("Restate cannot show its sessions: {message} (does a majority of its nodes run?)")]
    Unready {
        /// What the server says.
        message: String,
    },
    /// The answer is not one that this version knows.
    #[error("Restate answered what this version does not know: {0} (is it a version of 1.7?)")]
    Unknown(String),
    /// An address is not one of HTTP.
    #[error("the address of {what} is not one (such as `http://127.0.0.1:{port}`)")]
    Address {
        /// Of what.
        what: &'static str,
        /// The port that it has by default.
        port: u16,
    },
}

impl RestateError {
    /// The session does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }

    /// The session cannot take the request where it is.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { code: 409, .. })
    }

    /// The request, its result or the session is larger than a message of the server.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused { code: 413, .. })
    }
}

/// What the server answers if it refuses.
#[derive(Deserialize)]
struct Refusal {
    message: String,
}

/// How long a cluster may take until another node leads what a dead one led: some seconds, by its
/// defaults.
const TAKE_OVER: Duration = Duration::from_secs(30);
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// Whether the server will never answer the query.
fn is_wrong(message: &str) -> bool {
    message.contains("Error during planning") || message.contains("SQL error")
}

#[derive(Clone)]
pub(super) struct Http {
    client: Client,
    ingress: Url,
    admin: Url,
}

/// What a query finds.
#[derive(Deserialize)]
struct Rows<T> {
    rows: Vec<T>,
}

impl Http {
    pub(super) fn new(ingress: &str, admin: &str, timeout: Duration) -> Result<Self, RestateError> {
        let address = |url: &str, what, port| match Url::parse(url) {
            Ok(url) if !url.cannot_be_a_base() => Ok(url),
            _ => Err(RestateError::Address { what, port }),
        };
        let client = Client::builder().timeout(timeout).build().map_err(unreachable)?;
        let ingress = address(ingress, "the ingress", 8080)?;
        Ok(Self { client, ingress, admin: address(admin, "the admin interface", 9070)? })
    }

    /// Invokes a handler of an object, and waits for what it answers (`call`), or only until the
    /// server keeps the request (`send`).
    pub(super) async fn invoke<T: DeserializeOwned>(
        &self,
        how: &str,
        target: [&str; 3],
        body: &impl Serialize,
        idempotency: Option<&str>,
    ) -> Result<T, RestateError> {
        let mut url = self.ingress.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["restate", how]).extend(target);
        }
        let mut request = json(self.client.post(url), body)?;
        if let Some(key) = idempotency {
            request = request.header("idempotency-key", key);
        }
        answer(request).await
    }

    /// Rows of the tables in which the server shows what it has.
    pub(super) async fn query<T: DeserializeOwned>(
        &self,
        sql: &str,
    ) -> Result<Vec<T>, RestateError> {
        let begun = Instant::now();
        loop {
            let request =
                self.client.post(self.admin("query")).header("accept", "application/json");
            let request = json(request, &serde_json::json!({ "query": sql }))?;
            match answer::<Rows<T>>(request).await {
                Ok(found) => return Ok(found.rows),
                // While another node takes over what a dead one led. The tables are read by all nodes.
                Err(RestateError::Refused { code: 500.., message }) if !is_wrong(&message) => {
                    if begun.elapsed() > TAKE_OVER {
                        return Err(RestateError::Unready { message });
                    }
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) async fn register(&self, service: &str) -> Result<(), RestateError> {
        // An address that is known may have another program by now.
        let body = serde_json::json!({ "uri": service, "force": true });
        let request = json(self.client.post(self.admin("deployments")), &body)?;
        answer::<serde_json::Value>(request).await.map(drop)
    }

    fn admin(&self, path: &str) -> Url {
        let mut url = self.admin.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(path);
        }
        url
    }
}

fn json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, RestateError> {
    let body = serde_json::to_vec(body).map_err(|error| RestateError::Refused {
        code: 400,
        message: format!("the request cannot be encoded: {error}"),
    })?;
    Ok(request.header("content-type", "application/json").body(body))
}

async fn answer<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, RestateError> {
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let body = response.bytes().await.map_err(unreachable)?;
    if !status.is_success() {
        let message = match serde_json::from_slice::<Refusal>(&body) {
            Ok(refusal) => refusal.message,
            Err(_) => format!("Restate answered with status {status}"),
        };
        return Err(RestateError::Refused { code: status.as_u16(), message });
    }
    serde_json::from_slice(&body).map_err(|error| RestateError::Unknown(error.to_string()))
}

fn unreachable(error: reqwest::Error) -> RestateError {
    let ambiguous = !error.is_connect() && !error.is_builder();
    // A URL may have a password.
    RestateError::Unreachable { ambiguous, source: error.without_url().into() }
}

/// A text in a query.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
