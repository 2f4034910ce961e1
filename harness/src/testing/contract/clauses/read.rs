//! Reading a log in pages.

use crate::id::Seq;
use crate::store::{Batch, InboxSeq, Lease, NewEntry, Page, Phase, ReadFrom, ReadRequest};

use super::super::world::{Broken, Kept, Stop, World, interrupt, message};
use super::clauses;

clauses! {
    "pages-end-where-batches-end" => whole,
    "page-holds-at-least-one-batch" => at_least_one,
    "page-holds-no-more-than-the-limit" => limit,
    "read-begins-where-requested" => begins,
    "read-after-the-head-is-empty" => behind,
    "read-begins-at-a-snapshot" => snapshot,
    "read-gives-messages-after-the-mark" => mark,
    "read-of-a-summary-has-no-entries-and-no-messages" => summary_only,
}

/// How many entries each batch has, of ten bytes each.
const BATCHES: [usize; 7] = [1, 3, 2, 1, 5, 1, 2];

async fn batches(w: &World) -> Kept<Lease> {
    let lease = w.session("x", 0).await?;
    let summary = w.summary(Phase::Running);
    let mut head = 0;
    for count in BATCHES {
        let texts: Vec<_> = (1..=count as u64).map(|n| format!("{:010}", head + n)).collect();
        let entries: Vec<_> =
            texts.iter().map(|text| NewEntry { bytes: text.as_bytes(), snapshot: false }).collect();
        let batch = Batch {
            after: Seq(head),
            entries: &entries,
            summary: Some(&summary),
            ..Batch::default()
        };
        head = w.store.append(&lease, batch).await?.head.0;
    }
    Ok(lease)
}

/// The last seq of each batch.
fn ends() -> Vec<u64> {
    BATCHES
        .iter()
        .scan(0, |head, count| {
            *head += *count as u64;
            Some(*head)
        })
        .collect()
}

async fn read(w: &World, lease: &Lease, from: u64, limit: u64) -> Kept<Page> {
    let page = w
        .store
        .read(
            &lease.session,
            ReadRequest::from(Seq(from)).with_messages_after(InboxSeq(0)).limit(limit),
        )
        .await?;
    page.ok_or_else(|| Broken("the session is not there".into()))
}

/// All pages from `from` on.
async fn pages(w: &World, lease: &Lease, from: u64, limit: u64) -> Kept<Vec<Page>> {
    let mut found = vec![read(w, lease, from, limit).await?];
    while let Some(next) = found.last().and_then(|page| page.next) {
        ensure!(found.len() < 100, "a session of 15 entries has no end, in pages of {limit} bytes");
        found.push(read(w, lease, next.0, limit).await?);
    }
    Ok(found)
}

async fn whole(w: World) -> Kept {
    let lease = batches(&w).await?;
    for limit in [0, 1, 10, 25, 30, 45, 60, 1_000] {
        let mut seq = 0;
        for page in pages(&w, &lease, 1, limit).await? {
            for entry in &page.entries {
                seq += 1;
                same!("the seq", entry.seq, Seq(seq));
                same!("the entry", entry.bytes, format!("{seq:010}").into_bytes());
            }
            ensure!(ends().contains(&seq), "a page of {limit} bytes ends inside a batch, at {seq}");
            let next = (seq < 15).then_some(Seq(seq + 1));
            same!(format!("`next` of a page that ends at {seq}"), page.next, next);
            same!("the head", page.head, Seq(15));
        }
        same!(format!("the last entry, in pages of {limit} bytes"), seq, 15);
    }
    Ok(())
}

async fn at_least_one(w: World) -> Kept {
    let lease = batches(&w).await?;
    for limit in [0, 1, 9] {
        let found: Vec<_> =
            pages(&w, &lease, 1, limit).await?.iter().map(|page| page.entries.len()).collect();
        same!(format!("entries in pages of {limit} bytes"), found, BATCHES);
    }
    Ok(())
}

async fn limit(w: World) -> Kept {
    let lease = batches(&w).await?;
    for (limit, expected) in [
        (10, vec![1, 3, 2, 1, 5, 1, 2]),
        (40, vec![4, 3, 5, 3]),
        (60, vec![6, 6, 3]),
        (69, vec![6, 6, 3]),
        (70, vec![7, 6, 2]),
        (150, vec![15]),
        (u64::MAX, vec![15]),
    ] {
        let found: Vec<_> =
            pages(&w, &lease, 1, limit).await?.iter().map(|page| page.entries.len()).collect();
        same!(format!("entries in pages of {limit} bytes"), found, expected);
    }
    Ok(())
}

