//! Messages: the first under a key stays.

use crate::clock::UtcMillis;
use crate::id::SessionId;
use crate::store::{InboxSeq, Message, Released, Sent, StoreError, StoredMessage};

use super::super::world::{Kept, LONG, World, answer, interrupt, message};
use super::clauses;

clauses! {
    "send-to-a-missing-session-is-gone" => missing,
    "messages-are-kept-whole-and-in-order" => order,
    "messages-first-wins" => first,
    "messages-with-the-same-digest-count-as-sent" => digest,
    "messages-are-sent-all-or-none" => all_or_none,
    "messages-of-one-call-do-not-contradict-each-other" => one_call,
    "taken-is-checked-before-too-late" => taken_first,
    "answer-to-an-interrupt-that-is-not-open-is-too-late" => not_open,
    "answer-after-expiry-is-too-late" => after_expiry,
    "expiry-is-taken-only-after-its-time" => expiry,
    "sent-answer-stays-sent" => stays,
    "append-renew-and-release-report-the-inbox" => marks,
}

async fn kept(w: &World, id: &SessionId) -> Kept<Vec<(u64, String)>> {
    let messages = w.page(id).await?.messages.into_iter();
    let text = |stored: StoredMessage| {
        (stored.seq.0, format!("{}={}", stored.message.key, stored.message.digest))
    };
    Ok(messages.map(text).collect())
}

async fn missing(w: World) -> Kept {
    let id = w.id("none")?;
    let sent = w.store.send(&id, &[message("k", "v")]).await;
    refused!("a message", sent, StoreError::Gone { .. });
    refused!("no message", w.store.send(&id, &[]).await, StoreError::Gone { .. });
    let new = w.claim(&id).await?;
    same!("the inbox of the session once it is made", new.inbox, InboxSeq(0));
    Ok(())
}

async fn order(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    w.change(&lease, 1, None, &[interrupt("q", None)], &[]).await?;
    let id = &lease.session;
    let odd = Message { body: (0..=255).collect(), ..message("", "odd \0 \u{1F9A9}") };
    let messages = [answer("z", "1", "q"), message("a", "2"), odd, message("A", "3")];
    same!("the first", w.send(id, &messages[..1]).await?, Sent::Accepted(InboxSeq(1)));
    same!("none", w.send(id, &[]).await?, Sent::Accepted(InboxSeq(1)));
    same!("three more", w.send(id, &messages[1..]).await?, Sent::Accepted(InboxSeq(4)));
    let expected: Vec<_> = (1..)
        .map(InboxSeq)
        .zip(messages)
        .map(|(seq, message)| StoredMessage { seq, message })
        .collect();
    same!("messages", w.page(id).await?.messages, expected);
    Ok(())
}

async fn first(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    w.send(&id, &[message("k", "first")]).await?;
    let expected = Sent::Taken { key: "k".into(), first: message("k", "first") };
    same!("the second under the key", w.send(&id, &[message("k", "second")]).await?, expected);
    same!("messages", kept(&w, &id).await?, [(1, "k=first".to_owned())]);
    Ok(())
}

async fn digest(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    w.send(&id, &[message("k", "v")]).await?;
    let again = Message { body: b"by another sender".to_vec(), ..message("k", "v") };
    same!("the same again", w.send(&id, &[again]).await?, Sent::Accepted(InboxSeq(1)));
    let other = Message { digest: "w".into(), ..message("k", "v") };
    let found = w.send(&id, &[other]).await?;
    ensure!(
        matches!(found, Sent::Taken { .. }),
        "the same body with another digest: expected Taken, found {found:?}"
    );
    let messages = w.page(&id).await?.messages;
    let bodies: Vec<_> = messages.into_iter().map(|stored| stored.message.body).collect();
    same!("bodies: the first stays", bodies, [b"v".to_vec()]);
    Ok(())
}

async fn all_or_none(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    w.send(&id, &[message("k", "v")]).await?;
    let taken = w.send(&id, &[message("a", "1"), message("k", "other"), message("b", "2")]).await?;
    ensure!(matches!(taken, Sent::Taken { .. }), "expected Taken, found {taken:?}");
    let late = w.send(&id, &[message("a", "1"), answer("c", "3", "closed")]).await?;
    ensure!(matches!(late, Sent::TooLate { .. }), "expected TooLate, found {late:?}");
    same!("messages", kept(&w, &id).await?, [(1, "k=v".to_owned())]);
    let sent = w.send(&id, &[message("a", "1"), message("k", "v"), message("b", "2")]).await?;
    same!("two that are new and one that is not", sent, Sent::Accepted(InboxSeq(3)));
    let expected = [(1, "k=v"), (2, "a=1"), (3, "b=2")].map(|(n, text)| (n, text.to_owned()));
    same!("messages", kept(&w, &id).await?, expected);
    Ok(())
}

