//! Claiming sessions that are due, by an index, and past those that another transaction claims.

use std::time::Duration;

use harness::SessionId;
use harness::store::{DueRequest, DueSessions, StoreError, Token};

use super::batch::{get, token};
use super::claim::{claimed, damaged, micros};
use super::client::Client;
use super::error::unexpected;

/// The most sessions in one call.
const MOST: u32 = 1_000;

pub(crate) async fn claim_due(
    client: &Client,
    request: &DueRequest,
    ttl: Duration,
) -> Result<DueSessions, StoreError> {
    let tokens: Vec<Token> = (0..request.limit.min(MOST)).map(|_| Token::random()).collect();
    let bytes: Vec<Vec<u8>> = tokens.iter().copied().map(token).collect();
    let agents: Vec<&[u8]> = request.agents.iter().map(|it| it.as_str().as_bytes()).collect();
    let except: Vec<&[u8]> = request.except.iter().map(|it| it.as_str().as_bytes()).collect();
    let text = "SELECT * FROM claim_due_3($1, $2, $3, $4)";
    let rows = client.query(text, &[&agents, &except, &bytes, &micros(ttl)], true).await?;
    let (mut due, mut tokens) = (DueSessions::default(), tokens.into_iter());
    for row in &rows {
        let id = String::from_utf8(get::<&[u8]>(row, 7)?.to_vec()).ok();
        let id = id.and_then(|id| SessionId::new(id).ok());
        let id = id.ok_or_else(|| unexpected("an id that is not text"))?;
        if let Some(after) = get::<Option<i64>>(row, 0)? {
            due.failed.push((id.clone(), damaged(&id, after)));
            continue;
        }
        let own = tokens.next().ok_or_else(|| unexpected("more sessions than asked for"))?;
        match claimed(&id, own, row) {
            Ok(claimed) => due.claimed.push(claimed),
            Err(error) => due.failed.push((id, error)),
        }
    }
    Ok(due)
}
