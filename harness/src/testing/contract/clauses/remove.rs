//! Sessions and entries go away.

use crate::id::Seq;
use crate::store::{
    Batch, Filter, InboxSeq, Lease, NewEntry, Phase, ReadFrom, ReadRequest, Remove, Sent,
    StoreError,
};

use super::super::world::{Kept, LONG, World, interrupt, message};
use super::clauses;

clauses! {
    "removed-session-is-gone" => gone,
    "removed-session-can-be-created-again" => created_again,
    "lease-of-a-removed-session-does-not-hold-the-new-one" => old_lease,
    "prune-stops-at-the-last-snapshot" => stops,
    "prune-without-snapshot-removes-nothing" => no_snapshot,
    "read-below-the-first-entry-kept-is-refused" => below,
    "prune-leaves-everything-else" => leaves,
    "prune-needs-the-lease" => needs_lease,
}

/// A session of eight entries with snapshots at 3 and 6.
async fn snapshots(w: &World) -> Kept<Lease> {
    let lease = w.session("x", 1).await?;
    for after in 1..8 {
        let text = (after + 1).to_string();
        let snapshot = after == 2 || after == 5;
        let entries = &[NewEntry { bytes: text.as_bytes(), snapshot }];
        w.store.append(&lease, Batch { after: Seq(after), entries, ..Batch::default() }).await?;
    }
    Ok(lease)
}

async fn gone(w: World) -> Kept {
    let lease = w.session("x", 2).await?;
    let id = &lease.session;
    w.change(&lease, 2, None, &[interrupt("q", None)], &[]).await?;
    w.send(id, &[message("k", "v")]).await?;
    w.store.remove(&lease, Remove::All).await?;
    same!(
        "the session",
        w.other
            .read(id, ReadRequest::from_snapshot().with_messages_after(InboxSeq(0)).limit(9))
            .await?,
        None
    );
    same!("rows", w.rows(Filter::sessions(), 9).await?, []);
    same!("rows of interrupts", w.rows(Filter::interrupts(), 9).await?, []);
    let sent = w.store.send(id, &[message("k", "v")]).await;
    refused!("a message", sent, StoreError::Gone { .. });
    refused!("an append", w.append(&lease, 2, b"3").await, StoreError::Gone { .. });
    refused!("a renewal", w.store.renew(&lease, LONG).await, StoreError::Gone { .. });
    let again = w.store.remove(&lease, Remove::All).await;
    refused!("a second removal", again, StoreError::Gone { .. });
    let prune = w.store.remove(&lease, Remove::Below(Seq(1))).await;
    refused!("pruning", prune, StoreError::Gone { .. });
    Ok(())
}

async fn created_again(w: World) -> Kept {
    let lease = w.session("x", 3).await?;
    let id = &lease.session;
    w.change(&lease, 3, None, &[interrupt("q", None)], &[]).await?;
    w.send(id, &[message("k", "old")]).await?;
    w.store.remove(&lease, Remove::All).await?;
    let new = w.claim(id).await?;
    same!(
        "head, inbox and summary",
        (new.head, new.inbox, new.summary),
        (Seq(0), InboxSeq(0), None)
    );
    w.append(&new.lease, 0, b"new").await?;
    let page = w.page(id).await?;
    same!("interrupts and messages", (page.interrupts, page.messages), (vec![], vec![]));
    same!("entries", w.entries(id).await?, [b"new".to_vec()]);
    let sent = w.send(id, &[message("k", "new")]).await?;
    same!("a message under the old one's key", sent, Sent::Accepted(InboxSeq(1)));
    Ok(())
}

async fn old_lease(w: World) -> Kept {
    let old = w.session("x", 1).await?;
    w.store.remove(&old, Remove::All).await?;
    let new = w.claim(&old.session).await?.lease;
    refused!("the old holder", w.append(&old, 0, b"old").await, StoreError::Fenced { .. });
    w.append(&new, 0, b"new").await?;
    refused!("the old holder", w.append(&old, 1, b"old").await, StoreError::Fenced { .. });
    let zero = w.store.release(&old, InboxSeq(0)).await;
    refused!("a release by the old holder", zero, StoreError::Fenced { .. });
    let removal = w.store.remove(&old, Remove::All).await;
    refused!("a removal by the old holder", removal, StoreError::Fenced { .. });
    same!("entries", w.entries(&old.session).await?, [b"new".to_vec()]);
    Ok(())
}

