//! One connection of HTTP/1.1.

use std::sync::{Arc, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Shared, reply};

pub(super) async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut read = Vec::new();
    while let Some(body) = request(&mut stream, &mut read).await {
        if exchange(&mut stream, &shared, body).await.is_err() {
            return;
        }
    }
}

async fn exchange(stream: &mut TcpStream, shared: &Shared, body: Vec<u8>) -> std::io::Result<()> {
    let streams = reply::is_streamed(&body);
    *shared.last.lock().unwrap_or_else(PoisonError::into_inner) = body;
    if !streams {
        let body = reply::whole();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
        return stream.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).await;
    }
    let chunks = |events: Vec<String>| -> String {
        events.iter().map(|event| format!("{:x}\r\n{event}\r\n", event.len())).collect()
    };
    let [first, rest] = reply::halves().map(chunks);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(format!("{head}{first}").as_bytes()).await?;
    shared.half_way.wait().await;
    stream.write_all(format!("{rest}0\r\n\r\n").as_bytes()).await
}

/// The body of the next request. `None` at the end of the connection.
async fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1)?.lines().next()?.trim();
            let all = end + 4 + length.parse::<usize>().ok()?;
            if read.len() >= all {
                let rest = read.split_off(all);
                let body = read.split_off(end + 4);
                *read = rest;
                return Some(body);
            }
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
}
