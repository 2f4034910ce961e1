//! One fetch: its redirects, each checked, and its limits.

use super::address::{Addresses, Refused};
use super::body::{ContentType, Damaged, Unpack, looks_like_text, text};
use crate::Secret;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, LOCATION,
};
use reqwest::{Client, Response, Url, redirect};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The most bytes of a packed body beyond the limit of the unpacked one, as for a page that does not
/// get smaller.
const PACKED: usize = 64 * 1024;

/// Why a URL cannot be fetched. No message holds a URL, which may hold a key.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("the text is not an absolute URL (give one such as `https://example.com/page`)")]
    BadUrl,
    #[error("only `http` and `https` URLs can be fetched")]
    BadScheme,
    #[error("the URL holds a user name or a password (give it without)")]
    UserInfo,
    #[error("`{host}` cannot be fetched: {why} (fetch a public page)")]
    Refused { host: String, why: Refused },
    #[error("no connection to `{host}` (check the name, or fetch another page)")]
    NoConnection { host: String },
    #[error("the connection to `{host}` broke (try again later)")]
    Broken { host: String },
    #[error("the page redirects more than {most} times")]
    TooManyRedirects { most: u32 },
    #[error("a redirect of `{host}` leads nowhere")]
    BadRedirect { host: String },
    #[error("a redirect of `{host}` leads from `https` to `http`")]
    Downgrade { host: String },
    #[error("the page of `{host}` is packed in a way that is not supported, or damaged")]
    Packed { host: String },
    #[error("the page took longer than {limit:?}")]
    TimedOut { limit: Duration },
    #[error("the HTTP client cannot be built")]
    NoClient,
    #[error(
        "the header `{name}` of an origin has a value that cannot be sent, or the origin is no URL"
    )]
    BadHeader { name: String },
}

/// A header for one origin.
pub(super) struct OriginHeader {
    pub(super) origin: String,
    pub(super) name: String,
    pub(super) value: Secret,
}

/// What limits a fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) bytes: usize,
    pub(super) redirects: u32,
    pub(super) total: Duration,
}

/// A page.
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) status: u16,
    pub(super) media: String,
    pub(super) body: Body,
}

pub(super) enum Body {
    Text { text: String, cut: bool },
    Other { bytes: Option<u64> },
}

