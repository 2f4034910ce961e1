//! A server in this process: it writes what a test prepares, byte for byte.

use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A response: its head, and what follows.
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone)]
pub(crate) enum Step {
    Send(String),
    /// Ends the connection.
    Close,
    /// Resets the connection.
    Reset,
    /// Sends nothing until the client is gone.
    Hang,
}

impl Answer {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Self { head, steps: vec![Step::Send(body)] }
    }

    pub(crate) fn events(events: Vec<String>) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let chunk = |event: String| Step::Send(format!("{:x}\r\n{event}\r\n", event.len()));
        let mut steps: Vec<_> = events.into_iter().map(chunk).collect();
        steps.push(Step::Send("0\r\n\r\n".to_owned()));
        Self { head: head.to_owned(), steps }
    }

    pub(crate) fn header(mut self, header: &str) -> Self {
        let end = self.head.len() - 2;
        self.head.insert_str(end, &format!("{header}\r\n"));
        self
    }
}

type Seen = Arc<Mutex<Vec<(String, Value)>>>;

pub(crate) struct Server {
    url: String,
    seen: Seen,
    #[allow(dead_code, reason = "one test asks, which needs all adapters")]
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answers: VecDeque<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Seen::default();
        let (answers, kept) = (Arc::new(Mutex::new(answers)), Arc::clone(&seen));
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, Arc::clone(&answers), Arc::clone(&kept)));
            }
        });
        Self { url, seen, connections, task }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// How many connections there were.
    #[allow(dead_code, reason = "one test asks, which needs all adapters")]
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The requests: head and body.
    pub(crate) fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(read[..end].to_vec()).unwrap();
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1)?.lines().next()?.trim();
            let body = &read[end + 4..];
            if body.len() >= length.parse::<usize>().unwrap() {
                return Some((head, serde_json::from_slice(body).unwrap()));
            }
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

async fn serve(mut stream: TcpStream, answers: Arc<Mutex<VecDeque<Answer>>>, seen: Seen) {
    while let Some((head, body)) = request(&mut stream).await {
        seen.lock().unwrap().push((head, body));
        let answer = answers.lock().unwrap().pop_front();
        let Some(answer) = answer else { return };
        if stream.write_all(answer.head.as_bytes()).await.is_err() {
            return;
        }
        for step in answer.steps {
            match step {
                Step::Send(text) => {
                    // Each part on its own, so that the client reads it alone.
                    let sent = stream.write_all(text.as_bytes()).await;
                    if sent.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                }
                Step::Close => return,
                Step::Reset => {
                    let _ = stream.set_zero_linger();
                    return;
                }
                Step::Hang => {
                    let mut rest = [0; 64];
                    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                    return;
                }
            }
        }
    }
}
