//! The tool `http_fetch` against servers in this process.
#![cfg(feature = "http-fetch")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use harness::llm::{EffectClass, Tool, ToolCall, ToolFailure, ToolOutcome, ToolSet};
use harness_providers::HttpFetch;
use harness_providers::reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

type Answer = Arc<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

/// A server that answers by the path, and keeps the heads of requests.
struct Site {
    at: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// An answer of `None` keeps the connection open without a word.
    async fn start(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let (kept, answer): (_, Answer) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                tokio::spawn(async move {
                    let (mut head, mut byte) = (Vec::new(), [0]);
                    while !head.ends_with(b"\r\n\r\n") {
                        if stream.read(&mut byte).await.unwrap_or_default() == 0 {
                            return;
                        }
                        head.extend(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    kept.lock().unwrap().push(head);
                    match answer(&path) {
                        // The client may be gone: it reads no more than it wants.
                        Some(bytes) => _ = stream.write_all(&bytes).await,
                        None => std::future::pending().await,
                    }
                });
            }
        });
        Self { at, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn page(head: &str, body: &[u8]) -> Vec<u8> {
    let mut page = format!("HTTP/1.1 {head}\r\nconnection: close\r\n").into_bytes();
    write!(page, "content-length: {}\r\n\r\n", body.len()).unwrap();
    page.extend(body);
    page
}

fn redirect(to: &str) -> Vec<u8> {
    page(&format!("302 Found\r\nlocation: {to}"), b"moved")
}

fn local() -> HttpFetch {
    HttpFetch::new().allow(Ipv4Addr::LOCALHOST, 32)
}

async fn fetch(tool: HttpFetch, url: &str) -> ToolOutcome {
    let arguments = serde_json::json!({"url": url}).to_string();
    let tools = ToolSet::builder().with(tool).build().unwrap();
    tools.call(&ToolCall::new("c", "http_fetch", arguments)).await
}

fn text(outcome: ToolOutcome) -> String {
    assert!(outcome.is_ok(), "{outcome:?}");
    outcome.content().text().unwrap()
}

fn failed(outcome: ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Failed { kind: ToolFailure::Errored, content } => content.text().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_page_is_text_with_its_status_and_type() {
    let site = Site::start(|path| {
        Some(match path {
            "/page" => page("200 OK\r\ncontent-type: text/html; charset=iso-8859-1", b"caf\xe9"),
            "/data" => page("200 OK\r\ncontent-type: application/json", br#"{"a":1}"#),
            "/image" => page("200 OK\r\ncontent-type: image/png", b"\x89PNG\0"),
            "/bare" => page("200 OK", b"bare"),
            "/bytes" => page("200 OK", b"\0\x01\x02"),
            _ => page("404 Not Found\r\ncontent-type: text/plain", b"no such page"),
        })
    })
    .await;
    for (path, end) in [
        ("/page#part", "/page\nstatus: 200\ntype: text/html\n\ncafé"),
        ("/data", "/data\nstatus: 200\ntype: application/json\n\n{\"a\":1}"),
        (
            "/image",
            "/image\nstatus: 200\ntype: image/png\n\nThe content is not text (5 bytes), so it is not shown.",
        ),
        ("/bare", "/bare\nstatus: 200\ntype: not stated\n\nbare"),
        (
            "/bytes",
            "/bytes\nstatus: 200\ntype: not stated\n\nThe content is not text (3 bytes), so it is not shown.",
        ),
        ("/gone", "/gone\nstatus: 404\ntype: text/plain\n\nno such page"),
    ] {
        let text = text(fetch(local(), &site.url(path)).await);
        assert_eq!(text, format!("url: http://{}{end}", site.at));
    }
    assert_eq!(local().spec().effect, EffectClass::Read);
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_in_every_notation() {
    let site = Site::start(|_| Some(page("200 OK", b"secret"))).await;
    let port = site.at.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "１２７.0.0.1",
        "127.0.0.1%2e",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "10.0.0.1",
        "192.168.0.1",
        "224.0.0.1",
        "localhost",
        "LOCALHOST",
    ] {
        let error = failed(fetch(HttpFetch::new(), &format!("http://{host}:{port}/")).await);
        assert!(error.contains("and not public"), "{host}: {error}");
    }
    assert_eq!(site.seen(), [""; 0]);
}

#[tokio::test]
async fn other_schemes_user_names_and_texts_are_refused_without_being_quoted() {
    for (url, expected) in [
        ("file:///etc/passwd", "only `http` and `https`"),
        ("ftp://example.com/", "only `http` and `https`"),
        ("gopher://example.com/", "only `http` and `https`"),
        ("data:text/plain,hi", "only `http` and `https`"),
        ("http://user@127.0.0.1/", "user name"),
        ("http://user:canary@127.0.0.1/", "user name"),
        ("http://:canary@127.0.0.1/", "user name"),
        ("canary", "not an absolute URL"),
        ("http://", "not an absolute URL"),
        ("http://[::1", "not an absolute URL"),
    ] {
        let error = failed(fetch(local(), url).await);
        assert!(error.contains(expected) && !error.contains("canary"), "{url}: {error}");
    }
}

#[tokio::test]
async fn redirects_are_followed_and_each_is_checked() {
    let other =
        Site::start(|_| Some(page("200 OK\r\ncontent-type: text/plain", b"moved here"))).await;
    let at = other.at;
    let site = Site::start(move |path| {
        Some(match path {
            "/relative" => redirect("next"),
            "/next" => redirect(&format!("http://{at}/end")),
            "/meta" => redirect("http://169.254.169.254/latest"),
            "/mapped" => redirect(&format!("http://[::ffff:127.0.0.1]:{}/", at.port())),
            "/file" => redirect("file:///etc/passwd"),
            "/user" => redirect("http://user:canary@127.0.0.1/"),
            "/nowhere" => redirect("http://[::"),
            "/bare" => page("302 Found", b"no location"),
            path => redirect(&format!("{path}x")),
        })
    })
    .await;
    let headers = |tool: HttpFetch| tool.header(site.url("/"), "authorization", "Bearer canary");
    let text = text(fetch(headers(local()), &site.url("/relative")).await);
    assert_eq!(text, format!("url: http://{at}/end\nstatus: 200\ntype: text/plain\n\nmoved here"));
    let asks =
        |seen: Vec<String>| seen.iter().filter(|head| head.contains("Bearer canary")).count();
    assert_eq!((asks(site.seen()), asks(other.seen())), (2, 0));
    for (path, expected) in [
        ("/meta", "is metadata and not public"),
        ("/mapped", "is IPv4-mapped and not public"),
        ("/file", "only `http`"),
        ("/user", "user name"),
        ("/nowhere", "leads nowhere"),
        ("/endless", "redirects more than 5 times"),
    ] {
        let error = failed(fetch(local(), &site.url(path)).await);
        assert!(error.contains(expected) && !error.contains("canary"), "{path}: {error}");
    }
    assert_eq!(other.seen().len(), 1);
    let none = failed(fetch(local().max_redirects(0), &site.url("/relative")).await);
    assert!(none.contains("more than 0 times"), "{none}");
    let bare = fetch(local(), &site.url("/bare")).await;
    assert!(bare.content().text().unwrap().contains("status: 302"));
}

/// Answers another address each time it is asked.
struct Rebinding {
    answers: Vec<Vec<IpAddr>>,
    asked: Arc<AtomicUsize>,
}

impl Resolve for Rebinding {
    fn resolve(&self, _: Name) -> Resolving {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers[asked.min(self.answers.len() - 1)].clone();
        let addresses = answer.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect::<Vec<_>>();
        Box::pin(async move { Ok(Box::new(addresses.into_iter()) as Addrs) })
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_every_address_of_it_is_checked() {
    let site = Site::start(|_| Some(page("200 OK\r\ncontent-type: text/plain", b"here"))).await;
    let local_address = IpAddr::from(Ipv4Addr::LOCALHOST);
    let private = IpAddr::from([10, 0, 0, 1]);
    let url = format!("http://name.example:{}/", site.at.port());
    // The first answer is checked and used. The second one would be another address.
    let asked = Arc::<AtomicUsize>::default();
    let rebinding =
        Rebinding { answers: vec![vec![local_address], vec![private]], asked: Arc::clone(&asked) };
    let text = text(fetch(local().resolver(rebinding), &url).await);
    assert!(text.ends_with("here"), "{text}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(site.seen()[0].contains("host: name.example"), "{:?}", site.seen());
    for answers in [vec![private], vec![local_address, private], vec![private, local_address]] {
        let rebinding = Rebinding { answers: vec![answers], asked: Arc::default() };
        let error = failed(fetch(local().resolver(rebinding), &url).await);
        assert_eq!(
            error,
            "`name.example` cannot be fetched: an address of it is private and not public (fetch a public page)"
        );
    }
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn pages_are_cut_at_the_limit_after_unpacking() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&vec![b'x'; 20_000_000]).unwrap();
    let bomb = gzip.finish().unwrap();
    let site = Site::start(move |path| {
        Some(match path {
            "/bomb" => page("200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip", &bomb),
            "/long" => page("200 OK\r\ncontent-type: text/plain", &[b'y'; 5000]),
            "/damaged" => page(
                "200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip",
                b"nonsense bytes",
            ),
            "/brotli" => page("200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: br", b"xyz"),
            _ => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\ncontent-type: text/plain\r\n\r\nhalf"
                .to_vec(),
        })
    })
    .await;
    for (path, sign) in [("/bomb", 'x'), ("/long", 'y')] {
        let text = text(fetch(local().max_bytes(1000), &site.url(path)).await);
        let filled = String::from(sign).repeat(1000);
        assert!(text.ends_with(&format!("cut: only the first 1000 bytes are shown\n\n{filled}")));
    }
    for (path, expected) in
        [("/damaged", "or damaged"), ("/brotli", "not supported"), ("/half", "broke")]
    {
        let error = failed(fetch(local(), &site.url(path)).await);
        assert!(error.contains(expected), "{path}: {error}");
    }
    assert!(site.seen()[0].to_lowercase().contains("accept-encoding: gzip\r\n"));
}

#[tokio::test]
async fn a_page_that_takes_too_long_is_a_timeout() {
    let site = Site::start(|_| None).await;
    let outcome = fetch(local().timeout(Duration::from_millis(50)), &site.url("/")).await;
    let ToolOutcome::Failed { kind: ToolFailure::TimedOut, .. } = outcome else {
        panic!("{outcome:?}");
    };
}

#[tokio::test]
async fn a_server_that_is_gone_is_an_error_without_the_path() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    let error = failed(fetch(local(), &format!("http://{at}/canary?key=canary")).await);
    assert_eq!(error, "no connection to `127.0.0.1` (check the name, or fetch another page)");
}
