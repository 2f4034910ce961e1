//! Timers of the items of a step.

use super::timers::*;

/// Items of these hours: each sleeps so long, those of 0 not at all.
fn items(hours: &[u32], seen: Arc<Mutex<Vec<(u32, u32)>>>) -> Agent<(), Doc> {
    let hours = hours.to_vec();
    let harness = Harness::<(), Doc>::builder("timers")
        .start(Only::Step)
        .steps(|define, Only::Step| {
            let (hours, seen) = (hours.clone(), Arc::clone(&seen));
            define
                .each(move |_, _| {
                    let hours = hours.clone();
                    async move { Ok(hours) }
                })
                .concurrency(1)
                .run(move |hours: u32, _, cx: Cx<()>| {
                    let seen = Arc::clone(&seen);
                    async move {
                        cx.sleep("nap", hours * HOUR).await?;
                        seen.lock().unwrap().push((cx.item().unwrap(), cx.attempt()));
                        Ok(hours)
                    }
                })
                .fold(|_, hours| Ok(Doc::update().lines([format!("{hours:?}")])))
                .end()
        })
        .build()
        .unwrap();
    harness.agent("a", ())
}

#[tokio::test(start_paused = true)]
async fn an_item_that_sleeps_holds_up_no_other() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let store = MemoryStore::new();
    let agent = items(&[2, 0, 1, 0, 1], Arc::clone(&seen)).store(store.clone());
    let began = UtcMillis::now();
    assert_eq!(until(&begin(&agent).await), began.after(HOUR));
    assert_eq!(*seen.lock().unwrap(), [(1, 1), (3, 1)]);
    let timers = Sessions::new(store.clone()).status("s").await.unwrap().timers;
    assert_eq!(timers.iter().map(|it| it.item).collect::<Vec<_>>(), [Some(0), Some(2), Some(4)]);
    tokio::time::advance(HOUR).await;
    assert_eq!(until(&again(&agent).await), began.after(2 * HOUR));
    assert_eq!(seen.lock().unwrap()[2..], [(2, 2), (4, 2)]);
    tokio::time::advance(HOUR).await;
    assert_eq!(lines(again(&agent).await), ["[2, 0, 1, 0, 1]"]);

    // In memory the run waits for them.
    seen.lock().unwrap().clear();
    let began = UtcMillis::now();
    assert_eq!(lines(begin(&items(&[2, 0, 1], Arc::clone(&seen))).await), ["[2, 0, 1]"]);
    assert_eq!(*seen.lock().unwrap(), [(1, 1), (2, 2), (0, 2)]);
    assert!(UtcMillis::now() >= began.after(2 * HOUR));
}

#[tokio::test(start_paused = true)]
async fn an_item_wakes_while_another_waits_for_an_answer() {
    let harness = Harness::<(), Doc>::builder("timers")
        .start(Only::Step)
        .steps(|define, Only::Step| {
            define
                .each(async |_, _| Ok(vec![true, false]))
                .run(async |asks: bool, _, cx: Cx<()>| match asks {
                    true => Ok(cx.ask("what", What).await?),
                    false => cx.sleep("nap", HOUR).await.map(|()| "awake".to_owned()),
                })
                .fold(|_, said| Ok(Doc::update().lines(said)))
                .end()
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(MemoryStore::new());
    let first = begin(&agent).await;
    let Outcome::Interrupted(waiting) = &first else { panic!("{first:?}") };
    assert_eq!(waiting.until, Some(UtcMillis::now().after(HOUR)));
    tokio::time::advance(HOUR).await;
    let Outcome::Interrupted(waiting) = again(&agent).await else { panic!("it is asked") };
    assert_eq!(waiting.until, None, "the other item is done");
    let said = waiting.pending::<What>().unwrap().answer("yes".into());
    assert_eq!(lines(agent.resume("s", said, ()).await.unwrap()), ["yes", "awake"]);
}
