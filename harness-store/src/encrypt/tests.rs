#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use harness::store::{
    Batch, InboxSeq, Lease, MemoryStore, Message, NewEntry, Page, ReadRequest, Remove, Sent,
    SessionStore, SessionSummary, StoreError,
};
use harness::{Seq, SessionId, UtcMillis};
use proptest::collection::vec;
use proptest::prelude::*;

use super::cipher::{DecryptError, Place};
use super::{Encrypted, Key, KeyError, Keys};

const LONG: Duration = Duration::from_secs(600);

fn key(id: &str, secret: u8) -> Key {
    Key::new(id, [secret; 32]).unwrap()
}

fn keys() -> Keys {
    Keys::new(key("k", 1))
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn ended() -> SessionSummary {
    let json = r#"{"agent":"a","phase":"ended","step":"S"}"#;
    serde_json::from_str(json).unwrap()
}

async fn claim(store: &impl SessionStore, session: &str) -> Lease {
    store.claim(&id(session), LONG).await.unwrap().lease
}

/// Appends one entry to a session that was created at `created`.
async fn append(
    store: &impl SessionStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
    created: u64,
) -> Result<Seq, StoreError> {
    let summary = ended();
    let batch = Batch {
        after: Seq(after),
        at: UtcMillis(created + after),
        entries: &[NewEntry { bytes, snapshot: false }],
        summary: Some(&summary),
        ..Batch::default()
    };
    store.append(lease, batch).await.map(|appended| appended.head)
}

async fn page(store: &impl SessionStore, session: &str) -> Result<Page, StoreError> {
    let all = ReadRequest::from(Seq(1)).with_messages_after(InboxSeq(0));
    store.read(&id(session), all).await.map(Option::unwrap)
}

async fn texts(store: &impl SessionStore, session: &str) -> Result<Vec<String>, StoreError> {
    let entries = page(store, session).await?.entries.into_iter();
    Ok(entries.map(|entry| String::from_utf8(entry.bytes).unwrap()).collect())
}

proptest! {
    #[test]
    fn bytes_are_decrypted_in_their_place_only(
        bytes in vec(any::<u8>(), 0..200),
        parts in vec(vec(any::<u8>(), 0..4), 0..4),
        others in vec(vec(any::<u8>(), 0..4), 0..4),
    ) {
        let place = |parts: &[Vec<u8>]| {
            Place::new("x", &parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        let encrypted = keys().encrypt(&place(&parts), &bytes);
        prop_assert_eq!(encrypted.len(), bytes.len() + 51);
        prop_assert_eq!(&keys().encrypt(&place(&parts), &bytes), &encrypted, "the same bytes again");
        prop_assert_eq!(keys().decrypt(&place(&parts), &encrypted), Ok(bytes));
        if others != parts {
            prop_assert_eq!(keys().decrypt(&place(&others), &encrypted), Err(DecryptError::Damaged));
        }
    }

    #[test]
    fn changed_and_cut_bytes_are_damaged(
        bytes in vec(any::<u8>(), 0..40),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let place = Place::new("x", &[]);
        let mut encrypted = keys().encrypt(&place, &bytes);
        let at = at.index(encrypted.len());
        let expected = Err(if at == 0 { DecryptError::Plain } else { DecryptError::Damaged });
        encrypted[at] ^= 1_u8 << bit;
        prop_assert_eq!(keys().decrypt(&place, &encrypted), expected.clone());
        encrypted[at] ^= 1_u8 << bit;
        prop_assert_eq!(keys().decrypt(&place, &encrypted[..at]), expected);
    }
}

#[test]
fn a_key_that_is_not_at_hand_is_named() {
    let place = Place::new("x", &[]);
    let encrypted = keys().encrypt(&place, b"secret");
    let open = |keys: Keys| keys.decrypt(&place, &encrypted);
    assert_eq!(open(Keys::new(key("new", 2))), Err(DecryptError::Missing("k".into())));
    assert_eq!(open(Keys::new(key("k", 2))), Err(DecryptError::Wrong("k".into())));
    for keys in [Keys::new(key("new", 2)), Keys::new(key("k", 2))] {
        assert_eq!(open(keys.also(key("k", 1))), Ok(b"secret".to_vec()));
    }
    assert_eq!(keys().decrypt(&place, b"{}"), Err(DecryptError::Plain));
    assert_eq!(keys().decrypt(&place, b""), Err(DecryptError::Plain));
}

#[test]
fn keys_are_checked_and_show_their_ids_only() {
    let hex = "a5".repeat(32);
    let key = Key::from_hex("k", &format!(" {hex}\n")).unwrap();
    let place = Place::new("x", &[]);
    let same = Keys::new(Key::new("k", [0xa5; 32]).unwrap()).encrypt(&place, b"1");
    assert_eq!(Keys::new(key.clone()).encrypt(&place, b"1"), same);
    for wrong in
        ["", "a5", &hex[1..], &hex.replace('a', "g"), &format!("{hex}a5"), &hex.replace("5a", "é")]
    {
        assert_eq!(Key::from_hex("k", wrong).unwrap_err(), KeyError::Hex, "{wrong}");
    }
    for wrong in [String::new(), "k".repeat(256)] {
        assert_eq!(Key::new(&wrong, [0; 32]).unwrap_err(), KeyError::Id { found: wrong.len() });
    }
    let store = Encrypted::new(MemoryStore::new(), Keys::new(key).also(self::key("old", 2)));
    let printed = format!("{store:?} {:#?}", store);
    assert!(printed.contains("Key(k)") && printed.contains("Key(old)"), "{printed}");
    assert!(!printed.contains("165") && !printed.contains("a5"), "{printed}");
}

#[tokio::test]
async fn errors_name_the_session_and_the_key_and_never_the_secret() {
    let inner = MemoryStore::new();
    let store = Encrypted::new(inner.clone(), keys());
    let lease = claim(&store, "s").await;
    append(&store, &lease, 0, b"door code 4711", 5).await.unwrap();
    let missing = Encrypted::new(inner.clone(), Keys::new(key("other", 9)));
    let error = texts(&missing, "s").await.unwrap_err();
    assert!(matches!(&error, StoreError::MissingKey { key, .. } if key == "k"), "{error}");
    assert!(error.to_string().contains("session `s` is encrypted with the key `k`"), "{error}");
    let wrong = Encrypted::new(inner.clone(), Keys::new(key("k", 9)));
    let error = texts(&wrong, "s").await.unwrap_err();
    assert!(matches!(&error, StoreError::WrongKey { key, .. } if key == "k"), "{error}");
    let plain = claim(&inner, "plain").await;
    append(&inner, &plain, 0, b"{}", 5).await.unwrap();
    let error = texts(&store, "plain").await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("entry 1 is not encrypted"), "{error}");
}

/// Bytes that are sound elsewhere: at another number, in another session, in one of the same id that
/// was removed.
#[tokio::test]
async fn moved_entries_are_corrupt() {
    let inner = MemoryStore::new();
    let store = Encrypted::new(inner.clone(), keys());
    for (session, created) in [("x", 5), ("y", 5), ("z", 6)] {
        let lease = claim(&store, session).await;
        append(&store, &lease, 0, b"1", created).await.unwrap();
        append(&store, &lease, 1, b"2", created).await.unwrap();
        assert_eq!(texts(&store, session).await.unwrap(), ["1", "2"]);
        store.release(&lease, InboxSeq(0)).await.unwrap();
    }
    let encrypted = page(&inner, "x").await.unwrap().entries;
    let forged = [
        ("another number", "n", 5, 0),
        ("another session", "m", 5, 1),
        ("the same place", "x", 5, 1),
        ("a session created later", "x", 6, 1),
    ];
    for (what, session, created, at) in forged {
        let lease = claim(&inner, session).await;
        inner.remove(&lease, Remove::All).await.unwrap();
        let lease = claim(&inner, session).await;
        append(&inner, &lease, 0, &encrypted[0].bytes, created).await.unwrap();
        append(&inner, &lease, 1, &encrypted[at].bytes, created).await.unwrap();
        inner.release(&lease, InboxSeq(0)).await.unwrap();
        let read = texts(&store, session).await;
        match what {
            "the same place" => assert_eq!(read.unwrap(), ["1", "2"]),
            _ => assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{what}: {read:?}"),
        }
    }
    // The one entry that is wrong is named.
    let lease = claim(&store, "w").await;
    append(&store, &lease, 0, b"1", 5).await.unwrap();
    append(&inner, &lease, 1, &encrypted[1].bytes, 5).await.unwrap();
    let error = texts(&store, "w").await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { after: Seq(1), .. }), "{error}");
}

