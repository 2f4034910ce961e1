//! Sessions and entries go away.

use std::time::Duration;

use crate::id::Seq;
use crate::store::{Batch, Filter, From, Lease, Mail, NewEntry, Phase, Posted, Remove, StoreError};

use super::super::world::{Kept, LONG, World, letter, question};
use super::clauses;

clauses! {
    "removed-session-is-gone" => gone,
    "removed-session-can-be-made-anew" => anew,
    "lease-of-a-removed-session-does-not-hold-the-new-one" => old_lease,
    "prune-stops-at-the-last-snapshot" => stops,
    "prune-without-snapshot-removes-nothing" => no_snapshot,
    "read-below-what-was-pruned-says-so" => below,
    "prune-leaves-all-else" => leaves,
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
    w.change(&lease, 2, None, &[question("q", None)], &[]).await?;
    w.post(id, &[letter("k", "v")]).await?;
    w.store.remove(&lease, Remove::All).await?;
    same!("the session", w.other.read(id, From::Snapshot, Mail(0), 9).await?, None);
    same!("rows", w.rows(Filter::sessions(), 9).await?, []);
    same!("rows of questions", w.rows(Filter::questions(), 9).await?, []);
    let post = w.store.post(id, &[letter("k", "v")]).await;
    refused!("a letter", post, StoreError::Gone { .. });
    refused!("an append", w.append(&lease, 2, b"3").await, StoreError::Gone { .. });
    refused!("a renewal", w.store.renew(&lease, LONG).await, StoreError::Gone { .. });
    let again = w.store.remove(&lease, Remove::All).await;
    refused!("a second removal", again, StoreError::Gone { .. });
    let prune = w.store.remove(&lease, Remove::Below(Seq(1))).await;
    refused!("pruning", prune, StoreError::Gone { .. });
    Ok(())
}

async fn anew(w: World) -> Kept {
    let lease = w.session("x", 3).await?;
    let id = &lease.session;
    w.change(&lease, 3, None, &[question("q", None)], &[]).await?;
    w.post(id, &[letter("k", "old")]).await?;
    w.store.remove(&lease, Remove::All).await?;
    let new = w.claim(id).await?;
    same!("head, mail and facts", (new.head, new.mail, new.facts), (Seq(0), Mail(0), None));
    w.append(&new.lease, 0, b"new").await?;
    let page = w.page(id).await?;
    same!("questions and letters", (page.questions, page.letters), (vec![], vec![]));
    same!("entries", w.entries(id).await?, [b"new".to_vec()]);
    let posted = w.post(id, &[letter("k", "new")]).await?;
    same!("a letter under the old one's key", posted, Posted::Here(Mail(1)));
    Ok(())
}

async fn old_lease(w: World) -> Kept {
    let old = w.session("x", 1).await?;
    w.store.remove(&old, Remove::All).await?;
    let new = w.claim(&old.session).await?.lease;
    refused!("the old holder", w.append(&old, 0, b"old").await, StoreError::Fenced { .. });
    w.append(&new, 0, b"new").await?;
    refused!("the old holder", w.append(&old, 1, b"old").await, StoreError::Fenced { .. });
    let zero = w.store.renew(&old, Duration::ZERO).await;
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
        let page = w.store.read(&lease.session, From::Snapshot, Mail(0), u64::MAX).await?;
        let page = page.map(|page| {
            let texts: Vec<_> = page.entries.into_iter().map(|entry| entry.bytes).collect();
            (page.first, page.head, texts.concat())
        });
        let expected = Some((Seq(first), Seq(8), b"678".to_vec()));
        same!(format!("first, head and the rest, pruned below {below}"), page, expected);
        let all = w.store.read(&lease.session, From::Seq(Seq(first)), Mail(0), u64::MAX).await?;
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
        for from in [From::Seq(Seq(from)), From::SnapshotBelow(Seq(from))] {
            let page = w.store.read(&lease.session, from, Mail(0), u64::MAX).await;
            refused!(format!("{from:?}"), page, StoreError::Pruned { first: Seq(6), .. });
        }
    }
    Ok(())
}

async fn leaves(w: World) -> Kept {
    let lease = snapshots(&w).await?;
    let id = &lease.session;
    w.change(&lease, 8, None, &[question("q", None)], &[]).await?;
    w.post(id, &[letter("k", "v")]).await?;
    let read = || w.store.read(id, From::Seq(Seq(6)), Mail(0), u64::MAX);
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
    let posted = w.post(id, &[letter("k", "v")]).await?;
    same!("the letter resent", posted, Posted::Here(Mail(1)));
    Ok(())
}

async fn needs_lease(w: World) -> Kept {
    let lease = snapshots(&w).await?;
    w.store.renew(&lease, Duration::ZERO).await?;
    let prune = w.store.remove(&lease, Remove::Below(Seq(6))).await;
    refused!("pruning without", prune, StoreError::Fenced { .. });
    let page = w.page(&lease.session).await?;
    same!("first and facts", (page.first, page.facts), (Seq(1), w.facts(Phase::Ended)));
    Ok(())
}
