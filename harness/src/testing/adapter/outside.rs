//! The server of the suite, for tests of one's own.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::llm::{Delta, Llm};

use super::server::{Play, Server};
use super::wire::{Wire, WireRequest};

/// A server in this process that speaks through a [`Wire`], for tests of loops that call a model over
/// HTTP. It is gone when it is dropped.
///
/// ```no_run
/// use harness::llm::{Delta, StopReason};
/// use harness::testing::{Wire, WireServer};
///
/// # async fn example(wire: impl Wire) -> std::io::Result<()> {
/// let hello = vec![Delta::Text("hello".into()), Delta::Stop(StopReason::End)];
/// let server = WireServer::start(wire, [hello]).await?;
/// let model = server.adapter("a key");
/// // .. one call of the model ..
/// assert_eq!(server.seen().len(), 1);
/// # let _ = model;
/// # Ok(())
/// # }
/// ```
pub struct WireServer {
    server: Server,
    wire: Arc<dyn Wire>,
}

impl WireServer {
    /// Starts a server that replies to the first request with the first of these replies, and so on.
    /// A request that the vendor rejects gets its error, and uses no reply.
    ///
    /// # Errors
    ///
    /// The loopback interface takes no connections.
    pub async fn start(
        wire: impl Wire,
        replies: impl IntoIterator<Item = Vec<Delta>>,
    ) -> io::Result<Self> {
        let wire: Arc<dyn Wire> = Arc::new(wire);
        let plays: Vec<_> = replies.into_iter().map(Play::Reply).collect();
        Ok(Self { server: Server::of(wire.clone(), plays).await?, wire })
    }

    /// The adapter of the wire, which sends its requests to this server.
    pub fn adapter(&self, key: &str) -> Arc<dyn Llm> {
        self.wire.adapter(self.server.url(), key)
    }

    /// The requests so far, with those that were rejected.
    pub fn seen(&self) -> Vec<WireRequest> {
        self.server.seen()
    }
}

impl fmt::Debug for WireServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireServer")
            .field("protocol", &self.wire.protocol())
            .field("url", &self.server.url())
            .finish()
    }
}