async fn stops(w: World) -> Kept {
    let lease = snapshots(&w).await?;
    for (below, first) in [(0, 1), (2, 2), (5, 5), (3, 5), (8, 6), (u64::MAX, 6)] {
        w.store.remove(&lease, Remove::Below(Seq(below))).await?;
        let page = w
            .store
            .read(
                &lease.session,
                ReadRequest::from_snapshot().with_messages_after(InboxSeq(0)).limit(u64::MAX),
            )
            .await?;
        let page = page.map(|page| {
            let texts: Vec<_> = page.entries.into_iter().map(|entry| entry.bytes).collect();
            (page.first, page.head, texts.concat())
        });
        let expected = Some((Seq(first), Seq(8), b"678".to_vec()));
        same!(format!("first, head and the rest, pruned below {below}"), page, expected);
        let all = w
            .store
            .read(
                &lease.session,
                ReadRequest::from(Seq(first)).with_messages_after(InboxSeq(0)).limit(u64::MAX),
            )
            .await?;
        let count = all.map(|page| page.entries.len() as u64);
        same!(format!("how many entries are left, pruned below {below}"), count, Some(9 - first));
    }
    Ok(())
}

async fn no_snapshot(w: World) -> Kept {
    let lease = w.session("x", 3).await?;
    w.store.remove(&lease, Remove::Below(Seq(3))).await?;
    let page = w.page(&lease.session).await?;
    same!("first and how many", (page.first, page.entries.len()), (Seq(1), 3));
    Ok(())
}

async fn below(w: World) -> Kept {
    let lease = snapshots(&w).await?;
    w.store.remove(&lease, Remove::Below(Seq(6))).await?;
    for from in [1, 2, 5] {
        for from in [ReadFrom::Seq(Seq(from)), ReadFrom::SnapshotBelow(Seq(from))] {
            let page = w
                .store
                .read(
                    &lease.session,
                    ReadRequest::entries(from).with_messages_after(InboxSeq(0)).limit(u64::MAX),
                )
                .await;
            refused!(format!("{from:?}"), page, StoreError::Pruned { first: Seq(6), .. });
        }
    }
    Ok(())
}

async fn leaves(w: World) -> Kept {
    let lease = snapshots(&w).await?;
    let id = &lease.session;
    w.change(&lease, 8, None, &[interrupt("q", None)], &[]).await?;
    w.send(id, &[message("k", "v")]).await?;
    let read = || {
        w.store.read(id, ReadRequest::from(Seq(6)).with_messages_after(InboxSeq(0)).limit(u64::MAX))
    };
    let before = read().await?;
    w.store.remove(&lease, Remove::Below(Seq(6))).await?;
    let strip = |page: Option<crate::store::Page>| {
        page.map(|page| crate::store::Page { first: Seq(6), holder: None, ..page })
    };
    same!("all else", strip(read().await?), strip(before));
    let entries = &[NewEntry { bytes: b"8", snapshot: false }];
    let last = Batch { after: Seq(7), entries, ..Batch::default() };
    same!("the last batch resent", w.store.append(&lease, last).await?.head, Seq(8));
    same!("the next head", w.append(&lease, 8, b"9").await?.head, Seq(9));
    let sent = w.send(id, &[message("k", "v")]).await?;
    same!("the message resent", sent, Sent::Accepted(InboxSeq(1)));
    Ok(())
}

async fn needs_lease(w: World) -> Kept {
    let lease = snapshots(&w).await?;
    w.release(&lease).await?;
    let prune = w.store.remove(&lease, Remove::Below(Seq(6))).await;
    refused!("pruning without", prune, StoreError::Fenced { .. });
    let page = w.page(&lease.session).await?;
    same!("first and summary", (page.first, page.summary), (Seq(1), w.summary(Phase::Ended)));
    Ok(())
}