#[tokio::test]
async fn a_message_that_was_moved_is_corrupt() {
    let inner = MemoryStore::new();
    let store = Encrypted::new(inner.clone(), keys());
    for session in ["x", "y"] {
        let lease = claim(&store, session).await;
        append(&store, &lease, 0, b"1", 5).await.unwrap();
    }
    store.send(&id("x"), &[Message::new("k", "d", "body")]).await.unwrap();
    let encrypted = page(&inner, "x").await.unwrap().messages.remove(0).message;
    let other_key = Message { key: "l".into(), ..encrypted.clone() };
    for (session, moved) in [("y", encrypted), ("x", other_key)] {
        assert!(page(&store, "x").await.is_ok());
        inner.send(&id(session), &[moved]).await.unwrap();
        let read = page(&store, session).await;
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    }
}

/// As when the process that resends is not the one that has sent, and when a lease is forgotten.
#[tokio::test]
async fn a_batch_that_is_sent_again_is_recognized_by_another_handle() {
    let inner = MemoryStore::new();
    let store = || Encrypted::new(inner.clone(), keys());
    let first = store();
    let lease = claim(&first, "s").await;
    for after in 0..3 {
        append(&first, &lease, after, b"x", 7).await.unwrap();
    }
    for (after, store) in [(0, store()), (1, store()), (2, store()), (1, first)] {
        let head = append(&store, &lease, after, b"x", 7).await.unwrap();
        assert_eq!(head, Seq(after + 1));
        let other = append(&store, &lease, after, b"y", 7).await;
        assert!(matches!(other, Err(StoreError::Conflict { .. })), "{other:?}");
    }
    assert_eq!(texts(&store(), "s").await.unwrap(), ["x", "x", "x"]);
}

