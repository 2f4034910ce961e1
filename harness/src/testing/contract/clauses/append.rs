//! What is appended is there, where it belongs, as it was.

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};
use crate::store::{Batch, Filter, InboxSeq, NewEntry, Phase, ReadRequest, Sent, StoreError};

use super::super::world::{Kept, Stop, World, message};
use super::clauses;

clauses! {
    "missing-session-is-none" => missing,
    "claim-alone-makes-no-session" => claim_alone,
    "first-batch-brings-entry-and-summary" => first_batch,
    "append-numbers-entries-from-one" => numbers,
    "entries-are-kept-byte-for-byte" => bytes,
    "too-large-batch-changes-nothing" => too_large,
    "sessions-are-kept-apart" => apart,
    "hostile-ids-are-kept-apart" => hostile,
    "times-are-those-of-the-writer" => times,
}

async fn missing(w: World) -> Kept {
    let page = w.store.read(&w.id("none")?, ReadRequest::from_snapshot().limit(9)).await?;
    same!("a session that was never written", page, None);
    Ok(())
}

async fn claim_alone(w: World) -> Kept {
    let id = w.id("x")?;
    let claimed = w.claim(&id).await?;
    same!(
        "head, inbox and summary of a new session",
        (claimed.head, claimed.inbox, claimed.summary),
        (Seq(0), InboxSeq(0), None)
    );
    same!(
        "a session that was only claimed",
        w.store.read(&id, ReadRequest::from_snapshot().limit(9)).await?,
        None
    );
    same!("rows of sessions that were only claimed", w.rows(Filter::sessions(), 9).await?, []);
    refused!(
        "a message to it",
        w.store.send(&id, &[message("k", "v")]).await,
        StoreError::Gone { .. }
    );
    w.append(&claimed.lease, 0, b"1").await?;
    same!("entries once it is written", w.entries(&id).await?, [b"1".to_vec()]);
    Ok(())
}

async fn first_batch(w: World) -> Kept {
    let id = w.id("x")?;
    let lease = w.claim(&id).await?.lease;
    let summary = w.summary(Phase::Running);
    let entries = &[NewEntry { bytes: b"1", snapshot: false }];
    let batch = Batch { entries, ..Batch::default() };
    let bare = w.store.append(&lease, batch).await;
    ensure!(bare.is_err(), "a first batch without summary was taken");
    let empty = w.change(&lease, 0, Some(&summary), &[], &[]).await;
    ensure!(empty.is_err(), "a first batch without an entry was taken");
    let nothing = w.store.append(&lease, Batch { flush: true, ..Batch::default() }).await?;
    same!("the head after a mere flush", nothing.head, Seq(0));
    same!("the session", w.store.read(&id, ReadRequest::from_snapshot().limit(9)).await?, None);
    Ok(())
}

async fn numbers(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let bytes: &[&[u8]] = &[b"2", b"3", b"4"];
    let entries: Vec<_> = bytes.iter().map(|bytes| NewEntry { bytes, snapshot: false }).collect();
    let batch = Batch { after: Seq(1), entries: &entries, ..Batch::default() };
    same!("the head", w.store.append(&lease, batch).await?.head, Seq(4));
    same!("the next head", w.append(&lease, 4, b"5").await?.head, Seq(5));
    let page = w.page(&lease.session).await?;
    let seqs: Vec<u64> = page.entries.iter().map(|entry| entry.seq.0).collect();
    same!("seqs", seqs, [1, 2, 3, 4, 5]);
    same!("first, head and next", (page.first, page.head, page.next), (Seq(1), Seq(5), None));
    let texts: Vec<_> = page.entries.iter().map(|e| String::from_utf8_lossy(&e.bytes)).collect();
    same!("entries", texts.concat(), "12345");
    same!(
        "the head at the next claim",
        {
            w.release(&lease).await?;
            w.claim(&lease.session).await?.head
        },
        Seq(5)
    );
    Ok(())
}

async fn bytes(w: World) -> Kept {
    let most = w.max_batch().unwrap_or(u64::MAX).min(1 << 20);
    let large: Vec<u8> = (0..most).map(|at| (at * 31 % 251) as u8).collect();
    let mut shapes: Vec<Vec<u8>> = vec![
        Vec::new(),
        (0..=255).collect(),
        vec![0],
        vec![0; 300],
        vec![255; 300],
        b"\n".to_vec(),
        b"\r\n\r\n".to_vec(),
        b"{\"a\":\"\\u0000\",\"n\":18446744073709551615}\n".to_vec(),
        "\u{feff}é e\u{301} \u{1F9A9}".into(),
        b"'; drop table sessions; --".to_vec(),
        Vec::new(),
    ];
    shapes.push(large);
    let lease = w.session("x", 0).await?;
    for (after, shape) in (0..).zip(&shapes) {
        w.append(&lease, after, shape).await?;
    }
    for (found, shape) in w.entries(&lease.session).await?.iter().zip(&shapes) {
        let begin = &shape[..shape.len().min(20)];
        ensure!(
            found == shape,
            "an entry of {} bytes that begins {begin:?} was changed",
            shape.len()
        );
    }
    let together = w.session("y", 0).await?;
    let entries: Vec<_> =
        shapes[..11].iter().map(|bytes| NewEntry { bytes, snapshot: false }).collect();
    let summary = w.summary(Phase::Running);
    let batch = Batch { entries: &entries, summary: Some(&summary), ..Batch::default() };
    w.store.append(&together, batch).await?;
    same!("the same in one batch", w.entries(&together.session).await?, shapes[..11]);
    Ok(())
}

