//! A proxy before a server, which counts round trips, and holds back what goes there or what comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Forwards to a server the way there as long as `there` says so, and back as long as `back` does.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    pub(crate) there: watch::Sender<bool>,
    pub(crate) back: watch::Sender<bool>,
    /// Changed to cut all connections.
    cut: watch::Sender<()>,
    trips: Arc<AtomicU64>,
}

impl Proxy {
    pub(crate) async fn new(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ((there, forward), (back, backward)) = (watch::channel(true), watch::channel(true));
        let (cut, is_cut) = watch::channel(());
        let trips = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&trips);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // Without a server the client finds its connection closed.
                let Ok(server) = TcpStream::connect(server).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let turn = Turn { asked: Arc::default(), trips: Arc::clone(&counted) };
                for (from, to, passes, turn) in [
                    (from_client, to_server, forward.clone(), (true, turn.clone())),
                    (from_server, to_client, backward.clone(), (false, turn)),
                ] {
                    let mut is_cut = is_cut.clone();
                    is_cut.mark_unchanged();
                    tokio::spawn(async move {
                        tokio::select! {
                            () = pass(from, to, passes, turn) => {}
                            _ = is_cut.changed() => {}
                        }
                    });
                }
            }
        });
        Self { address, there, back, cut, trips }
    }

    pub(crate) fn cut(&self) {
        self.cut.send_replace(());
    }

    /// How often the server was sent something after it had answered what it was sent before.
    pub(crate) fn trips(&self) -> u64 {
        self.trips.load(Ordering::SeqCst)
    }
}

/// Which side of a connection has spoken last.
#[derive(Clone)]
struct Turn {
    asked: Arc<AtomicBool>,
    trips: Arc<AtomicU64>,
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut passes: watch::Receiver<bool>,
    (asks, turn): (bool, Turn),
) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if turn.asked.swap(asks, Ordering::SeqCst) != asks && asks {
            turn.trips.fetch_add(1, Ordering::SeqCst);
        }
        if passes.wait_for(|passes| *passes).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
