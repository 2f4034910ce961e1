//! Messages: adding them to the inbox of a session, in a transaction that holds its row.

use std::collections::HashMap;

use harness::store::{InboxSeq, Message, OpenInterrupt, Sent, StoreError, rules};
use harness::{InterruptId, Seq, SessionId, UtcMillis};

use crate::sql::{corrupt, messages_size};

use super::batch::{get, message_sum};
use super::client::Client;
use super::error::unexpected;
use super::read::{found, interrupt, message};

pub(crate) async fn send(
    client: &Client,
    id: &SessionId,
    messages: &[Message],
) -> Result<Sent, StoreError> {
    messages_size(messages)?;
    let mut connection = client.connection().await?;
    connection.begin().await?;
    let keys: Vec<&[u8]> = messages.iter().map(|message| message.key.as_bytes()).collect();
    let interrupts = messages.iter().filter_map(|message| message.interrupt.as_ref());
    let interrupts: Vec<&[u8]> = interrupts.map(|id| id.as_str().as_bytes()).collect();
    let session = id.as_str().as_bytes();
    let text = "SELECT * FROM inbox_3($1, $2, $3)";
    let rows = connection.query(text, &[&session, &keys, &interrupts], false).await?;
    let rows = found(&rows)?;
    let Some(row) = rows.first() else {
        connection.end().await?;
        return Err(StoreError::Gone { session: id.clone() });
    };
    if let Some(after) = row.number(3) {
        connection.end().await?;
        let what = "the next batch is missing, or is not what was written";
        return Err(corrupt(id, after.cast_unsigned(), what));
    }
    let now = UtcMillis(row.count(2) / 1_000);
    let (mut stored, mut open) = (HashMap::new(), HashMap::<InterruptId, OpenInterrupt>::new());
    for row in &rows {
        match row.kind {
            2 => {
                let (_, message) = message(id, Seq(0), row)?;
                stored.insert(message.key.clone(), message);
            }
            3 => {
                let interrupt = interrupt(id, Seq(0), row)?;
                open.insert(interrupt.id.clone(), interrupt);
            }
            _ => {}
        }
    }
    let judged = rules::judge_messages(messages, |key| stored.get(key), |id| open.get(id), now);
    let new = match judged {
        Ok(new) if new.is_empty() => {
            let last = InboxSeq(row.count(1));
            connection.end().await?;
            return Ok(Sent::Accepted(last));
        }
        Ok(new) => new,
        Err(refused) => {
            connection.end().await?;
            return Ok(refused);
        }
    };
    let all = |part: fn(&Message) -> &[u8]| new.iter().map(|it| part(it)).collect::<Vec<_>>();
    let (keys, digests, bodies) =
        (all(|it| it.key.as_bytes()), all(|it| it.digest.as_bytes()), all(|it| &it.body));
    let interrupts: Vec<Option<&[u8]>> = new
        .iter()
        .map(|message| message.interrupt.as_ref().map(|id| id.as_str().as_bytes()))
        .collect();
    let expiries: Vec<bool> = new.iter().map(|message| message.expiry).collect();
    let sums: Vec<Vec<u8>> = new.iter().map(|message| message_sum(id, message)).collect();
    let key = row.number(0).unwrap_or_default();
    let text = "SELECT put_3($1, $2, $3, $4, $5, $6, $7)";
    let values: [super::client::Value<'_>; 7] =
        [&key, &keys, &digests, &interrupts, &expiries, &bodies, &sums];
    let last = connection.query(text, &values, false).await?;
    let last: i64 = get(last.first().ok_or_else(|| unexpected("no row"))?, 0)?;
    connection.commit().await?;
    Ok(Sent::Accepted(InboxSeq(last.cast_unsigned())))
}
