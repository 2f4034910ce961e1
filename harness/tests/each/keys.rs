//! What observers know an item by.

use harness::observe::{Event, EventKind};
use harness::store::MemoryStore;

use super::bench::*;

/// Keys are of the item; that of `boom` panics.
fn harness() -> Harness<(), Work> {
    Harness::<(), Work>::builder("keyed")
        .start(Step::Each)
        .steps(|define, step| match step {
            Step::Each => define
                .each(|work: View<Work>, _| async move { Ok(work.items.clone()) })
                .key(|item| match item.as_str() {
                    "boom" => panic!("no key"),
                    "long" => "é".repeat(1_000),
                    item => format!("file {item}"),
                })
                .run(|item: String, _, cx: Cx<()>| async move {
                    if item == "late" && cx.attempt() == 1 {
                        return Err(StepError::retryable("slow"));
                    }
                    if item == "asks" {
                        cx.emit("about to ask".to_owned());
                        cx.ask("what", What { item: item.clone() }).await?;
                    }
                    Ok(item)
                })
                .fold(|_, items| Ok(Work::update().out(items)))
                .retry(Retry::every(std::time::Duration::from_millis(1)).times(1))
                .then(Step::After),
            Step::After => define.run(|_, _| async move { Ok(Work::update()) }).end(),
            other => define.off(format!("{other:?} is not of this loop")),
        })
        .build()
        .unwrap()
}

fn keys_of(events: &[Event], item: u32) -> Vec<Option<&str>> {
    let of = events.iter().filter(|event| event.item == Some(item));
    let mut keys: Vec<_> = of.map(|event| event.item_key.as_deref()).collect();
    keys.dedup();
    keys
}

#[tokio::test(start_paused = true)]
async fn each_event_of_an_item_has_its_key_in_all_runs() {
    let (first, second) = (recorder(), recorder());
    let agent = harness().agent("a", ()).store(MemoryStore::new());
    let given = items(["late", "asks", "long", "boom"]);
    let outcome = agent.run(given, ()).session("s").observe(first.clone()).await.unwrap();
    let Outcome::Interrupted(waits) = outcome else { panic!("it asks") };
    let answer = waits.pending::<What>().unwrap().answer("this".to_owned());
    ended(agent.resume("s", answer, ()).observe(second.clone()).await.unwrap());

    let (first, second) = (first.events(), second.events());
    assert!(first.iter().any(|it| matches!(it.kind, EventKind::Retrying { .. })));
    assert_eq!(keys_of(&first, 0), [Some("file late")]);
    assert_eq!(keys_of(&first, 1), [Some("file asks")]);
    assert_eq!(keys_of(&first, 2), [Some(&*"é".repeat(256))]);
    assert_eq!(keys_of(&first, 3), [None]);
    assert_eq!(keys_of(&second, 1), [Some("file asks")]);
    let others = first.iter().chain(&second).filter(|event| event.item.is_none());
    assert!(others.map(|event| &event.item_key).all(Option::is_none));
    let json = serde_json::to_value(second.iter().find(|it| it.item == Some(1)).unwrap()).unwrap();
    assert_eq!(json["item_key"], "file asks");
}
