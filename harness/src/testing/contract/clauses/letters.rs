//! Letters: the first under a key stays.

use crate::clock::UtcMillis;
use crate::id::SessionId;
use crate::store::{Letter, Mail, Posted, StoreError, StoredLetter};

use super::super::world::{Kept, LONG, World, answer, letter, question};
use super::clauses;

clauses! {
    "post-to-a-missing-session-is-gone" => missing,
    "letters-are-kept-whole-and-in-order" => order,
    "letters-first-wins" => first,
    "letters-with-the-same-digest-count-as-posted" => digest,
    "letters-are-posted-all-or-none" => all_or_none,
    "letters-of-one-call-do-not-contradict-each-other" => one_call,
    "taken-is-looked-for-before-too-late" => taken_first,
    "answer-to-a-question-that-is-not-open-is-too-late" => not_open,
    "answer-after-expiry-is-too-late" => after_expiry,
    "expiry-is-taken-only-after-its-time" => expiry,
    "posted-answer-stays-posted" => stays,
    "append-and-renew-return-the-mail-mark" => marks,
}

async fn kept(w: &World, id: &SessionId) -> Kept<Vec<(u64, String)>> {
    let letters = w.page(id).await?.letters.into_iter();
    let text = |letter: StoredLetter| {
        (letter.mail.0, format!("{}={}", letter.letter.key, letter.letter.digest))
    };
    Ok(letters.map(text).collect())
}

async fn missing(w: World) -> Kept {
    let id = w.id("none")?;
    let post = w.store.post(&id, &[letter("k", "v")]).await;
    refused!("a letter", post, StoreError::Gone { .. });
    refused!("no letter", w.store.post(&id, &[]).await, StoreError::Gone { .. });
    let new = w.claim(&id).await?;
    same!("the mail of the session once it is made", new.mail, Mail(0));
    Ok(())
}

async fn order(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    w.change(&lease, 1, None, &[question("q", None)], &[]).await?;
    let id = &lease.session;
    let odd = Letter { body: (0..=255).collect(), ..letter("", "odd \0 \u{1F9A9}") };
    let letters = [answer("z", "1", "q"), letter("a", "2"), odd, letter("A", "3")];
    same!("the first", w.post(id, &letters[..1]).await?, Posted::Here(Mail(1)));
    same!("none", w.post(id, &[]).await?, Posted::Here(Mail(1)));
    same!("three more", w.post(id, &letters[1..]).await?, Posted::Here(Mail(4)));
    let expected: Vec<_> =
        (1..).map(Mail).zip(letters).map(|(mail, letter)| StoredLetter { mail, letter }).collect();
    same!("letters", w.page(id).await?.letters, expected);
    Ok(())
}

async fn first(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    w.post(&id, &[letter("k", "first")]).await?;
    let expected = Posted::Taken { key: "k".into(), first: letter("k", "first") };
    same!("the second under the key", w.post(&id, &[letter("k", "second")]).await?, expected);
    same!("letters", kept(&w, &id).await?, [(1, "k=first".to_owned())]);
    Ok(())
}

async fn digest(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    w.post(&id, &[letter("k", "v")]).await?;
    let again = Letter { body: b"by somebody else".to_vec(), ..letter("k", "v") };
    same!("the same again", w.post(&id, &[again]).await?, Posted::Here(Mail(1)));
    let other = Letter { digest: "w".into(), ..letter("k", "v") };
    let found = w.post(&id, &[other]).await?;
    ensure!(
        matches!(found, Posted::Taken { .. }),
        "the same body with another digest: expected Taken, found {found:?}"
    );
    let letters = w.page(&id).await?.letters;
    let bodies: Vec<_> = letters.into_iter().map(|letter| letter.letter.body).collect();
    same!("bodies: the first stays", bodies, [b"v".to_vec()]);
    Ok(())
}

async fn all_or_none(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    w.post(&id, &[letter("k", "v")]).await?;
    let taken = w.post(&id, &[letter("a", "1"), letter("k", "other"), letter("b", "2")]).await?;
    ensure!(matches!(taken, Posted::Taken { .. }), "expected Taken, found {taken:?}");
    let late = w.post(&id, &[letter("a", "1"), answer("c", "3", "closed")]).await?;
    ensure!(matches!(late, Posted::TooLate { .. }), "expected TooLate, found {late:?}");
    same!("letters", kept(&w, &id).await?, [(1, "k=v".to_owned())]);
    let posted = w.post(&id, &[letter("a", "1"), letter("k", "v"), letter("b", "2")]).await?;
    same!("two that are new and one that is not", posted, Posted::Here(Mail(3)));
    let expected = [(1, "k=v"), (2, "a=1"), (3, "b=2")].map(|(n, text)| (n, text.to_owned()));
    same!("letters", kept(&w, &id).await?, expected);
    Ok(())
}

