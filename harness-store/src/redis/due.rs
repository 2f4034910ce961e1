//! Claiming sessions that are due.

use std::time::Duration;

use harness::SessionId;
use harness::store::{DueRequest, DueSessions, StoreError, Token};
use redis::{Cmd, Value};

use super::claim::claimed;
use super::frame::micros;
use super::inner::Inner;
use super::reply::Reply;
use super::scripts;

/// The most sessions that one call claims: the server does nothing else meanwhile.
const MOST: u32 = 100;

pub(crate) async fn claim_due(
    inner: &Inner,
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
    let due = inner.client.call(&scripts::CLAIM_DUE, arguments, read).await?;
    for claimed in &due.claimed {
        inner.known.held(&claimed.lease, Some(claimed.head), ttl);
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
