//! A server of the Messages API on a thread of its own, so that its work and its memory are not
//! counted.

mod http1;
mod http2;
mod reply;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::net::TcpListener;
use tokio::sync::{Barrier, oneshot};

/// The version of HTTP that a server speaks. Vendors speak the second one, servers on the user's own
/// machine mostly the first.
#[derive(Clone, Copy)]
pub(super) enum Http {
    One,
    Two,
}

/// A server. It ends when this is dropped.
pub(super) struct Server {
    url: String,
    shared: Arc<Shared>,
    _ends: oneshot::Sender<()>,
}

/// What connections share.
struct Shared {
    /// Streams of a round wait for each other half-way.
    half_way: Barrier,
    /// The body of the last request.
    last: Mutex<Vec<u8>>,
}

impl Server {
    /// Starts it. It sends half of each stream, waits until this many streams are half-way, and sends
    /// the rest.
    pub(super) fn start(http: Http, together: usize) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared { half_way: Barrier::new(together), last: Mutex::default() });
        let (ends, ended) = oneshot::channel::<()>();
        let kept = Arc::clone(&shared);
        thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! { () = accept(listener, http, &shared) => {}, _ = ended => {} }
            });
        });
        Ok(Self { url, shared: kept, _ends: ends })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The body of the last request.
    pub(super) fn last_body(&self) -> Vec<u8> {
        self.shared.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: std::net::TcpListener, http: Http, shared: &Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        match http {
            Http::One => drop(tokio::spawn(http1::serve(stream, Arc::clone(shared)))),
            Http::Two => drop(tokio::spawn(http2::serve(stream, Arc::clone(shared)))),
        }
    }
}