async fn begins(w: World) -> Kept {
    let lease = batches(&w).await?;
    for (from, first, last) in [(0, 1, 1), (1, 1, 1), (2, 2, 4), (3, 3, 4), (4, 4, 4), (10, 10, 12)]
    {
        let page = read(&w, &lease, from, 0).await?;
        let seqs: Vec<u64> = page.entries.iter().map(|entry| entry.seq.0).collect();
        let expected: Vec<u64> = (first..=last).collect();
        same!(format!("a page from {from} on, to the end of the batch"), seqs, expected);
    }
    Ok(())
}

async fn behind(w: World) -> Kept {
    let lease = w.session("x", 3).await?;
    w.send(&lease.session, &[message("k", "v")]).await?;
    for from in [4, 5, u64::MAX] {
        let page = read(&w, &lease, from, 100).await?;
        let found = (page.entries.len(), page.next, page.head, page.messages.len());
        same!(
            format!("entries, next, head and messages from {from} on"),
            found,
            (0, None, Seq(3), 1)
        );
    }
    Ok(())
}

async fn snapshot(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let first = async |from| {
        let page = w
            .store
            .read(
                &lease.session,
                ReadRequest::entries(from).with_messages_after(InboxSeq(0)).limit(0),
            )
            .await?;
        Ok::<_, Stop>(page.and_then(|page| page.entries.first().map(|entry| entry.seq.0)))
    };
    same!("no snapshot", first(ReadFrom::Snapshot).await?, Some(1));
    for after in 1..9 {
        let snapshot = after == 3 || after == 6;
        let entries = &[NewEntry { bytes: b"x", snapshot }];
        w.store.append(&lease, Batch { after: Seq(after), entries, ..Batch::default() }).await?;
    }
    // One inside a batch: a reader can start there too.
    let plain = NewEntry { bytes: b"x", snapshot: false };
    let inside = &[plain, NewEntry { bytes: b"s", snapshot: true }, plain];
    let batch = Batch { after: Seq(9), entries: inside, ..Batch::default() };
    same!("the last snapshot", first(ReadFrom::Snapshot).await?, Some(7));
    w.store.append(&lease, batch).await?;
    same!("the last snapshot, inside a batch", first(ReadFrom::Snapshot).await?, Some(11));
    for (below, expected) in [(0, 1), (3, 1), (4, 4), (6, 4), (7, 7), (10, 7), (11, 11), (99, 11)] {
        let found = first(ReadFrom::SnapshotBelow(Seq(below))).await?;
        same!(format!("the last snapshot at or below {below}"), found, Some(expected));
    }
    Ok(())
}

async fn mark(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let messages: Vec<_> = (1..=5).map(|n| message(&format!("k{n}"), &n.to_string())).collect();
    w.send(&lease.session, &messages).await?;
    for mark in [0, 1, 4, 5, 6, u64::MAX] {
        let page = w
            .store
            .read(
                &lease.session,
                ReadRequest::from_snapshot().with_messages_after(InboxSeq(mark)).limit(0),
            )
            .await?;
        let page = page.ok_or_else(|| Broken("the session is not there".into()))?;
        let found: Vec<u64> = page.messages.iter().map(|message| message.seq.0).collect();
        let expected: Vec<u64> = (mark.saturating_add(1)..=5).collect();
        same!(format!("messages after mark {mark}"), found, expected);
        same!("how many were sent", page.inbox, InboxSeq(5));
    }
    Ok(())
}

async fn summary_only(w: World) -> Kept {
    let lease = w.session("x", 3).await?;
    w.change(&lease, 3, None, &[interrupt("q", None)], &[]).await?;
    w.send(&lease.session, &[message("k", "v")]).await?;
    let whole = w.page(&lease.session).await?;
    let page = w.store.read(&lease.session, ReadRequest::summary()).await?;
    let page = page.ok_or_else(|| Broken("the session is not there".into()))?;
    same!(
        "entries, next and messages",
        (page.entries, page.next, page.messages),
        (vec![], None, vec![])
    );
    let found = (page.first, page.head, page.inbox, page.summary, page.interrupts);
    let expected = (whole.first, whole.head, whole.inbox, whole.summary, whole.interrupts);
    same!("first, head, inbox, summary and interrupts", found, expected);
    ensure!(page.holder.is_some(), "the holder is missing");
    let request = ReadRequest::messages_after(InboxSeq(0));
    let page = w.store.read(&lease.session, request).await?;
    let found = page.map(|page| (page.entries.len(), page.messages.len()));
    same!("entries and messages of a request for messages", found, Some((0, 1)));
    Ok(())
}
