//! A tool that fetches a URL, and no address that is not public.

mod address;
mod body;
mod hops;

use crate::Secret;
use address::Addresses;
use async_trait::async_trait;
use harness::llm::{
    Content, EffectClass, Tool, ToolCall, ToolCx, ToolError, ToolFailure, ToolOutcome, ToolSpec,
};
use hops::{Body, Checked, FetchError, Limits, OriginHeader, Page};
use reqwest::Client;
use reqwest::dns::Resolve;
use serde_json::json;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The tool `http_fetch`: it gets a page by its URL, for a model that may write any URL.
///
/// ```
/// use harness::llm::ToolSet;
/// use harness_providers::HttpFetch;
/// use std::time::Duration;
///
/// let fetch = HttpFetch::new().max_bytes(64 * 1024).timeout(Duration::from_secs(10));
/// let tools = ToolSet::builder().with(fetch).build()?;
/// assert_eq!(tools.specs()[0].name.as_str(), "http_fetch");
/// # Ok::<(), harness::llm::ToolSetError>(())
/// ```
///
/// # Where it connects to
///
/// Only to public addresses. Private, loopback, link-local, unique-local, multicast, unspecified,
/// reserved and metadata addresses are refused, and so are IPv6 forms of IPv4 addresses (mapped, NAT64,
/// 6to4, Teredo), unless [`allow`](Self::allow) names their range. An address in the URL is checked in
/// every notation. A name is resolved by the tool: each of its addresses is checked, and the connection
/// uses these addresses, so that a name cannot change its address between the check and the connection.
/// No proxy is used, because it would resolve names itself.
///
/// # What it sends and follows
///
/// A `GET` over `http` or `https`, without a user name in the URL. Redirects are followed here, and each
/// is checked like a first URL; none leads from `https` to `http`. A header belongs to one origin and is
/// sent to no other.
///
/// # What it returns
///
/// Text, HTML and JSON as text, in the charset of the page, up to a number of bytes after unpacking;
/// of other content only its kind and size. A status such as 404 is a result like any other.
///
/// A fetch is an [`EffectClass::Read`]. A URL can hold data, so where a model reads what must not leave,
/// let a person approve the calls, or do not give it this tool.
pub struct HttpFetch {
    addresses: Addresses,
    headers: Vec<OriginHeader>,
    resolver: Option<Arc<dyn Resolve>>,
    limits: Limits,
    connect: Duration,
    client: OnceLock<Client>,
}

impl Default for HttpFetch {
    fn default() -> Self {
        Self {
            addresses: Addresses::default(),
            headers: Vec::new(),
            resolver: None,
            limits: Limits { bytes: 256 * 1024, redirects: 5, total: Duration::from_secs(30) },
            connect: Duration::from_secs(10),
            client: OnceLock::new(),
        }
    }
}

impl HttpFetch {
    /// Creates the tool: public addresses, 256 KiB, 5 redirects, 30 seconds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows a range of addresses: those that share the first `prefix` bits with `base`.
    ///
    /// ```
    /// use harness_providers::HttpFetch;
    /// use std::net::Ipv4Addr;
    ///
    /// let fetch = HttpFetch::new().allow(Ipv4Addr::new(10, 1, 0, 0), 16);
    /// # let _ = fetch;
    /// ```
    #[must_use]
    pub fn allow(mut self, base: impl Into<IpAddr>, prefix: u8) -> Self {
        self.addresses.allow(base.into(), prefix);
        self
    }

    /// Adds a header to requests to one origin, such as `https://api.example.com`.
    #[must_use]
    pub fn header(
        mut self,
        origin: impl Into<String>,
        name: impl Into<String>,
        value: impl Into<Secret>,
    ) -> Self {
        self.headers.push(OriginHeader {
            origin: origin.into(),
            name: name.into(),
            value: value.into(),
        });
        self
    }

    /// Sets the most bytes of a page, after unpacking. A longer page is cut, and says so.
    #[must_use]
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.limits.bytes = most;
        self
    }

    /// Sets the most redirects that are followed.
    #[must_use]
    pub fn max_redirects(mut self, most: u32) -> Self {
        self.limits.redirects = most;
        self
    }

    /// Bounds how long a fetch takes, with all its redirects.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limits.total = limit;
        self
    }

    /// Resolves names by this instead of the system. The addresses are checked all the same.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let checked = Checked { inner: self.resolver.clone(), addresses: self.addresses.clone() };
        let client = hops::client(checked, self.connect)?;
        Ok(self.client.get_or_init(|| client))
    }

    async fn fetch(&self, url: &str) -> Result<Page, FetchError> {
        let Self { addresses, headers, limits, .. } = self;
        hops::fetch(self.client()?, url, addresses, headers, *limits).await
    }
}

#[derive(serde::Deserialize)]
struct Arguments {
    url: String,
}

#[async_trait]
impl Tool for HttpFetch {
    fn spec(&self) -> ToolSpec {
        let schema = json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The absolute URL, `http` or `https`."},
            },
            "required": ["url"],
            "additionalProperties": false,
        });
        let about = "Fetches a public web page and returns its status, type and text.";
        ToolSpec::new("http_fetch", about, schema).effect(EffectClass::Read)
    }

    async fn call(&self, call: &ToolCall, _: &ToolCx) -> Result<Content, ToolError> {
        let Arguments { url } = call.args()?;
        match self.fetch(&url).await {
            Ok(page) => Ok(written(&page).into()),
            Err(error @ FetchError::TimedOut { .. }) => Err(ToolError::outcome(
                ToolOutcome::failed(ToolFailure::TimedOut, error.to_string()),
            )),
            Err(error) => Err(error.into()),
        }
    }
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFetch")
            .field("allowed", &self.addresses)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The page for a model.
fn written(page: &Page) -> String {
    let Page { url, status, media, body } = page;
    let media = if media.is_empty() { "not stated" } else { media };
    let head = format!("url: {url}\nstatus: {status}\ntype: {media}\n");
    match body {
        Body::Text { text, cut: false } => format!("{head}\n{text}"),
        Body::Text { text, cut: true } => {
            format!("{head}cut: only the first {} bytes are shown\n\n{text}", text.len())
        }
        Body::Other { bytes: Some(bytes) } => {
            format!("{head}\nThe content is not text ({bytes} bytes), so it is not shown.")
        }
        Body::Other { bytes: None } => {
            format!("{head}\nThe content is not text, so it is not shown.")
        }
    }
}