async fn too_large(w: World) -> Kept {
    let Some(most) = w.max_batch() else {
        let why = "the suite does not know the limit of a batch (`Contract::max_batch`)";
        return Err(Stop::Skipped(why.into()));
    };
    let lease = w.session("x", 1).await?;
    let before = w.page(&lease.session).await?;
    let bytes = vec![7; usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1)];
    refused!("too much", w.append(&lease, 1, &bytes).await, StoreError::TooLarge { .. });
    let after = w.page(&lease.session).await?;
    same!("entries and summary", (after.entries, after.summary), (before.entries, before.summary));
    w.append(&lease, 1, b"2").await?;
    Ok(())
}

async fn apart(w: World) -> Kept {
    let (x, y) = (w.session("x", 2).await?, w.session("y", 1).await?);
    w.send(&x.session, &[message("k", "to x")]).await?;
    refused!(
        "x's lease at y",
        w.append(&crate::store::Lease { session: y.session.clone(), ..x.clone() }, 1, b"!").await,
        StoreError::Fenced { .. }
    );
    let (page, other) = (w.page(&x.session).await?, w.page(&y.session).await?);
    same!("heads", (page.head, other.head), (Seq(2), Seq(1)));
    same!("messages", (page.messages.len(), other.messages.len()), (1, 0));
    same!(
        "y's posting",
        w.send(&y.session, &[message("k", "to y")]).await?,
        Sent::Accepted(InboxSeq(1))
    );
    Ok(())
}

/// Ids that stores like to mix up: by path, case, normal form, spaces, prefix or length.
async fn hostile(w: World) -> Kept {
    let tag = &w.tag;
    let long = "x".repeat(crate::id::MAX_SESSION_ID - tag.len() - 1);
    let mut ids = Vec::new();
    for id in [
        tag.clone(),
        format!("{tag}/"),
        format!("{tag}/.."),
        format!("../../{tag}"),
        format!("/{tag}"),
        format!("{tag}\0"),
        format!("{tag}\0x"),
        format!("{tag}\0\u{1}"),
        format!("{tag}\u{1}"),
        format!("{tag} "),
        format!(" {tag}"),
        format!("{tag}\n"),
        format!("{tag}a"),
        format!("{tag}A"),
        format!("{tag}\u{e9}"),
        format!("{tag}e\u{301}"),
        format!("{tag}\u{df}"),
        format!("{tag}ss"),
        format!("{tag}\u{1F9A9}"),
        format!("{tag}%2F"),
        format!("{tag}'\"\\;--"),
        format!("{tag}*"),
        format!("{tag}{{x}}:y"),
        format!("{tag}{long}1"),
        format!("{tag}{long}2"),
    ] {
        ids.push(SessionId::new(id)?);
    }
    for (n, id) in ids.iter().enumerate() {
        let claimed = w.claim(id).await?;
        same!(format!("the head of new session {id:?}"), claimed.head, Seq(0));
        w.append(&claimed.lease, 0, n.to_string().as_bytes()).await?;
        w.send(id, &[message("k", &n.to_string())]).await?;
    }
    for (n, id) in ids.iter().enumerate() {
        let page = w.page(id).await?;
        let own = n.to_string().into_bytes();
        let found: Vec<_> = page.entries.into_iter().map(|entry| entry.bytes).collect();
        same!(format!("entries of {id:?}"), found, std::slice::from_ref(&own));
        let bodies: Vec<_> = page.messages.into_iter().map(|stored| stored.message.body).collect();
        same!(format!("messages of {id:?}"), bodies, [own]);
    }
    let rows = w.rows(Filter::sessions(), 4).await?;
    let mut found: Vec<_> = rows.into_iter().map(|row| row.session).collect();
    found.sort();
    ids.sort();
    same!("ids in the list", found, ids);
    Ok(())
}

async fn times(w: World) -> Kept {
    let lease = w.session("x", 2).await?;
    let page = w.page(&lease.session).await?;
    same!(
        "created and updated",
        (page.created, page.updated),
        (UtcMillis(1_000), UtcMillis(1_001))
    );
    w.change(&lease, 2, Some(&w.summary(Phase::Failed)), &[], &[]).await?;
    let rows = w.rows(Filter::sessions(), 9).await?;
    let times: Vec<_> = rows.iter().map(|row| (row.created, row.updated)).collect();
    same!("created and updated in the list", times, [(UtcMillis(1_000), UtcMillis(2_002))]);
    Ok(())
}