/// Resolves names, and gives only addresses that may be connected to. The connection uses exactly these
/// addresses, so a second answer of the name's owner changes nothing.
pub(super) struct Checked {
    pub(super) inner: Option<Arc<dyn Resolve>>,
    pub(super) addresses: Addresses,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.addresses.clone();
        let found = match &self.inner {
            Some(inner) => inner.resolve(name),
            None => system(name),
        };
        Box::pin(async move {
            let found: Vec<SocketAddr> = found.await?.collect();
            // One that is refused refuses all: a name with both kinds is made to pass checks.
            found.iter().try_for_each(|found| addresses.check(found.ip()))?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Resolves a name by the system.
fn system(name: Name) -> Resolving {
    Box::pin(async move {
        let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
        Ok(Box::new(found.into_iter()) as Addrs)
    })
}

/// A client that follows no redirect, uses no proxy, and unpacks nothing.
pub(super) fn client(checked: Checked, connect: Duration) -> Result<Client, FetchError> {
    Client::builder()
        .dns_resolver(checked)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .connect_timeout(connect)
        .user_agent(concat!("harness-http-fetch/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|_| FetchError::NoClient)
}

/// Fetches a URL, and follows its redirects.
pub(super) async fn fetch(
    client: &Client,
    url: &str,
    addresses: &Addresses,
    headers: &[OriginHeader],
    limits: Limits,
) -> Result<Page, FetchError> {
    let limit = limits.total;
    let work = follow(client, url, addresses, headers, limits);
    tokio::time::timeout(limit, work).await.map_err(|_| FetchError::TimedOut { limit })?
}

async fn follow(
    client: &Client,
    url: &str,
    addresses: &Addresses,
    headers: &[OriginHeader],
    limits: Limits,
) -> Result<Page, FetchError> {
    let mut url = Url::parse(url.trim()).map_err(|_| FetchError::BadUrl)?;
    let mut redirects = 0;
    loop {
        check(&url, addresses)?;
        url.set_fragment(None);
        let response = send(client, &url, headers).await?;
        let Some(next) = redirect_of(&response, &url)? else {
            return page(response, url, limits.bytes).await;
        };
        if redirects == limits.redirects {
            return Err(FetchError::TooManyRedirects { most: limits.redirects });
        }
        redirects += 1;
        url = next;
    }
}

/// Checks a URL before anything is sent: the first one, and where each redirect leads.
fn check(url: &Url, addresses: &Addresses) -> Result<(), FetchError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(FetchError::BadScheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::UserInfo);
    }
    // Every notation of an address has become the usual one when the URL was parsed.
    let host = host(url);
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => addresses.check(address).map_err(|why| FetchError::Refused { host, why }),
        // The name is checked when it is resolved.
        Err(_) => Ok(()),
    }
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

async fn send(
    client: &Client,
    url: &Url,
    headers: &[OriginHeader],
) -> Result<Response, FetchError> {
    let mut map = HeaderMap::new();
    map.insert(
        ACCEPT,
        HeaderValue::from_static("text/html, application/json, text/*;q=0.9, */*;q=0.5"),
    );
    map.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    for header in headers {
        let bad = || FetchError::BadHeader { name: header.name.clone() };
        let origin = Url::parse(&header.origin).map_err(|_| bad())?.origin();
        if origin == url.origin() {
            let name = HeaderName::try_from(&header.name).map_err(|_| bad())?;
            let mut value = HeaderValue::try_from(header.value.expose()).map_err(|_| bad())?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
    }
    client.get(url.clone()).headers(map).send().await.map_err(|error| no_response(&error, url))
}

fn no_response(error: &reqwest::Error, url: &Url) -> FetchError {
    let host = host(url);
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(why) = error.downcast_ref::<Refused>() {
            return FetchError::Refused { host, why: *why };
        }
        source = error.source();
    }
    match error.is_connect() {
        true => FetchError::NoConnection { host },
        false => FetchError::Broken { host },
    }
}

/// Where a redirect leads.
fn redirect_of(response: &Response, from: &Url) -> Result<Option<Url>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let bad = || FetchError::BadRedirect { host: host(from) };
    let location = location.to_str().map_err(|_| bad())?;
    let next = from.join(location).map_err(|_| bad())?;
    match (from.scheme(), next.scheme()) {
        ("https", "http") => Err(FetchError::Downgrade { host: host(from) }),
        _ => Ok(Some(next)),
    }
}

async fn page(mut response: Response, url: Url, most: usize) -> Result<Page, FetchError> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let about = ContentType::of(header(CONTENT_TYPE).unwrap_or_default());
    let size = header(CONTENT_LENGTH).and_then(|size| size.parse().ok());
    let packed = header(CONTENT_ENCODING).unwrap_or_default().trim().to_ascii_lowercase();
    let status = response.status().as_u16();
    let page = |url, media, body| Ok(Page { url, status, media, body });
    if about.is_text() == Some(false) {
        return page(url, about.media, Body::Other { bytes: size });
    }
    let damaged = |_: Damaged| FetchError::Packed { host: host(&url) };
    let gzip = match packed.as_str() {
        "" | "identity" => false,
        "gzip" | "x-gzip" => true,
        _ => return Err(damaged(Damaged)),
    };
    let mut unpack = Unpack::new(gzip, most);
    let mut read = 0_usize;
    let broken = |_| FetchError::Broken { host: host(&url) };
    let mut cut = false;
    while let Some(bytes) = response.chunk().await.map_err(broken)? {
        read = read.saturating_add(bytes.len());
        cut = !unpack.push(&bytes).map_err(damaged)? || read > most.saturating_add(PACKED);
        if cut {
            break;
        }
    }
    let bytes = match unpack.finish() {
        Ok((bytes, full)) => {
            cut |= full;
            bytes
        }
        // What is packed has no end within the limit.
        Err(Damaged) if cut => Vec::new(),
        Err(Damaged) => return Err(damaged(Damaged)),
    };
    let body = match about.is_text() {
        None if !looks_like_text(&bytes, cut) => {
            Body::Other { bytes: (!cut).then_some(bytes.len() as u64) }
        }
        _ => Body::Text { text: text(&bytes, &about, cut), cut },
    };
    page(url, about.media, body)
}
