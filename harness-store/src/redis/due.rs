//! Sessions that are due: claiming them, and waiting until there may be some.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use harness::SessionId;
use harness::id::AgentId;
use harness::store::{DueRequest, DueSessions, StoreError, Token};
use redis::{Cmd, Value};
use tokio::sync::{broadcast, oneshot};

use super::claim::{claimed, micros};
use super::reply::Reply;
use super::scripts;
use super::store::RedisStore;

/// The most sessions that one call claims: the server does nothing else meanwhile.
const MOST: u32 = 100;

pub(crate) async fn claim_due(
    store: &RedisStore,
    request: &DueRequest,
    ttl: Duration,
) -> Result<DueSessions, StoreError> {
    let tokens: Vec<Token> = (0..request.limit.min(MOST)).map(|_| Token::random()).collect();
    let arguments = |command: &mut Cmd| {
        command.arg("").arg(micros(ttl)).arg(tokens.len()).arg(request.agents.len());
        for agent in &request.agents {
            command.arg(agent.as_str());
        }
        command.arg(request.except.len());
        for session in &request.except {
            command.arg(session.as_str());
        }
        for token in &tokens {
            command.arg(token.to_string());
        }
    };
    let read = |reply: Reply<'_>| match reply.name() {
        "due" => due(reply, &tokens),
        _ => Err(reply.unexpected("nothing about due sessions")),
    };
    let due = store.client.call(&scripts::CLAIM_DUE, arguments, read).await?;
    for claimed in &due.claimed {
        store.known.held(&claimed.lease, Some(claimed.head), ttl);
    }
    Ok(due)
}

fn due(reply: Reply<'_>, tokens: &[Token]) -> Result<DueSessions, StoreError> {
    let mut due = DueSessions::default();
    let mut tokens = tokens.iter();
    for value in reply.0.get(1..).unwrap_or_default() {
        let pair = Reply::new(value)?;
        let (id, answer) = (pair.text(0), pair.0.get(1).unwrap_or(&Value::Nil));
        let Some(id) = id.and_then(|id| SessionId::new(id).ok()) else { continue };
        let answer = Reply::new(answer)?;
        if answer.name() == "busy" {
            continue;
        }
        // Each claim has used up one, in their order.
        let own = match answer.name() {
            "claimed" => tokens.next().copied(),
            _ => None,
        };
        match claimed(&id, own.unwrap_or_else(Token::random), answer) {
            Ok(claimed) => due.claimed.push(claimed),
            Err(error) => due.failed.push((id, error)),
        }
    }
    Ok(due)
}

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
    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Listening>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agents whose sessions become due from now on; `None` if it does not listen.
    fn agents(&self) -> Option<broadcast::Receiver<String>> {
        let sender = self.slot().as_ref()?.agents.upgrade()?;
        Some(sender.subscribe())
    }
}

/// What becomes due before the store listens, the caller finds when it asks again: the wait ends then.
pub(crate) async fn wait_due(store: &RedisStore, agents: &[AgentId], timeout: Duration) {
    let wait = async {
        let Some(mut heard) = store.listener.agents() else {
            if !listen(store).await {
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

/// Starts to listen. Says whether that was possible.
async fn listen(store: &RedisStore) -> bool {
    let Some(connection) = store.client.listen().await else { return false };
    let (sender, (stop, mut stopped)) = (broadcast::Sender::new(64), oneshot::channel());
    *store.listener.slot() = Some(Listening { agents: sender.downgrade(), _stop: stop });
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
            let _ = sender.send(String::from_utf8_lossy(message.get_payload_bytes()).into_owned());
        }
    });
    true
}
