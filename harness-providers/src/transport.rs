//! HTTP with limits: on time by phase, and on bytes.

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use harness::llm::{CallCx, LlmError, LlmErrorKind, ModelId, TimeoutPhase};
use harness::observe::trace;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, redirect};
use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The most bytes of a reply.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The most bytes of the body of an error that are read.
const MOST_OF_ERROR: usize = 64 * 1024;

/// How long each phase of an exchange may take. The whole is limited by the deadline of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until there is a connection. It has no effect on a client that is given.
    pub connect: Duration,
    /// From the request to the first byte of the response. A reply in one piece takes as long as the
    /// model writes.
    pub first_byte: Duration,
    /// Between two parts of the response.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(120),
        }
    }
}

impl Timeouts {
    /// Sets the limit of connecting.
    #[must_use]
    pub fn connect(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// Sets the limit of the wait for the first byte.
    #[must_use]
    pub fn first_byte(mut self, limit: Duration) -> Self {
        self.first_byte = limit;
        self
    }

    /// Sets the limit of the pause between two parts.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }
}

/// Sends requests.
#[derive(Debug, Default)]
pub(crate) struct Transport {
    pub(crate) timeouts: Timeouts,
    client: OnceLock<Client>,
}

/// Why there is no response.
pub(crate) enum NoResponse {
    /// The provider has not received the request.
    NotSent(LlmError),
    Failed(LlmError),
}

impl Transport {
    pub(crate) fn set_client(&mut self, client: Client) {
        self.client = OnceLock::from(client);
    }

    fn client(&self) -> Result<&Client, reqwest::Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::builder()
            .connect_timeout(self.timeouts.connect)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Posts JSON, and waits for the first byte of the response.
    pub(crate) async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        cx: &CallCx,
        model: &ModelId,
    ) -> Result<Body, NoResponse> {
        let setup = |error: reqwest::Error| {
            let kind = LlmErrorKind::InvalidRequest;
            let error = LlmError::new(kind).with_model(model.clone()).because(error.without_url());
            NoResponse::NotSent(error.with_detail("the request cannot be built"))
        };
        let headers = with_trace(headers);
        let request = self.client().map_err(setup)?.post(url).headers(headers).body(body);
        let clock = Clock { deadline: cx.deadline().map(Instant::from_std), model: model.clone() };
        let limit = (self.timeouts.first_byte, TimeoutPhase::Headers);
        let sent = clock.limit(limit, request.send()).await.map_err(NoResponse::Failed)?;
        let response = match sent {
            Ok(response) => response,
            Err(error) if error.is_builder() => return Err(setup(error)),
            Err(error) if error.is_connect() => {
                let kind = match error.is_timeout() {
                    true => LlmErrorKind::Timeout { phase: TimeoutPhase::Connect },
                    false => LlmErrorKind::Unavailable,
                };
                let error =
                    LlmError::new(kind).with_model(model.clone()).because(error.without_url());
                return Err(NoResponse::NotSent(error));
            }
            Err(error) => {
                let kind = LlmErrorKind::Unavailable;
                let error =
                    LlmError::new(kind).with_model(model.clone()).because(error.without_url());
                let error = error.with_detail("the connection broke before the reply");
                return Err(NoResponse::Failed(error));
            }
        };
        Ok(Body { response, clock, idle: self.timeouts.idle, read: 0 })
    }
}

/// Adds the context of the current span, which is that of the model call, if it is sampled.
fn with_trace(mut headers: HeaderMap) -> HeaderMap {
    for (name, value) in trace::current() {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.entry(name).or_insert(value);
        }
    }
    headers
}

/// Limits what is waited for.
struct Clock {
    deadline: Option<Instant>,
    model: ModelId,
}

impl Clock {
    async fn limit<T>(
        &self,
        (limit, phase): (Duration, TimeoutPhase),
        work: impl Future<Output = T>,
    ) -> Result<T, LlmError> {
        // A limit beyond the end of time is none.
        let due = Instant::now().checked_add(limit);
        let (due, phase) = match (self.deadline, due) {
            (Some(deadline), Some(due)) if due < deadline => (due, phase),
            (Some(deadline), _) => (deadline, TimeoutPhase::Total),
            (None, Some(due)) => (due, phase),
            (None, None) => return Ok(work.await),
        };
        timeout_at(due, work).await.map_err(|_| {
            LlmError::new(LlmErrorKind::Timeout { phase }).with_model(self.model.clone())
        })
    }
}

/// The body of a response.
pub(crate) struct Body {
    response: Response,
    clock: Clock,
    idle: Duration,
    read: usize,
}

impl Body {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, LlmError> {
        let limit = (self.idle, TimeoutPhase::Read);
        let model = &self.clock.model;
        match self.clock.limit(limit, self.response.chunk()).await? {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => {
                self.read += bytes.len();
                if self.read > MOST_BYTES {
                    let error = LlmError::new(LlmErrorKind::BadReply).with_model(model.clone());
                    return Err(error.with_detail("the reply is larger than 16 MiB"));
                }
                Ok(Some(bytes))
            }
            Err(error) => {
                let error = LlmError::new(LlmErrorKind::Stream)
                    .with_model(model.clone())
                    .because(error.without_url());
                Err(error.with_detail("the connection broke"))
            }
        }
    }

    /// All of it.
    pub(crate) async fn whole(mut self) -> Result<Bytes, LlmError> {
        let mut whole = BytesMut::new();
        while let Some(bytes) = self.chunk().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }

    /// What can be read of the body of an error.
    pub(crate) async fn of_error(mut self) -> Bytes {
        let mut whole = BytesMut::new();
        while let Ok(Some(bytes)) = self.chunk().await {
            whole.extend_from_slice(&bytes);
            if whole.len() > MOST_OF_ERROR {
                break;
            }
        }
        whole.freeze()
    }

    /// Its parts, as they arrive.
    pub(crate) fn parts(self) -> impl Stream<Item = Result<Bytes, LlmError>> + Send {
        futures_util::stream::try_unfold(self, |mut body| async move {
            Ok(body.chunk().await?.map(|bytes| (bytes, body)))
        })
    }
}