async fn one_call(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    let found = w.send(&id, &[message("k", "1"), message("k", "2")]).await?;
    let expected = Sent::Taken { key: "k".into(), first: message("k", "1") };
    same!("two that contradict each other", found, expected);
    let found = w.send(&id, &[message("k", "1"), message("k", "1")]).await?;
    same!("the same twice", found, Sent::Accepted(InboxSeq(1)));
    same!("messages", kept(&w, &id).await?, [(1, "k=1".to_owned())]);
    Ok(())
}

async fn taken_first(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    w.send(&id, &[message("k", "v")]).await?;
    let found = w.send(&id, &[answer("a", "1", "closed"), message("k", "other")]).await?;
    let expected = Sent::Taken { key: "k".into(), first: message("k", "v") };
    same!("late and taken", found, expected);
    Ok(())
}

async fn not_open(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let id = &lease.session;
    let late = Sent::TooLate { key: "k".into() };
    same!("never asked", w.send(id, &[answer("k", "v", "q")]).await?, late);
    w.change(&lease, 1, None, &[interrupt("q", None)], &[]).await?;
    w.change(&lease, 1, None, &[], &["q".into()]).await?;
    same!("closed", w.send(id, &[answer("k", "v", "q")]).await?, late);
    w.change(&lease, 1, None, &[interrupt("q", None)], &[]).await?;
    same!("open", w.send(id, &[answer("k", "v", "q")]).await?, Sent::Accepted(InboxSeq(1)));
    Ok(())
}

/// A moment that has not come during the test.
fn later() -> u64 {
    UtcMillis::now().0 + 3_600_000
}

async fn after_expiry(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let asked = [interrupt("past", Some(1)), interrupt("future", Some(later()))];
    w.change(&lease, 1, None, &asked, &[]).await?;
    let id = &lease.session;
    let late = w.send(id, &[answer("a", "1", "past")]).await?;
    same!("after", late, Sent::TooLate { key: "a".into() });
    let good = w.send(id, &[answer("a", "1", "future")]).await?;
    same!("before", good, Sent::Accepted(InboxSeq(1)));
    Ok(())
}

async fn expiry(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let asked =
        [interrupt("past", Some(1)), interrupt("future", Some(later())), interrupt("never", None)];
    w.change(&lease, 1, None, &asked, &[]).await?;
    let id = &lease.session;
    let says =
        |interrupt: &str| Message { expiry: true, ..answer(interrupt, "expired", interrupt) };
    for early in ["future", "never", "unknown"] {
        let found = w.send(id, &[says(early)]).await?;
        same!(format!("`{early}`"), found, Sent::TooLate { key: early.into() });
    }
    same!("`past`", w.send(id, &[says("past")]).await?, Sent::Accepted(InboxSeq(1)));
    Ok(())
}

async fn stays(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let id = &lease.session;
    w.change(&lease, 1, None, &[interrupt("q", None)], &[]).await?;
    w.send(id, &[answer("k", "v", "q")]).await?;
    w.change(&lease, 1, None, &[], &["q".into()]).await?;
    same!(
        "the same again",
        w.send(id, &[answer("k", "v", "q")]).await?,
        Sent::Accepted(InboxSeq(1))
    );
    let other = w.send(id, &[answer("k", "w", "q")]).await?;
    ensure!(matches!(other, Sent::Taken { .. }), "another: expected Taken, found {other:?}");
    Ok(())
}

async fn marks(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let id = &lease.session;
    same!("append's inbox", w.append(&lease, 1, b"2").await?.inbox, InboxSeq(0));
    w.send(id, &[message("a", "1"), message("b", "2")]).await?;
    same!("renew's inbox", w.store.renew(&lease, LONG).await?, InboxSeq(2));
    same!("append's inbox", w.append(&lease, 2, b"3").await?.inbox, InboxSeq(2));
    w.other.send(id, &[message("c", "3")]).await?;
    same!("the inbox after a resent batch", w.append(&lease, 2, b"3").await?.inbox, InboxSeq(3));
    let read = InboxSeq(2);
    same!("the release, two read", w.store.release(&lease, read).await?, Released::MoreMessages);
    let lease = w.claim(id).await?.lease;
    let released = w.store.release(&lease, InboxSeq(3)).await?;
    same!("the release, all three read", released, Released::Idle);
    Ok(())
}
