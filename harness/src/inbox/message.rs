//! What inbox messages say: answers, expiries, withdrawals, inputs, stops, ends of children.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{Fence, InterruptId, SessionId};
use crate::observe::trace::{Carrier, origin};
use crate::session::{Digest, InputKey, Resolution, Resolved};
use crate::store::{InboxSeq, Message, StoredMessage};

/// What a message says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Body {
    /// An answer to the interrupt that the message names.
    Answer(Given),
    /// The interrupt that the message names was not answered in time.
    Expired,
    /// The interrupt that the message names is no longer asked.
    Withdrawn,
    /// The run is to stop at the next boundary.
    Stop {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The input of the next turn.
    Input(Input),
    /// The id of an input with which the sender begins a turn itself.
    Begins,
    /// An input was applied, and its turn is over.
    Applied,
    /// An input was passed over, because it cannot be folded into the state.
    Skipped {
        /// Why, in words.
        why: String,
    },
    /// The turn of a session that this one has started is over.
    Child {
        /// The session.
        session: SessionId,
    },
}

/// An answer as a message carries it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) value: Value,
    pub(crate) digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    pub(crate) at: UtcMillis,
    /// The context of the span in which it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<Carrier>,
}

/// The input of a turn: an update of the state, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Input {
    pub(crate) update: Value,
    #[serde(flatten)]
    pub(crate) from: SentFrom,
}

/// When and where an input was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SentFrom {
    /// By the clock of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<UtcMillis>,
    /// The context of the span in which it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<Carrier>,
}

impl SentFrom {
    /// Here and now.
    pub(crate) fn here() -> Self {
        Self { at: Some(UtcMillis::now()), trace: origin() }
    }
}

/// A message that is not applied yet.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    pub(crate) seq: InboxSeq,
    pub(crate) key: String,
    pub(crate) digest: String,
    pub(crate) interrupt: Option<InterruptId>,
    /// `None` if it does not decode.
    pub(crate) body: Option<Body>,
}

/// The key under which the first answer, expiry or withdrawal of an interrupt decides.
pub(crate) fn interrupt_key(id: &InterruptId) -> String {
    format!("interrupt/{id}")
}

/// The key of a stop request to one holder.
pub(crate) fn stop_key(fence: Fence) -> String {
    format!("stop/{fence}")
}

/// The key under which it is noted that the input of `key` was applied.
pub(crate) fn applied_key(key: &str) -> String {
    format!("applied/{key}")
}

/// The key under which it is noted that the input of `key` was skipped.
fn skipped_key(key: &str) -> String {
    format!("skipped/{key}")
}

/// The key of an input: the first message under it decides which input has the id.
pub(crate) fn input_key(id: &str) -> String {
    format!("input/{id}")
}

/// What precedes the key of an input that is sent where a run has taken its id.
const QUEUED: &str = "queued/";

/// The key of the input that a message carries.
pub(crate) fn input_of(message_key: &str) -> &str {
    message_key.strip_prefix(QUEUED).unwrap_or(message_key)
}

impl Body {
    fn message(&self, key: String, digest: String, interrupt: Option<InterruptId>) -> Message {
        // What is made here consists of JSON values and text, which always encode.
        let body = serde_json::to_vec(self).unwrap_or_default();
        let expiry = matches!(self, Self::Expired);
        Message { interrupt, expiry, ..Message::new(key, digest, body) }
    }

    /// An answer's message.
    pub(crate) fn answer(
        id: &InterruptId,
        value: Value,
        by: Option<String>,
        at: UtcMillis,
    ) -> Message {
        let digest = Digest::of(&value);
        let given = Given { value, digest: digest.clone(), by, at, trace: origin() };
        let digest = format!("answer/{digest}");
        Self::Answer(given).message(interrupt_key(id), digest, Some(id.clone()))
    }

    pub(crate) fn expired(id: &InterruptId) -> Message {
        Self::Expired.message(interrupt_key(id), "expired".into(), Some(id.clone()))
    }

    pub(crate) fn withdrawn(id: &InterruptId) -> Message {
        Self::Withdrawn.message(interrupt_key(id), "withdrawn".into(), Some(id.clone()))
    }

    pub(crate) fn stop(fence: Fence, by: Option<String>) -> Message {
        Self::Stop { by }.message(stop_key(fence), "stop".into(), None)
    }

    pub(crate) fn input(id: &str, update: Value, from: SentFrom) -> Message {
        let digest = Digest::of(&update).to_string();
        Self::Input(Input { update, from }).message(input_key(id), digest, None)
    }

    /// The same input, where the message under its key carries none.
    pub(crate) fn queued(id: &str, update: Value, from: SentFrom) -> Message {
        let message = Self::input(id, update, from);
        Message { key: format!("{QUEUED}{}", message.key), ..message }
    }

