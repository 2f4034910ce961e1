//! Where an adapter sends its requests, and with what.

use crate::bill::Bill;
use crate::failure::{Said, of_status};
use crate::price::Prices;
use crate::retry_after::retry_after;
use crate::transport::{Body, NoResponse, Transport};
use harness::llm::{CallCx, LlmError, LlmErrorKind, ModelId};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::fmt;
use std::time::SystemTime;

/// Where an adapter sends its requests, and with what.
#[derive(Default)]
pub(crate) struct Endpoint {
    pub(crate) base_url: String,
    /// Headers of the protocol and of the user, and the key.
    pub(crate) headers: HeaderMap,
    /// Why a header cannot be sent: its name.
    pub(crate) bad_header: Option<String>,
    pub(crate) transport: Transport,
    pub(crate) prices: Prices,
}

impl Endpoint {
    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                // Any header may hold a key.
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            _ => self.bad_header = Some(name.to_owned()),
        }
    }

    /// Posts JSON, and waits for a response that is a success.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &Value,
        cx: &CallCx,
        model: &ModelId,
        bill: &mut Bill<'_>,
        read_error: fn(&[u8]) -> Said,
    ) -> Result<Body, LlmError> {
        if let Some(name) = &self.bad_header {
            bill.not_sent();
            return Err(LlmError::new(LlmErrorKind::InvalidRequest)
                .with_model(model.clone())
                .with_detail(format!("the header `{name}` has a value that cannot be sent")));
        }
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let url = format!("{}{path}", self.base_url.trim_end_matches('/'));
        let body = body.to_string().into_bytes();
        let body = match self.transport.post(&url, headers, body, cx, model).await {
            Ok(body) => body,
            Err(NoResponse::NotSent(error)) => {
                bill.not_sent();
                return Err(error);
            }
            Err(NoResponse::Failed(error)) => return Err(error),
        };
        let status = body.status();
        if status.is_success() {
            return Ok(body);
        }
        let wait = retry_after(body.headers(), SystemTime::now());
        let said = read_error(&body.of_error().await);
        Err(of_status(status, &said, wait, model))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Endpoint").field("headers", &headers).finish_non_exhaustive()
    }
}

/// The settings that every adapter has.
macro_rules! settings {
    ($adapter:ident) => {
        impl $adapter {
            /// Sends requests to another server, such as a proxy or a gateway.
            #[must_use]
            pub fn base_url(mut self, url: impl Into<String>) -> Self {
                self.endpoint.base_url = url.into();
                self
            }

            /// Adds a header, or replaces one. `Debug` does not show its value.
            #[must_use]
            pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
                self.endpoint.set_header(name.as_ref(), value.as_ref());
                self
            }

            /// Sets how long each phase may take.
            #[must_use]
            pub fn timeouts(mut self, timeouts: $crate::Timeouts) -> Self {
                self.endpoint.transport.timeouts = timeouts;
                self
            }

            /// Sends requests with this client, for a proxy or certificates of your own.
            #[must_use]
            pub fn client(mut self, client: reqwest::Client) -> Self {
                self.endpoint.transport.set_client(client);
                self
            }

            /// Sets what tokens cost.
            #[must_use]
            pub fn prices(mut self, prices: $crate::Prices) -> Self {
                self.endpoint.prices = prices;
                self
            }

            /// Sets what the model can do, where the default does not fit it.
            #[must_use]
            pub fn caps(mut self, caps: harness::llm::Caps) -> Self {
                self.caps = caps;
                self
            }
        }
    };
}

pub(crate) use settings;
