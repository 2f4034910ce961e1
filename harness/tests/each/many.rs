//! 10,000 items that ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use harness::Sessions;
use harness::store::MemoryStore;

use super::bench::*;

const MANY: usize = 10_000;

/// In a debug build; a lookup that grows with the questions takes minutes.
const LONG: Duration = Duration::from_secs(60);

fn agent(entered: &Arc<Mutex<HashMap<String, u32>>>) -> Agent<(), Work> {
    let entered = Arc::clone(entered);
    let made = Loop { concurrency: Some(MANY), ..Loop::default() };
    let harness = made.build(move |item, cx| {
        *entered.lock().unwrap().entry(item.clone()).or_default() += 1;
        async move { ask(item, &cx).await }
    });
    harness.agent("a", ())
}

fn input() -> <Work as State>::Update {
    Work::update().items((0..MANY).map(|n| n.to_string()).collect::<Vec<_>>())
}

fn check(out: &[String], entered: &Mutex<HashMap<String, u32>>) {
    assert_eq!(out.len(), MANY + 1);
    let said = |(n, line): (usize, &String)| *line == format!("said {n}");
    assert!(out[..MANY].iter().enumerate().all(said));
    // Once to ask, once with its answer.
    assert!(entered.lock().unwrap().values().all(|times| *times == 2));
}

#[tokio::test]
async fn ten_thousand_questions_are_answered_in_batches_from_elsewhere() {
    let began = Instant::now();
    let (entered, store) = (Arc::default(), MemoryStore::new());
    let agent = agent(&entered).store(store.clone());
    let asked = waiting(agent.run(input(), ()).session("s").await.unwrap());
    assert_eq!(asked.questions.len(), MANY);
    assert!(asking(&asked.questions).is_sorted());
    eprintln!("asked {:?}", began.elapsed());
    // From another process: no run holds the session.
    let sessions = Sessions::new(store.clone());
    let open = sessions.pending_interrupts().await.unwrap();
    assert_eq!((open.rows.len(), open.next), (MANY, None));
    for batch in asked.questions[..MANY / 2].chunks(MANY / 8) {
        sessions.answer_json("s", answers(batch)).await.unwrap();
    }
    eprintln!("answered {:?}", began.elapsed());
    let open = sessions.status("s").await.unwrap().questions;
    assert_eq!(open.len(), MANY / 2);
    // By a resume: half of the rest, with what is in the inbox.
    let some = answers(&open[..MANY / 4]);
    let left = waiting(agent.resume("s", some, ()).await.unwrap());
    assert_eq!(left.questions.len(), MANY / 4);
    eprintln!("resumed {:?}", began.elapsed());
    let out = ended(agent.resume("s", answers(&left.questions), ()).await.unwrap());
    check(&out.state.out, &entered);
    eprintln!("ended {:?}", began.elapsed());
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
}

#[tokio::test]
async fn ten_thousand_questions_are_answered_in_this_process() {
    let began = Instant::now();
    let entered = Arc::default();
    let agent = agent(&entered);
    let mut asked = waiting(agent.run(input(), ()).await.unwrap());
    for batch in 1..4 {
        let some = answers(asked.questions.iter().take(MANY / 4));
        asked = waiting(agent.resume(&asked, some, ()).await.unwrap());
        assert_eq!(asked.questions.len(), MANY - batch * MANY / 4);
    }
    let out = ended(agent.resume(&asked, answers(&asked.questions), ()).await.unwrap());
    check(&out.state.out, &entered);
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
}