    /// Takes the id of an input for a run that begins the turn itself.
    pub(crate) fn begins(input: &InputKey) -> Message {
        Self::Begins.message(input.key.clone(), input.digest.to_string(), None)
    }

    pub(crate) fn child(session: &SessionId) -> Message {
        let key = format!("child/{session}");
        Self::Child { session: session.clone() }.message(key, "child".into(), None)
    }

    pub(crate) fn applied(key: &str) -> Message {
        Self::Applied.message(applied_key(key), "applied".into(), None)
    }

    pub(crate) fn skipped(key: &str, why: &str) -> Message {
        let why = why.to_owned();
        Self::Skipped { why }.message(skipped_key(key), "skipped".into(), None)
    }

    /// Reads a message. `None` if it does not decode.
    pub(crate) fn read(message: &Message) -> Option<Self> {
        serde_json::from_slice(&message.body).ok()
    }

    /// How the message resolves its interrupt.
    fn resolution(self) -> Option<Resolution> {
        match self {
            Self::Answer(Given { value, digest, by, at, trace }) => {
                Some(Resolution::Answered { value, digest, by, at, trace })
            }
            Self::Expired => Some(Resolution::Expired),
            Self::Withdrawn => Some(Resolution::Withdrawn),
            Self::Stop { .. } | Self::Input(_) | Self::Begins => None,
            Self::Applied | Self::Skipped { .. } | Self::Child { .. } => None,
        }
    }
}

/// The messages as they are read.
pub(crate) fn unread(messages: Vec<StoredMessage>) -> Vec<Unread> {
    messages
        .into_iter()
        .map(|StoredMessage { seq, message, .. }| Unread {
            seq,
            body: Body::read(&message),
            key: message.key,
            digest: message.digest,
            interrupt: message.interrupt,
        })
        .collect()
}

/// Why the input of `key` was skipped, if it was.
pub(crate) fn why_skipped<'a>(messages: &'a [Unread], key: &str) -> Option<&'a str> {
    let noted = skipped_key(key);
    messages.iter().find(|message| message.key == noted).and_then(|message| match &message.body {
        Some(Body::Skipped { why }) => Some(&**why),
        _ => None,
    })
}

/// The inputs that wait for their turn, in the order in which they were sent, each with its key.
/// `current` is the key of the last turn's input.
pub(crate) fn waiting_inputs(
    messages: Vec<Unread>,
    current: Option<&str>,
) -> Vec<(String, InboxSeq, Input)> {
    let applied: std::collections::HashSet<String> = messages
        .iter()
        .filter(|message| matches!(message.body, Some(Body::Applied)))
        .map(|message| message.key.clone())
        .collect();
    let waiting = messages.into_iter().filter_map(|message| {
        let Some(Body::Input(input)) = message.body else { return None };
        let key = input_of(&message.key);
        let known = current == Some(key) || applied.contains(&applied_key(key));
        (!known).then(|| (key.to_owned(), message.seq, input))
    });
    waiting.collect()
}

