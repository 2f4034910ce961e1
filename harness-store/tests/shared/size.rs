//! Large sessions.

use harness::store::{
    Batch, Filter, InboxSeq, Message, NewEntry, OpenInterrupt, Phase, ReadRequest, Remove, Sent,
    SessionStore,
};
use harness::{InterruptId, Seq, UtcMillis};

use crate::support::{append_running as append, claim, id, summary, whole};

/// A state of 50 MB is kept and read back.
pub(crate) async fn large_state(store: impl SessionStore) {
    let lease = claim(&store, &id("x")).await;
    let bytes: Vec<u8> =
        (0..50_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    append(&store, &lease, 0, &bytes).await.unwrap();
    append(&store, &lease, 1, b"two").await.unwrap();
    let page = whole(&store, &id("x")).await;
    assert!(page.entries[0].bytes == bytes);
    assert_eq!(page.entries[1].bytes, b"two");
    let first = store.read(&id("x"), ReadRequest::from(Seq(1)).limit(1)).await.unwrap().unwrap();
    assert_eq!((first.entries.len(), first.next), (1, Some(Seq(2))));
    store.remove(&lease, Remove::All).await.unwrap();
}

/// A log of 100,000 entries is read as a whole, cut, and read from its snapshot on.
pub(crate) async fn long_log(store: impl SessionStore) {
    let lease = claim(&store, &id("x")).await;
    let summary = summary(Phase::Running);
    let bytes: Vec<Vec<u8>> = (0..10_000_u32).map(|at| at.to_be_bytes().to_vec()).collect();
    for (round, after) in (0..10).map(|round| (round, round * 10_000)) {
        let entries: Vec<_> = bytes
            .iter()
            .enumerate()
            .map(|(at, bytes)| NewEntry { bytes, snapshot: round == 8 && at == 4_999 })
            .collect();
        let batch = Batch {
            after: Seq(after),
            at: UtcMillis(after),
            entries: &entries,
            summary: Some(&summary),
            ..Batch::default()
        };
        store.append(&lease, batch).await.unwrap();
    }
    let all = whole(&store, &id("x")).await;
    assert_eq!((all.entries.len(), all.head), (100_000, Seq(100_000)));
    store.remove(&lease, Remove::Below(Seq(100_000))).await.unwrap();
    let mut kept =
        store.read(&id("x"), ReadRequest::from_snapshot().limit(1)).await.unwrap().unwrap();
    assert_eq!((kept.first, kept.entries[0].seq), (Seq(85_000), Seq(85_000)));
    assert!(kept.next.is_some(), "a page has about as much as it is asked for");
    let mut seqs = Vec::new();
    loop {
        seqs.extend(kept.entries.iter().map(|entry| entry.seq.0));
        let Some(next) = kept.next else { break };
        kept = store.read(&id("x"), ReadRequest::from(next).limit(1)).await.unwrap().unwrap();
    }
    assert!(seqs.into_iter().eq(85_000..=100_000));
}

/// 10,000 open interrupts are listed by page, and answered at once.
pub(crate) async fn many_interrupts(store: impl SessionStore) {
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    let name = |at: usize| InterruptId::new(format!("q{at:05}"));
    let open: Vec<_> = (0..10_000).map(|at| OpenInterrupt::new(name(at), UtcMillis(1))).collect();
    let batch = Batch { after: Seq(1), open: &open, flush: true, ..Batch::default() };
    store.append(&lease, batch).await.unwrap();
    assert_eq!(whole(&store, &id("x")).await.interrupts, open);
    let (mut after, mut listed) = (None, 0);
    loop {
        let page = store.list(&Filter::interrupts(), after.as_deref(), 999).await.unwrap();
        for row in &page.rows {
            assert_eq!(row.interrupt.as_ref(), open.get(listed));
            listed += 1;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, open.len());
    let answers: Vec<_> = (0..10_000)
        .map(|at| {
            let interrupt = Some(name(at));
            Message { interrupt, ..Message::new(format!("a{at}"), "d", "yes") }
        })
        .collect();
    let sent = store.send(&id("x"), &answers).await.unwrap();
    assert_eq!(sent, Sent::Accepted(InboxSeq(10_000)));
    let close: Vec<_> = (0..10_000).map(name).collect();
    let batch = Batch { after: Seq(1), close: &close, flush: true, ..Batch::default() };
    store.append(&lease, batch).await.unwrap();
    assert!(store.list(&Filter::interrupts(), None, 1).await.unwrap().rows.is_empty());
}
