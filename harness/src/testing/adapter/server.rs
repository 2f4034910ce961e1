//! A server in this process, which speaks through a [`Wire`].

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::llm::{Accumulator, Delta, ModelId, Reply};

use super::wire::{Wire, WireRequest};

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(super) enum Play {
    /// Replies, in one piece or in parts as the request asks for.
    Reply(Vec<Delta>),
    /// Replies with a status, more headers and a body of its own.
    Raw(u16, String, String),
    /// Begins a reply in parts: so many pieces of it, and then this.
    Cut(Vec<Delta>, usize, Then),
    /// The same, with a piece of its own before the end.
    CutWith(Vec<Delta>, usize, String),
    /// Writes one byte at a time.
    Bytewise(Vec<Delta>),
    /// Sends more bytes than a reply may have.
    Endless,
    /// Sends nothing.
    Silent,
}

/// How a reply ends that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// As if it were complete.
    End,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing more is sent until the client is gone.
    Hang,
}

type Choose = Arc<dyn Fn(&WireRequest) -> Option<Play> + Send + Sync>;

/// A server for one clause.
pub(super) struct Server {
    url: String,
    seen: Arc<Mutex<Vec<WireRequest>>>,
    /// A permit for each request.
    arrived: Arc<Semaphore>,
    /// A permit for each client that went while the server was silent.
    gone: Arc<Semaphore>,
    task: JoinHandle<()>,
}

impl Server {
    /// A server that does one thing after the other.
    pub(super) async fn of(
        wire: Arc<dyn Wire>,
        plays: impl IntoIterator<Item = Play>,
    ) -> io::Result<Self> {
        let plays: Mutex<VecDeque<Play>> = Mutex::new(plays.into_iter().collect());
        let next =
            move |_: &WireRequest| plays.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Self::start(wire, Arc::new(next)).await
    }

    pub(super) async fn start(wire: Arc<dyn Wire>, choose: Choose) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (arrived, gone) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (kept, came, left) = (seen.clone(), arrived.clone(), gone.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serve = Serve {
                    stream,
                    wire: wire.clone(),
                    choose: choose.clone(),
                    seen: kept.clone(),
                    arrived: came.clone(),
                    gone: left.clone(),
                };
                tokio::spawn(serve.run());
            }
        });
        Ok(Self { url, seen, arrived, gone, task })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The requests so far.
    pub(super) fn seen(&self) -> Vec<WireRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for one more request.
    pub(super) async fn arrival(&self) {
        take(&self.arrived).await;
    }

    /// Waits until a client has gone while the server was silent.
    pub(super) async fn client_gone(&self) {
        take(&self.gone).await;
    }
}

async fn take(permits: &Semaphore) {
    if let Ok(permit) = permits.acquire().await {
        permit.forget();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Serve {
    stream: TcpStream,
    wire: Arc<dyn Wire>,
    choose: Choose,
    seen: Arc<Mutex<Vec<WireRequest>>>,
    arrived: Arc<Semaphore>,
    gone: Arc<Semaphore>,
}

impl Serve {
    async fn run(mut self) {
        // Ends with the connection, which breaks in some clauses.
        while let Some(request) = self.request().await {
            let rejected = self.wire.rejects(&request);
            let play = match rejected {
                Some((status, body)) => Some(Play::Raw(status, String::new(), body)),
                None => (self.choose)(&request),
            };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
            self.arrived.add_permits(1);
            let Some(play) = play else { return };
            if self.play(&request, play).await != Some(()) {
                return;
            }
        }
    }

    async fn request(&mut self) -> Option<WireRequest> {
        let mut read = Vec::new();
        loop {
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&read[..end]).into_owned();
                let mut lines = head.lines();
                let path = lines.next()?.split(' ').nth(1)?.to_owned();
                let header = |line: &str| {
                    let (name, value) = line.split_once(':')?;
                    Some((name.to_ascii_lowercase(), value.trim().to_owned()))
                };
                let headers = lines.filter_map(header).collect();
                let mut request = WireRequest { path, headers, body: serde_json::Value::Null };
                let length = request.header("content-length")?.parse::<usize>().ok()?;
                let body = &read[end + 4..];
                if body.len() >= length {
                    request.body = serde_json::from_slice(body).ok()?;
                    return Some(request);
                }
            }
            if self.stream.read_buf(&mut read).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// `None` if the connection has ended.
    async fn play(&mut self, request: &WireRequest, play: Play) -> Option<()> {
        let streams = self.wire.streams(request);
        match play {
            Play::Reply(parts) if streams => {
                self.frames(&self.wire.frames(&parts), Then::End).await
            }
            Play::Reply(parts) => {
                let body = self.wire.whole(&folded(parts)?);
                self.whole(200, "", &body).await
            }
            Play::Raw(status, headers, body) => self.whole(status, &headers, &body).await,
            Play::Cut(parts, count, then) => {
                let mut frames = self.wire.frames(&parts);
                frames.truncate(count);
                self.frames(&frames, then).await
            }
            Play::CutWith(parts, count, last) => {
                let mut frames = self.wire.frames(&parts);
                frames.truncate(count);
                frames.push(last);
                self.frames(&frames, Then::End).await
            }
            Play::Bytewise(parts) => {
                let body = match streams {
                    true => self.wire.frames(&parts).concat(),
                    false => self.wire.whole(&folded(parts)?),
                };
                self.head(streams).await?;
                for byte in body.bytes() {
                    self.chunk(&[byte]).await?;
                }
                self.write(b"0\r\n\r\n").await
            }
            Play::Endless => {
                self.head(streams).await?;
                let blank = vec![b' '; 1024 * 1024];
                for _ in 0..64 {
                    self.chunk(&blank).await?;
                }
                None
            }
            Play::Silent => {
                self.until_gone().await;
                None
            }
        }
    }

    async fn whole(&mut self, status: u16, headers: &str, body: &str) -> Option<()> {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n{headers}\
             content-length: {length}\r\n\r\n"
        );
        self.write(head.as_bytes()).await?;
        self.write(body.as_bytes()).await
    }

    async fn frames(&mut self, frames: &[String], then: Then) -> Option<()> {
        self.head(true).await?;
        for frame in frames {
            self.chunk(frame.as_bytes()).await?;
        }
        match then {
            Then::End => self.write(b"0\r\n\r\n").await,
            Then::Close => None,
            Then::Reset => {
                let _ = self.stream.set_zero_linger();
                None
            }
            Then::Hang => {
                self.until_gone().await;
                None
            }
        }
    }

    async fn head(&mut self, streams: bool) -> Option<()> {
        let media_type = if streams { self.wire.media_type() } else { "application/json" };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        self.write(head.as_bytes()).await
    }

    async fn chunk(&mut self, bytes: &[u8]) -> Option<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.write(&chunk).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()?;
        self.stream.flush().await.ok()
    }

    async fn until_gone(&mut self) {
        let mut rest = [0; 64];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        self.gone.add_permits(1);
    }
}

pub(super) fn folded(parts: Vec<Delta>) -> Option<Reply> {
    let mut folded = Accumulator::new(ModelId::new("suite", "m"));
    parts.into_iter().try_for_each(|part| folded.push(part)).ok()?;
    folded.finish().ok()
}
