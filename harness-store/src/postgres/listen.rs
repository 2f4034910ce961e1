//! Notices of sessions that may have become due, on a connection of their own.
//!
//! They only save time: one that is lost, or a server between that passes none on, leaves the session to
//! the next call that asks for what is due.

use std::sync::Arc;
use std::time::Duration;

use harness::id::AgentId;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, broadcast};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls};

use super::options::PostgresStoreOptions;
use super::tls::Tls;

/// How many notices may wait for a task that is slow to read them; it then counts as notified.
const NOTICES: usize = 256;

#[derive(Clone)]
pub(crate) struct Listener(Arc<Shared>);

struct Shared {
    config: Config,
    tls: Tls,
    channel: String,
    connect: Duration,
    current: Mutex<Option<Listening>>,
}

/// A connection that listens as long as this is kept.
struct Listening {
    client: Client,
    notices: broadcast::Receiver<String>,
}

/// What the server calls a text in a notice: it has a limit for its length.
fn name(text: &str) -> String {
    Sha256::digest(text.as_bytes())[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Listener {
    pub(crate) fn new(config: Config, tls: Tls, options: &PostgresStoreOptions) -> Self {
        let (channel, connect) = (format!("harness_{}", name(&options.schema)), options.connect);
        Self(Arc::new(Shared { config, tls, channel, connect, current: Mutex::default() }))
    }

    /// Waits until a session of one of these agents may have become due.
    pub(crate) async fn notified(&self, agents: &[AgentId]) {
        let names: Vec<String> = agents.iter().map(|agent| name(agent.as_str())).collect();
        let Some(mut notices) = self.0.notices().await else { return };
        // A missed notice, or the end of the connection, may have been about any.
        while notices.recv().await.is_ok_and(|agent| !names.contains(&agent)) {}
    }
}

impl Shared {
    /// What the connection hears from now on. `None` if it has not listened all the time since this
    /// was called; without a connection, it never returns.
    async fn notices(&self) -> Option<broadcast::Receiver<String>> {
        let Ok(mut current) = self.current.try_lock() else {
            drop(self.current.lock().await);
            return None;
        };
        if let Some(listening) = current.as_ref().filter(|it| !it.client.is_closed()) {
            return Some(listening.notices.resubscribe());
        }
        if let Ok(Ok(listening)) = tokio::time::timeout(self.connect, self.listen()).await {
            *current = Some(listening);
            return None;
        }
        // The caller asks again by itself, which says what is wrong with the server.
        drop(current);
        std::future::pending().await
    }

    async fn listen(&self) -> Result<Listening, Error> {
        let (send, notices) = broadcast::channel(NOTICES);
        let client = match &self.tls {
            Tls::Off => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(pass_on(connection, send));
                client
            }
            #[cfg(feature = "postgres-tls")]
            Tls::On(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                tokio::spawn(pass_on(connection, send));
                client
            }
        };
        client.batch_execute(&format!("LISTEN {}", self.channel)).await?;
        Ok(Listening { client, notices })
    }
}

async fn pass_on<S, T>(mut connection: Connection<S, T>, to: broadcast::Sender<String>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) =
        std::future::poll_fn(|context| connection.poll_message(context)).await
    {
        if let AsyncMessage::Notification(notice) = message {
            // Nothing may be waiting just now.
            let _ = to.send(notice.payload().to_owned());
        }
    }
}