#[tokio::test]
async fn after_a_change_of_keys_everything_is_read_and_repetitions_are_known() {
    let inner = MemoryStore::new();
    let old = Encrypted::new(inner.clone(), Keys::new(key("old", 1)));
    let lease = claim(&old, "s").await;
    append(&old, &lease, 0, b"1", 7).await.unwrap();
    let sent = |key: &str, digest: &str| [Message::new(key, digest, "by one")];
    old.send(&id("s"), &sent("k", "yes")).await.unwrap();
    old.release(&lease, InboxSeq(1)).await.unwrap();

    let new = Encrypted::new(inner.clone(), Keys::new(key("new", 2)).also(key("old", 1)));
    let lease = claim(&new, "s").await;
    append(&new, &lease, 1, b"2", 7).await.unwrap();
    assert_eq!(texts(&new, "s").await.unwrap(), ["1", "2"]);
    let again = new.send(&id("s"), &[sent("l", "no"), sent("k", "yes")].concat()).await.unwrap();
    assert_eq!(again, Sent::Accepted(InboxSeq(2)));
    let other = new.send(&id("s"), &sent("k", "no")).await.unwrap();
    assert_eq!(other, Sent::Taken { key: "k".into(), first: Message::new("k", "yes", "by one") });
    let both = new.send(&id("s"), &[sent("k", "yes"), sent("k", "no")].concat()).await.unwrap();
    assert!(matches!(both, Sent::Taken { .. }), "{both:?}");
    let messages = page(&new, "s").await.unwrap().messages;
    let digests: Vec<_> = messages.iter().map(|stored| &*stored.message.digest).collect();
    assert_eq!(digests, ["yes", "no"]);
    let error = texts(&old, "s").await.unwrap_err();
    assert!(matches!(error, StoreError::MissingKey { key, .. } if key == "new"));
}

#[tokio::test]
async fn digests_show_neither_a_value_nor_that_two_sessions_have_the_same() {
    let inner = MemoryStore::new();
    let store = Encrypted::new(inner.clone(), keys());
    let mut digests = Vec::new();
    for session in ["x", "y"] {
        let lease = claim(&store, session).await;
        append(&store, &lease, 0, b"1", 5).await.unwrap();
        store.send(&id(session), &[Message::new("k", "yes", "")]).await.unwrap();
        let encrypted = page(&inner, session).await.unwrap().messages.remove(0).message;
        digests.push(encrypted.digest);
    }
    assert_ne!(digests[0], digests[1]);
    assert!(digests.iter().all(|digest| digest.len() == 64 && !digest.contains("yes")));
}
