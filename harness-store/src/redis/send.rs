//! Messages: adding them to the inbox of a session.

use harness::SessionId;
use harness::store::{InboxSeq, Message, Sent, StoreError};
use redis::Cmd;

use crate::sql::{corrupt, messages_size};

use super::error::{damaged, unexpected};
use super::frame::{pack, unpack};
use super::inner::Inner;
use super::reply::Reply;
use super::scripts;

pub(crate) async fn send(
    inner: &Inner,
    id: &SessionId,
    messages: &[Message],
) -> Result<Sent, StoreError> {
    messages_size(messages)?;
    let arguments = |command: &mut Cmd| {
        command.arg(messages.len());
        for message in messages {
            let interrupt = message.interrupt.as_ref().map(|id| id.as_str());
            command.arg(&message.key).arg(&message.digest);
            command.arg(u8::from(interrupt.is_some())).arg(interrupt.unwrap_or_default());
            command.arg(u8::from(message.expiry)).arg(pack(id, message));
        }
    };
    let read = |reply: Reply<'_>| {
        let key = || reply.text(1).map(str::to_owned).ok_or_else(|| unexpected("no key"));
        match reply.name() {
            "accepted" => Ok(Sent::Accepted(InboxSeq(reply.count(1)?))),
            "late" => Ok(Sent::TooLate { key: key()? }),
            "taken" => match reply.bytes(2).and_then(|stored| unpack(id, stored)) {
                Some(first) => Ok(Sent::Taken { key: key()?, first }),
                None => Err(corrupt(id, 0, "a message is not what was sent")),
            },
            "gone" => Err(StoreError::Gone { session: id.clone() }),
            "damaged" => Err(damaged(id, reply.count(1)?)),
            _ => Err(reply.unexpected("nothing about a message")),
        }
    };
    inner.client.call_on(&scripts::SEND, id, arguments, read).await
}