async fn one_call(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    let found = w.post(&id, &[letter("k", "1"), letter("k", "2")]).await?;
    let expected = Posted::Taken { key: "k".into(), first: letter("k", "1") };
    same!("two that contradict each other", found, expected);
    let found = w.post(&id, &[letter("k", "1"), letter("k", "1")]).await?;
    same!("the same twice", found, Posted::Here(Mail(1)));
    same!("letters", kept(&w, &id).await?, [(1, "k=1".to_owned())]);
    Ok(())
}

async fn taken_first(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    w.post(&id, &[letter("k", "v")]).await?;
    let found = w.post(&id, &[answer("a", "1", "closed"), letter("k", "other")]).await?;
    let expected = Posted::Taken { key: "k".into(), first: letter("k", "v") };
    same!("late and taken", found, expected);
    Ok(())
}

async fn not_open(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let id = &lease.session;
    let late = Posted::TooLate { key: "k".into() };
    same!("never asked", w.post(id, &[answer("k", "v", "q")]).await?, late);
    w.change(&lease, 1, None, &[question("q", None)], &[]).await?;
    w.change(&lease, 1, None, &[], &["q".into()]).await?;
    same!("closed", w.post(id, &[answer("k", "v", "q")]).await?, late);
    w.change(&lease, 1, None, &[question("q", None)], &[]).await?;
    same!("open", w.post(id, &[answer("k", "v", "q")]).await?, Posted::Here(Mail(1)));
    Ok(())
}

/// A moment that has not come during the test.
fn later() -> u64 {
    UtcMillis::now().0 + 3_600_000
}

async fn after_expiry(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let asked = [question("past", Some(1)), question("future", Some(later()))];
    w.change(&lease, 1, None, &asked, &[]).await?;
    let id = &lease.session;
    let late = w.post(id, &[answer("a", "1", "past")]).await?;
    same!("after", late, Posted::TooLate { key: "a".into() });
    let good = w.post(id, &[answer("a", "1", "future")]).await?;
    same!("before", good, Posted::Here(Mail(1)));
    Ok(())
}

async fn expiry(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let asked =
        [question("past", Some(1)), question("future", Some(later())), question("never", None)];
    w.change(&lease, 1, None, &asked, &[]).await?;
    let id = &lease.session;
    let says = |question: &str| Letter { expiry: true, ..answer(question, "expired", question) };
    for early in ["future", "never", "unknown"] {
        let found = w.post(id, &[says(early)]).await?;
        same!(format!("`{early}`"), found, Posted::TooLate { key: early.into() });
    }
    same!("`past`", w.post(id, &[says("past")]).await?, Posted::Here(Mail(1)));
    Ok(())
}

async fn stays(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let id = &lease.session;
    w.change(&lease, 1, None, &[question("q", None)], &[]).await?;
    w.post(id, &[answer("k", "v", "q")]).await?;
    w.change(&lease, 1, None, &[], &["q".into()]).await?;
    same!("the same again", w.post(id, &[answer("k", "v", "q")]).await?, Posted::Here(Mail(1)));
    let other = w.post(id, &[answer("k", "w", "q")]).await?;
    ensure!(matches!(other, Posted::Taken { .. }), "another: expected Taken, found {other:?}");
    Ok(())
}

async fn marks(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let id = &lease.session;
    same!("append's mark", w.append(&lease, 1, b"2").await?.mail, Mail(0));
    w.post(id, &[letter("a", "1"), letter("b", "2")]).await?;
    same!("renew's mark", w.store.renew(&lease, LONG).await?, Mail(2));
    same!("append's mark", w.append(&lease, 2, b"3").await?.mail, Mail(2));
    w.other.post(id, &[letter("c", "3")]).await?;
    same!("the mark of a resent batch", w.append(&lease, 2, b"3").await?.mail, Mail(3));
    same!("the mark at release", w.store.renew(&lease, std::time::Duration::ZERO).await?, Mail(3));
    Ok(())
}
