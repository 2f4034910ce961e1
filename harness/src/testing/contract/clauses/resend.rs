//! A writer that does not know whether a batch has arrived sends it again.

use crate::id::Seq;
use crate::store::{Batch, NewEntry, Phase, SessionSummary, StoreError};

use super::super::world::{Kept, World, interrupt};
use super::clauses;

clauses! {
    "resend-is-reported-as-appended" => again,
    "resend-after-losing-the-lease-is-reported-as-appended" => after_loss,
    "resend-does-not-bring-back-summary-and-interrupts" => summary,
    "resend-of-an-empty-batch-is-reported-as-appended" => empty,
    "empty-batches-that-alternate-are-all-applied" => alternate,
    "other-batch-after-the-same-seq-is-a-conflict" => other,
    "same-batch-under-another-token-is-a-conflict" => other_token,
}

async fn again(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let entries =
        [NewEntry { bytes: b"a", snapshot: true }, NewEntry { bytes: b"", snapshot: false }];
    let batch = Batch { after: Seq(1), entries: &entries, ..Batch::default() };
    for time in 1..=3 {
        let head = w.store.append(&lease, batch).await?.head;
        same!(format!("the head at time {time}"), head, Seq(3));
    }
    w.append(&lease, 3, b"b").await?;
    let head = w.store.append(&lease, batch).await?.head;
    same!("the head when more has come since: that of the batch", head, Seq(3));
    let found = w.entries(&lease.session).await?;
    same!("entries", found, [b"1".to_vec(), b"a".to_vec(), Vec::new(), b"b".to_vec()]);
    Ok(())
}

async fn after_loss(w: World) -> Kept {
    let lease = w.session("x", 2).await?;
    w.release(&lease).await?;
    same!("resent after release", w.append(&lease, 1, b"2").await?.head, Seq(2));
    let next = w.claim(&lease.session).await?.lease;
    same!("resent after another claim", w.append(&lease, 1, b"2").await?.head, Seq(2));
    w.append(&next, 2, b"3").await?;
    same!("resent after another's batch", w.append(&lease, 1, b"2").await?.head, Seq(2));
    for after in [3, 2, 9] {
        let new = w.append(&lease, after, b"4").await;
        refused!(format!("new bytes after {after} of 3"), new, StoreError::Fenced { .. });
    }
    same!("the head", w.page(&lease.session).await?.head, Seq(3));
    Ok(())
}

async fn summary(w: World) -> Kept {
    let lease = w.session("x", 0).await?;
    let (old, new) = (w.summary(Phase::Interrupted), w.summary(Phase::Ended));
    let batch = Batch {
        entries: &[NewEntry { bytes: b"1", snapshot: false }],
        summary: Some(&old),
        open: &[interrupt("q", None)],
        ..Batch::default()
    };
    w.store.append(&lease, batch).await?;
    w.change(&lease, 1, Some(&new), &[], &["q".into()]).await?;
    same!("the head", w.store.append(&lease, batch).await?.head, Seq(1));
    let page = w.page(&lease.session).await?;
    same!("summary and interrupts", (page.summary, page.interrupts), (new, vec![]));
    Ok(())
}

async fn empty(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let old = w.summary(Phase::Stopped);
    let ask = [interrupt("q", None)];
    for _ in 0..2 {
        same!("the head", w.change(&lease, 1, Some(&old), &ask, &[]).await?.head, Seq(1));
    }
    w.release(&lease).await?;
    let next = w.claim(&lease.session).await?.lease;
    let new = SessionSummary { step: "New".into(), ..w.summary(Phase::Ended) };
    w.change(&next, 1, Some(&new), &[], &["q".into()]).await?;
    let resent = w.change(&lease, 1, Some(&old), &ask, &[]).await?;
    same!("the head after the lease was lost", resent.head, Seq(1));
    let page = w.page(&lease.session).await?;
    same!(
        "summary and interrupts of the new holder",
        (page.summary, page.interrupts),
        (new, vec![])
    );
    let fresh = w.change(&lease, 1, Some(&w.summary(Phase::Failed)), &ask, &[]).await;
    refused!("another empty batch of the old holder", fresh, StoreError::Fenced { .. });
    Ok(())
}

async fn alternate(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    for phase in [Phase::Running, Phase::Stopped, Phase::Running, Phase::Stopped] {
        w.change(&lease, 1, Some(&w.summary(phase)), &[], &[]).await?;
        same!("the phase", w.page(&lease.session).await?.summary.phase, phase);
    }
    Ok(())
}

async fn other(w: World) -> Kept {
    let lease = w.session("x", 0).await?;
    let summary = w.summary(Phase::Running);
    let entry = |bytes| NewEntry { bytes, snapshot: false };
    let two: &[NewEntry<'_>] = &[entry(b"ab"), entry(b"cd")];
    let batch = Batch { entries: two, summary: Some(&summary), ..Batch::default() };
    w.store.append(&lease, batch).await?;
    w.append(&lease, 2, b"ef").await?;
    let others: [(&str, &[NewEntry<'_>]); 5] = [
        ("other bytes", &[entry(b"ab"), entry(b"cx")]),
        ("the same bytes cut otherwise", &[entry(b"a"), entry(b"bcd")]),
        ("fewer entries", &[entry(b"ab")]),
        ("more entries", &[entry(b"ab"), entry(b"cd"), entry(b"ef")]),
        ("one entry for two", &[entry(b"abcd")]),
    ];
    for (what, entries) in others {
        let found = w.store.append(&lease, Batch { entries, ..batch }).await;
        refused!(what, found, StoreError::Conflict { head: Seq(3), .. });
    }
    let inside = Batch { after: Seq(1), entries: &[entry(b"cd")], ..Batch::default() };
    refused!("a part of it", w.store.append(&lease, inside).await, StoreError::Conflict { .. });
    same!("the head", w.page(&lease.session).await?.head, Seq(3));
    Ok(())
}

async fn other_token(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    w.release(&lease).await?;
    let next = w.claim(&lease.session).await?.lease;
    refused!("it", w.append(&next, 0, b"1").await, StoreError::Conflict { head: Seq(1), .. });
    Ok(())
}
