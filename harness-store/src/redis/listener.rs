//! Waiting until sessions may be due.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use harness::id::AgentId;
use tokio::sync::{broadcast, oneshot};

use super::client::Client;

/// Whether this store listens to what becomes due. It begins with the first wait.
#[derive(Debug, Default)]
pub(crate) struct Listener(Mutex<Option<Listening>>);

#[derive(Debug)]
struct Listening {
    agents: broadcast::WeakSender<String>,
    /// The task ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Listener {
    /// Waits until a session of these agents becomes due. What becomes due before the store listens,
    /// the caller finds when it asks again: the wait ends then.
    pub(crate) async fn wait(&self, client: &Client, agents: &[AgentId], timeout: Duration) {
        let wait = async {
            let Some(mut heard) = self.agents() else {
                if !self.listen(client).await {
                    std::future::pending::<()>().await;
                }
                return;
            };
            while let Ok(agent) = heard.recv().await {
                if agents.iter().any(|own| own.as_str() == agent) {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(timeout, wait).await;
    }

    fn slot(&self) -> MutexGuard<'_, Option<Listening>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agents whose sessions become due from now on; `None` if it does not listen.
    fn agents(&self) -> Option<broadcast::Receiver<String>> {
        let sender = self.slot().as_ref()?.agents.upgrade()?;
        Some(sender.subscribe())
    }

    /// Starts to listen. Says whether that was possible.
    async fn listen(&self, client: &Client) -> bool {
        let Some(connection) = client.listen().await else { return false };
        let (sender, (stop, mut stopped)) = (broadcast::Sender::new(64), oneshot::channel());
        *self.slot() = Some(Listening { agents: sender.downgrade(), _stop: stop });
        tokio::spawn(async move {
            let mut messages = connection.into_on_message();
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    _ = &mut stopped => None,
                };
                // The end of the connection, or of the store.
                let Some(message) = message else { return };
                // No store may wait at the moment.
                let agent = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
                let _ = sender.send(agent);
            }
        });
        true
    }
}
