//! The inbox: what processes send that do not hold a session.

use std::collections::HashMap;

use harness::store::{InboxSeq, Message, OpenInterrupt, Sent, StoreError, StoredMessage, rules};
use harness::{InterruptId, SessionId, UtcMillis};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::sql::corrupt;

use super::batch::{MAX_SEQ, place};
use super::error::Fault;
use super::row::{self, Session, number};
use super::shared::Known;

pub(crate) fn send(
    conn: &Connection,
    known: &Known,
    to: &SessionId,
    messages: &[Message],
) -> Result<Sent, Fault> {
    let Some(before) = Session::find(conn, to)?.filter(Session::exists) else {
        return Err(StoreError::Gone { session: to.clone() }.into());
    };
    known.check(conn, &before)?;
    let mut kept: HashMap<String, Message> = HashMap::new();
    let mut open: HashMap<InterruptId, OpenInterrupt> = HashMap::new();
    for message in messages {
        if let Some(first) = under(conn, &before, &message.key)? {
            kept.insert(first.key.clone(), first);
        }
        if let Some(id) = &message.interrupt
            && let Some(found) = row::interrupt(conn, &before, id)?
        {
            open.insert(id.clone(), found);
        }
    }
    let judge = |messages, now| {
        rules::judge_messages(messages, |key| kept.get(key), |id| open.get(id), now)
            .map(|new| new.into_iter().cloned().collect::<Vec<_>>())
    };
    let new = match judge(messages, UtcMillis::now()) {
        Ok(new) => new,
        Err(refused) => return Ok(refused),
    };
    if new.is_empty() {
        return Ok(Sent::Accepted(InboxSeq(before.inbox)));
    }
    let mut session = before.clone();
    for message in &new {
        session.inbox += 1;
        if session.inbox > MAX_SEQ {
            return Err(
                StoreError::Full("an inbox has at most 4,294,967,295 messages".into()).into()
            );
        }
        conn.prepare_cached("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
            params![
                place(&session, session.inbox),
                session.key,
                message.key.as_bytes(),
                message.digest.as_bytes(),
                message.interrupt.as_ref().map(|id| id.as_str().as_bytes()),
                message.expiry,
                message.body,
                sum(&session, session.inbox, message)
            ],
        )?;
    }
    session.update(conn, Some(&before))?;
    Ok(Sent::Accepted(InboxSeq(session.inbox)))
}

fn sum(session: &Session, seq: u64, message: &Message) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    let numbers = [session.made.cast_unsigned(), seq, u64::from(message.expiry)];
    numbers.iter().for_each(|number| sum.update(&number.to_le_bytes()));
    let interrupt = message.interrupt.as_ref().map_or("", InterruptId::as_str).as_bytes();
    for part in [message.key.as_bytes(), message.digest.as_bytes(), interrupt, &message.body] {
        sum.update(&(part.len() as u64).to_le_bytes());
        sum.update(part);
    }
    sum.finalize()
}

const COLUMNS: &str = "place, key, digest, interrupt, expiry, body, sum";

fn read(row: &Row<'_>, session: &Session) -> Result<StoredMessage, Fault> {
    let damaged = || Fault::from(corrupt(&session.id, session.head, "a message is damaged"));
    let text = |column| match String::from_utf8(row.get(column)?) {
        Ok(text) => Ok(text),
        Err(_) => Err(damaged()),
    };
    let seq = number(row, 0)? & 0xffff_ffff;
    let mut message = Message::new(text(1)?, text(2)?, row.get::<_, Vec<u8>>(5)?);
    if let Some(id) = row.get::<_, Option<Vec<u8>>>(3)? {
        message.interrupt = Some(InterruptId::new(String::from_utf8(id).map_err(|_| damaged())?));
    }
    message.expiry = number(row, 4)? != 0;
    match u64::from(sum(session, seq, &message)) == number(row, 6)? {
        true => Ok(StoredMessage::new(InboxSeq(seq), message)),
        false => Err(damaged()),
    }
}

/// The message under a key.
fn under(conn: &Connection, session: &Session, key: &str) -> Result<Option<Message>, Fault> {
    let mut select = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM message WHERE session = ? AND key = ?"))?;
    let found = select
        .query_row(params![session.key, key.as_bytes()], |row| Ok(read(row, session)))
        .optional()?;
    Ok(found.transpose()?.map(|stored| stored.message))
}

/// The messages after one, in order.
pub(crate) fn messages_after(
    conn: &Connection,
    session: &Session,
    after: InboxSeq,
) -> Result<Vec<StoredMessage>, Fault> {
    if after.0 >= session.inbox {
        return Ok(Vec::new());
    }
    let mut select = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM message WHERE place BETWEEN ? AND ? ORDER BY place"
    ))?;
    let mut rows = select.query((place(session, after.0 + 1), place(session, session.inbox)))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row, session)?);
    }
    let numbers = found.iter().map(|stored| stored.seq.0);
    match numbers.eq(after.0 + 1..=session.inbox) {
        true => Ok(found),
        false => Err(corrupt(&session.id, session.head, "messages are missing").into()),
    }
}