/// How messages resolve interrupts: of several about one, the first.
pub(crate) fn resolutions(unread: Vec<Unread>) -> Vec<Resolved> {
    let mut seen = std::collections::HashSet::new();
    let mut resolved: Vec<Resolved> = Vec::new();
    for message in unread {
        let (Some(id), Some(body)) = (message.interrupt, message.body) else { continue };
        if let Some(resolution) = body.resolution()
            && seen.insert(id.clone())
        {
            resolved.push(Resolved { id, resolution, inbox: message.seq });
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn answers_and_inputs_keep_where_they_come_from() {
        let trace = || Some(Carrier::from([("traceparent".to_owned(), "00-1-2-01".to_owned())]));
        let at = UtcMillis(1_763_729_326_129);
        let from = SentFrom { at: Some(at), trace: trace() };
        let input = Body::Input(Input { update: Value::Null, from });
        let (value, digest) = (Value::Null, Digest::of(&Value::Null));
        let answer = Body::Answer(Given { value, digest, by: None, at, trace: trace() });
        for (body, stored) in [
            (
                input,
                r#"{"input":{"update":null,"at":1763729326129,"trace":{"traceparent":"00-1-2-01"}}}"#,
            ),
            (
                answer,
                r#"{"answer":{"value":null,"digest":"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","at":1763729326129,"trace":{"traceparent":"00-1-2-01"}}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&body).unwrap(), stored);
            assert_eq!(serde_json::from_str::<Body>(stored).unwrap(), body);
        }
    }

    /// Each kind of message, and its stored form, which is pinned.
    fn kept() -> Vec<(Message, &'static str)> {
        let id = InterruptId::new("3-aa");
        let (at, sam) = (UtcMillis(1_763_729_326_129), || Some("Sam".to_owned()));
        let value = || json!({"text": "Grüß\n", "ok": true});
        vec![
            (
                Body::answer(&id, value(), sam(), at),
                r#"{"key":"interrupt/3-aa","digest":"answer/744739c30d7b20c1d5766d1c4a9c0e5abb9aa1bd1fe37378e7a8d642cc180e04","interrupt":"3-aa","body":{"answer":{"value":{"ok":true,"text":"Grüß\n"},"digest":"744739c30d7b20c1d5766d1c4a9c0e5abb9aa1bd1fe37378e7a8d642cc180e04","by":"Sam","at":1763729326129}}}"#,
            ),
            (
                Body::answer(&id, Value::Null, None, at),
                r#"{"key":"interrupt/3-aa","digest":"answer/74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","interrupt":"3-aa","body":{"answer":{"value":null,"digest":"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","at":1763729326129}}}"#,
            ),
            (
                Body::expired(&id),
                r#"{"key":"interrupt/3-aa","digest":"expired","interrupt":"3-aa","expiry":true,"body":"expired"}"#,
            ),
            (
                Body::withdrawn(&id),
                r#"{"key":"interrupt/3-aa","digest":"withdrawn","interrupt":"3-aa","body":"withdrawn"}"#,
            ),
            (
                Body::stop(Fence(7), sam()),
                r#"{"key":"stop/7","digest":"stop","body":{"stop":{"by":"Sam"}}}"#,
            ),
            (Body::stop(Fence(7), None), r#"{"key":"stop/7","digest":"stop","body":{"stop":{}}}"#),
            (
                Body::input("order/17", value(), SentFrom::default()),
                r#"{"key":"input/order/17","digest":"744739c30d7b20c1d5766d1c4a9c0e5abb9aa1bd1fe37378e7a8d642cc180e04","body":{"input":{"update":{"ok":true,"text":"Grüß\n"}}}}"#,
            ),
            (
                Body::queued("order/17", Value::Null, SentFrom::default()),
                r#"{"key":"queued/input/order/17","digest":"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","body":{"input":{"update":null}}}"#,
            ),
            (
                Body::begins(&InputKey {
                    key: "input/order/17".into(),
                    digest: Digest::of(&Value::Null),
                }),
                r#"{"key":"input/order/17","digest":"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","body":"begins"}"#,
            ),
            (
                Body::applied("input/order/17"),
                r#"{"key":"applied/input/order/17","digest":"applied","body":"applied"}"#,
            ),
            (
                Body::child(&SessionId::new("child-7").unwrap()),
                r#"{"key":"child/child-7","digest":"child","body":{"child":{"session":"child-7"}}}"#,
            ),
        ]
    }

    fn line(message: &Message) -> String {
        let Message { key, digest, interrupt, expiry, body } = message;
        let text = |text: &str| serde_json::to_string(text).unwrap();
        let mut line = format!(r#"{{"key":{},"digest":{}"#, text(key), text(digest));
        if let Some(interrupt) = interrupt {
            line += &format!(r#","interrupt":{}"#, text(interrupt.as_str()));
        }
        if *expiry {
            line += r#","expiry":true"#;
        }
        line + &format!(r#","body":{}}}"#, std::str::from_utf8(body).unwrap())
    }

    #[test]
    fn the_stored_form_of_a_message_is_pinned() {
        for (message, kept) in kept() {
            assert_eq!(line(&message), kept);
        }
    }

    #[test]
    fn a_stored_message_is_read() {
        let said: Vec<Body> = kept()
            .into_iter()
            .map(|(message, kept)| {
                let (_, body) = kept.split_once(r#""body":"#).unwrap();
                let body = body.strip_suffix('}').unwrap().as_bytes().to_vec();
                Body::read(&Message { body, ..message }).unwrap()
            })
            .collect();
        let at = UtcMillis(1_763_729_326_129);
        let answer = |value: Value, by: Option<&str>| {
            let digest = Digest::of(&value);
            Body::Answer(Given { value, digest, by: by.map(str::to_owned), at, trace: None })
        };
        let value = json!({"ok": true, "text": "Grüß\n"});
        let expected = [
            answer(value.clone(), Some("Sam")),
            answer(Value::Null, None),
            Body::Expired,
            Body::Withdrawn,
            Body::Stop { by: Some("Sam".to_owned()) },
            Body::Stop { by: None },
            Body::Input(Input { update: value, from: SentFrom::default() }),
            Body::Input(Input { update: Value::Null, from: SentFrom::default() }),
            Body::Begins,
            Body::Applied,
            Body::Child { session: SessionId::new("child-7").unwrap() },
        ];
        assert_eq!(said, expected);
    }
}
