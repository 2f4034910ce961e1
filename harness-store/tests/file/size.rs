//! How many bytes, and how many sessions.

use std::time::Instant;

use harness::Durability;
use harness::prelude::*;
use harness::store::{Filter, InboxSeq, Phase, SessionStore as _};

use crate::shared_size;
use crate::support::{append, claim, files, id, log, open};

#[tokio::test]
async fn the_frame_of_an_entry_takes_few_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    let payload = [b'p'; 228];
    append(&store, &lease, 0, &payload, Some(Phase::Running)).await.unwrap();
    let before = std::fs::metadata(log(dir.path())).unwrap().len();
    for after in 1..1_000 {
        append(&store, &lease, after, &payload, None).await.unwrap();
    }
    let framed = std::fs::metadata(log(dir.path())).unwrap().len() - before;
    let each = framed as f64 / 999.0 - 228.0;
    assert!(each <= 27.0, "{each}");
    println!("{each} bytes of frame for each entry");
    store.release(&lease, InboxSeq(0)).await.unwrap();
    let all: u64 = ["log", "lease", "checkpoint"]
        .iter()
        .flat_map(|kind| files(dir.path(), kind))
        .map(|path| std::fs::metadata(path).unwrap().len())
        .sum();
    assert!(all <= 228 * 1_000 * 3 / 2, "{all}");
}

#[tokio::test]
async fn a_log_of_100_000_entries_is_read_and_pruned() {
    let dir = tempfile::tempdir().unwrap();
    shared_size::long_log(open(dir.path()).await).await;
}

#[tokio::test]
async fn ten_thousand_open_interrupts_are_listed_by_page_and_answered_at_once() {
    let dir = tempfile::tempdir().unwrap();
    shared_size::many_interrupts(open(dir.path()).await).await;
}

/// `HARNESS_STORE_SESSIONS=100000` makes as many as a busy machine holds.
#[tokio::test]
async fn many_sessions_are_listed() {
    let sessions: u32 =
        std::env::var("HARNESS_STORE_SESSIONS").map_or(5_000, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let begun = Instant::now();
    for number in 0..sessions {
        let lease = claim(&store, &id(&format!("session {number:06}"))).await;
        append(&store, &lease, 0, b"{}", Some(Phase::Ended)).await.unwrap();
        store.release(&lease, InboxSeq(0)).await.unwrap();
    }
    println!("made in {:?}", begun.elapsed());
    let begun = Instant::now();
    let (mut after, mut seen) = (None, 0);
    let fresh = open(dir.path()).await;
    loop {
        let listing = fresh.list(&Filter::sessions(), after.as_deref(), 10_000).await.unwrap();
        for row in listing.rows {
            assert_eq!(row.session.as_str(), format!("session {seen:06}"));
            seen += 1;
        }
        after = listing.next;
        if after.is_none() {
            break;
        }
    }
    println!("listed in {:?}", begun.elapsed());
    assert_eq!(seen, sessions);
    let middle = harness::store::Filter::sessions();
    let after = format!("session {:06}", sessions / 2).into_bytes();
    let begun = Instant::now();
    let listing = fresh.list(&middle, Some(&after), 50).await.unwrap();
    println!("a page of 50 in the middle takes {:?}", begun.elapsed());
    assert_eq!(listing.rows[0].session.as_str(), format!("session {:06}", sessions / 2 + 1));
    let begun = Instant::now();
    let none = fresh.list(&Filter::sessions().phase(Phase::Failed), None, 50).await.unwrap();
    println!("a page that no session is on takes {:?}", begun.elapsed());
    assert_eq!(none.rows, []);
}

/// Not a check: what an append costs beside the bare write of the same line.
#[tokio::test]
#[ignore = "measures"]
async fn the_cost_of_an_append() {
    use std::io::Write as _;

    const COUNT: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    let payload = [b'p'; 228];
    append(&store, &lease, 0, &payload, Some(Phase::Running)).await.unwrap();
    for _ in 0..3 {
        let head = crate::support::page(&store, &id("x")).await.unwrap().unwrap().head.0;
        let begun = Instant::now();
        for after in head..head + COUNT {
            append(&store, &lease, after, &payload, None).await.unwrap();
        }
        let ours = begun.elapsed() / COUNT as u32;
        let path = dir.path().join("by hand");
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        let begun = Instant::now();
        for after in 0..COUNT {
            let mut line = format!("{after} ").into_bytes();
            line.extend(payload);
            line.push(b'\n');
            file.write_all(&line).unwrap();
        }
        println!("an append takes {ours:?}, a write {:?}", begun.elapsed() / COUNT as u32);
    }
    let durable = harness_store::FileStore::open(dir.path().join("durable")).await.unwrap();
    let lease = claim(&durable, &id("x")).await;
    let begun = Instant::now();
    for after in 0..100 {
        append(&durable, &lease, after, &payload, Some(Phase::Ended)).await.unwrap();
    }
    println!("a durable settle takes {:?}", begun.elapsed() / 100);
    let begun = Instant::now();
    for after in 100..200 {
        append(&durable, &lease, after, &payload, None).await.unwrap();
    }
    println!("a durable append takes {:?}", begun.elapsed() / 100);
    let path = dir.path().join("synced");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    let begun = Instant::now();
    for _ in 0..100 {
        file.write_all(&payload).unwrap();
        file.sync_data().unwrap();
    }
    println!("a write and a sync take {:?}", begun.elapsed() / 100);
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Large {
    text: String,
    #[state(reduce = add)]
    n: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Wait,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    More,
    Enough,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sure;

/// The turn is larger than what the store takes at once.
#[tokio::test]
async fn a_turn_of_900_large_steps_is_written_at_its_end_and_resumed() {
    const STEPS: u32 = 900;
    let large = Harness::<(), Large>::builder("large")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define
                .run(|large: View<Large>, _| async move {
                    let text = format!("{:08}", large.n).repeat(10_000);
                    Ok(Large::update().text(text).n(1))
                })
                .route(
                    |large: &Large| if large.n < STEPS { Next::More } else { Next::Enough },
                    |next| match next {
                        Next::More => to(Step::Write),
                        Next::Enough => to(Step::Wait),
                    },
                ),
            Step::Wait => define
                .ask(|_, _| async move { Ok(Sure) })
                .answer(|_, _, _| async move { Ok(Large::update()) })
                .end(),
        })
        .build()
        .unwrap();
    for mode in [Durability::Settle, Durability::Relaxed] {
        let dir = tempfile::tempdir().unwrap();
        let agent = large.agent("a", ()).durability(mode);
        let outcome = agent.clone().store(open(dir.path()).await).run(Large::update(), ());
        let outcome = outcome.session("s").await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{mode:?}: {outcome:?}") };
        let yes = waiting.pending::<Sure>().unwrap().answer(true);
        let ended = agent.store(open(dir.path()).await).resume("s", yes, ()).await.unwrap();
        let ended = ended.ended().unwrap();
        assert_eq!((ended.state.n, ended.state.text.len()), (STEPS, 80_000), "{mode:?}");
    }
}
