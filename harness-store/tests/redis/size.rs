//! Large sessions, and lists whose pages cost the same however many sessions there are.

use harness::store::{
    Batch, Filter, InboxSeq, Message, NewEntry, OpenInterrupt, Phase, ReadRequest, Remove, Sent,
    SessionStore as _,
};
use harness::{InterruptId, Seq, UtcMillis};

use crate::place::{Place, append, claim, page};
use crate::support::{id, summary};

#[tokio::test]
async fn a_state_of_50_mb_is_kept_and_read_back() {
    let place = Place::new("size_state");
    let store = place.open().await;
    let lease = claim(&store, &id("x")).await;
    let bytes: Vec<u8> =
        (0..50_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    append(&store, &lease, 0, &bytes).await.unwrap();
    append(&store, &lease, 1, b"two").await.unwrap();
    let page = page(&store, &id("x")).await;
    assert!(page.entries[0].bytes == bytes);
    assert_eq!(page.entries[1].bytes, b"two");
    let first = store.read(&id("x"), ReadRequest::from(Seq(1)).limit(1)).await.unwrap().unwrap();
    assert_eq!((first.entries.len(), first.next), (1, Some(Seq(2))));
    store.remove(&lease, Remove::All).await.unwrap();
}

fn agent_id(text: &str) -> harness::id::AgentId {
    serde_json::from_value(text.into()).unwrap()
}

#[tokio::test]
async fn pages_in_the_middle_of_100_000_sessions_that_wait() {
    let place = Place::new("size_list");
    let store = place.open().await;
    let summary = serde_json::to_string(&summary(Phase::Interrupted)).unwrap();
    // As the store has them, which the pages below read.
    let make = redis::Script::new(
        "local p = KEYS[1]
         for n = tonumber(ARGV[2]), tonumber(ARGV[3]) do
            local id = string.format('s%06d', n)
            redis.call('HSET', p .. 'session:' .. id, 'head', 1, 'first', 1, 'created', 1,
                'updated', 2, 'summary', ARGV[1], 'fence', 1, 'listed', id, 'open', 1)
            redis.call('HSET', p .. 'open:' .. id, 'q', '5:')
            redis.call('ZADD', p .. 'ids:' .. id, 0, 'q')
            local agent = 'a' .. n % 3
            for _, base in ipairs({'all', 'open'}) do
                for _, name in ipairs({'', ':agent:' .. agent, ':phase:2',
                        ':both:2:' .. agent}) do
                    redis.call('ZADD', p .. base .. name, 0, id)
                end
            end
         end",
    );
    for begin in (1..100_000).step_by(1_000) {
        make.key(format!("{{{}}}:", place.prefix))
            .arg(&summary)
            .arg(begin)
            .arg(begin + 999)
            .invoke::<()>(&mut place.raw())
            .unwrap();
    }
    for filter in [
        Filter::sessions(),
        Filter::sessions().agent(agent_id("a1")),
        Filter::sessions().phase(Phase::Interrupted),
        Filter::sessions().agent(agent_id("a1")).phase(Phase::Interrupted),
        Filter::interrupts(),
        Filter::interrupts().agent(agent_id("a1")),
        Filter::interrupts().agent(agent_id("a1")).phase(Phase::Interrupted),
    ] {
        let after = b"s090000".to_vec();
        let begun = std::time::Instant::now();
        let listing = store.list(&filter, Some(&after), 100).await.unwrap();
        assert_eq!(listing.rows.len(), 100, "{filter:?}");
        assert!(listing.next.is_some());
        // The key of a session comes before those of its interrupts.
        let first = listing.rows[0].session.as_str();
        assert!(first > "s090000" || filter.interrupts && first == "s090000", "{first}");
        let took = begun.elapsed();
        assert!(took < std::time::Duration::from_secs(5), "{filter:?} took {took:?}");
    }
    place.clear();
}

#[tokio::test]
async fn pages_of_a_long_log_and_its_pruning() {
    let place = Place::new("size_log");
    let store = place.open().await;
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
    let all = page(&store, &id("x")).await;
    assert_eq!((all.entries.len(), all.head), (100_000, Seq(100_000)));
    store.remove(&lease, Remove::Below(Seq(100_000))).await.unwrap();
    let kept = store.read(&id("x"), ReadRequest::from_snapshot().limit(1)).await.unwrap().unwrap();
    assert_eq!((kept.first, kept.entries[0].seq), (Seq(85_000), Seq(85_000)));
    assert_eq!((kept.entries.len(), kept.next), (5_001, Some(Seq(90_001))));
}

#[tokio::test]
async fn ten_thousand_open_interrupts_are_listed_by_page_and_answered_at_once() {
    let place = Place::new("size_open");
    let store = place.open().await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    let name = |at: usize| InterruptId::new(format!("q{at:05}"));
    let open: Vec<_> = (0..10_000).map(|at| OpenInterrupt::new(name(at), UtcMillis(1))).collect();
    let batch = Batch { after: Seq(1), open: &open, flush: true, ..Batch::default() };
    store.append(&lease, batch).await.unwrap();
    let (mut after, mut listed) = (None, 0);
    loop {
        let page = store.list(&Filter::interrupts(), after.as_deref(), 999).await.unwrap();
        for row in &page.rows {
            assert_eq!(row.interrupt.as_ref().unwrap().id, name(listed));
            listed += 1;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, 10_000);
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
