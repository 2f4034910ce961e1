//! Items, their results, their events, their keys.

use harness::observe::EventKind;
use harness::session::Change;
use harness::store::MemoryStore;
use harness::{Seq, Sessions};

use super::bench::*;
use super::rig::kinds;

#[tokio::test(start_paused = true)]
async fn results_fold_in_the_order_of_the_items() {
    let probe = Probe::default();
    let seen = probe.clone();
    let harness = Loop::default().build(move |item, _| {
        let probe = seen.clone();
        async move {
            if item == "a" {
                probe.pass("a").await;
            }
            probe.hit(item.clone());
            if item == "b" {
                probe.open("a");
            }
            Ok(item.to_uppercase())
        }
    });
    for store in [None, Some(MemoryStore::new())] {
        let agent = harness.agent("a", ());
        let agent = match store {
            Some(store) => agent.store(store),
            None => agent,
        };
        let out = ended(agent.run(items(["a", "b", "c"]), ()).await.unwrap());
        assert_eq!(out.state.out, ["A", "B", "C", "After"]);
        assert_eq!(out.steps, 2);
    }
    assert_eq!(probe.hits(), ["b", "c", "a", "b", "c", "a"]);
}

#[tokio::test(start_paused = true)]
async fn without_items_the_fold_gets_none() {
    let store = MemoryStore::new();
    let harness = Loop::default().build(|item, _| async move { Ok(item) });
    let agent = harness.agent("a", ()).store(store.clone());
    let out = ended(agent.run(items([]), ()).session("s").await.unwrap());
    assert_eq!(out.state.out, ["After"]);
    let kept = ["open", "run", "planned", "commit", "commit", "settle"];
    assert_eq!(kinds(&store, "s").await, kept);
}

#[tokio::test(start_paused = true)]
async fn so_many_are_at_work_at_a_time_and_one_that_waits_is_not() {
    for concurrency in [1, 2, 3, 100] {
        let probe = Probe::default();
        let seen = probe.clone();
        let harness =
            Loop { concurrency: Some(concurrency), ..Loop::default() }.build(move |item, cx| {
                let probe = seen.clone();
                async move {
                    let at_work = probe.work();
                    tokio::task::yield_now().await;
                    if item.starts_with('q') {
                        ask(item.clone(), &cx).await?;
                    }
                    drop(at_work);
                    Ok(item)
                }
            });
        let agent = harness.agent("a", ());
        let input = items(["q1", "q2", "q3", "d", "e", "f", "q4"]);
        let asked = waiting(agent.run(input, ()).await.unwrap());
        // Three that wait hold no slot: the others were entered.
        assert_eq!(asked.questions.len(), 4, "{concurrency}");
        assert_eq!(probe.most(), concurrency.min(7));
        let out = agent.resume(&asked, answers(&asked.questions), ()).await.unwrap();
        assert_eq!(ended(out).state.out.len(), 8);
        assert_eq!(probe.most(), concurrency.min(7));
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_works_on_the_recorded_items() {
    let store = MemoryStore::new();
    let version = |suffix: &'static str| {
        let plan =
            move |work: &Work| Ok(work.items.iter().map(|it| format!("{it}{suffix}")).collect());
        Loop::default().plan(plan, |item, cx| async move { ask(item, &cx).await })
    };
    let agent = version("-old").agent("a", ()).store(store.clone());
    let asked = waiting(agent.run(items(["x", "y"]), ()).session("s").await.unwrap());
    let agent = version("-new").agent("a", ()).store(store.clone());
    let out = ended(agent.resume("s", answers(&asked.questions), ()).await.unwrap());
    assert_eq!(out.state.out, ["said x-old", "said y-old", "After"]);
    assert_eq!(kinds(&store, "s").await.iter().filter(|kind| *kind == "planned").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_and_ops_are_those_of_the_item() {
    let harness = Loop::default().build(|_, cx| async move {
        let op = cx.op_id().to_string();
        let item = cx.item();
        let first: String = cx.once("k", async move || Ok(op)).await?;
        assert_eq!(observe_item(), item);
        Ok(first)
    });
    let agent = harness.agent("a", ()).store(MemoryStore::new());
    let out = ended(agent.run(items(["a", "b", "c"]), ()).session("s").await.unwrap()).state.out;
    let distinct: std::collections::BTreeSet<_> = out[..3].iter().collect();
    assert_eq!(distinct.len(), 3, "{out:?}");
}

fn observe_item() -> Option<u32> {
    let op = harness::observe::current()?.op_id().to_string();
    op.rsplit(|c: char| !c.is_ascii_digit()).find_map(|part| part.parse().ok())
}

#[tokio::test(start_paused = true)]
async fn an_effect_of_the_session_runs_once_for_all_items() {
    let probe = Probe::default();
    let seen = probe.clone();
    let harness = Loop::default().build(move |_, cx| {
        let probe = seen.clone();
        async move {
            cx.once_per_session("k", async move || {
                tokio::task::yield_now().await;
                probe.hit("k");
                Ok("once".to_owned())
            })
            .await
        }
    });
    let agent = harness.agent("a", ()).store(MemoryStore::new());
    let out = ended(agent.run(items(["a", "b", "c"]), ()).session("s").await.unwrap());
    assert_eq!(out.state.out, ["once", "once", "once", "After"]);
    assert_eq!(probe.hits(), ["k"]);
}

#[tokio::test(start_paused = true)]
async fn events_carry_the_item() {
    let seen = recorder();
    let harness = Loop::default().build(|item, cx| async move {
        cx.emit(item.clone());
        Ok(item)
    });
    let agent = harness.agent("a", ()).store(MemoryStore::new());
    let run = agent.run(items(["a", "b"]), ()).session("s").observe(seen.clone());
    ended(run.await.unwrap());
    let found: Vec<_> = seen
        .events()
        .iter()
        .filter(|event| event.position.0 == 1)
        .map(|event| {
            let kind = match &event.kind {
                EventKind::StepStarted => "started".to_owned(),
                EventKind::Custom(payload) => payload.to_json().as_str().unwrap().to_owned(),
                EventKind::Planned { items, .. } => format!("planned {items}"),
                EventKind::ItemDone { failure } => format!("done {}", failure.is_none()),
                EventKind::Committed { .. } => "committed".to_owned(),
                other => format!("{other:?}"),
            };
            (event.item, kind, event.seq.is_some())
        })
        .collect();
    let mut expected =
        vec![(None, "started".to_owned(), false), (None, "planned 2".to_owned(), true)];
    for (index, item) in [(0, "a"), (1, "b")] {
        expected.push((Some(index), "started".to_owned(), false));
        expected.push((Some(index), item.to_owned(), false));
    }
    for index in [0, 1] {
        expected.push((Some(index), "done true".to_owned(), true));
    }
    expected.push((None, "committed".to_owned(), true));
    assert_eq!(found, expected);
}

#[tokio::test(start_paused = true)]
async fn the_seq_of_an_event_is_that_of_its_entry() {
    let (seen, store) = (recorder(), MemoryStore::new());
    let harness = Loop::default().build(|item, _| async move { Ok(item) });
    let agent = harness.agent("a", ()).store(store.clone());
    let run = agent.run(items(["a", "b", "c"]), ()).session("s").observe(seen.clone());
    ended(run.await.unwrap());
    let page = Sessions::new(store).history("s", Seq(0), 99).await.unwrap();
    let entries: std::collections::HashMap<_, _> = page.entries.into_iter().collect();
    let mut found = 0;
    for event in seen.events() {
        if let EventKind::ItemDone { .. } = event.kind {
            let Change::Item(done) = &entries[&event.seq.unwrap()].change else { panic!() };
            assert_eq!(Some(done.index), event.item);
            found += 1;
        }
    }
    assert_eq!(found, 3);
}

#[test]
fn a_drawing_shows_the_items() {
    let harness = Loop::default().build(|item, _| async move { Ok(item) });
    let drawn = harness.graph().to_mermaid();
    assert!(drawn.to_string().contains("[["), "{drawn}");
}

mod inner {
    use super::*;

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub(super) enum Inner {
        Each,
        Last,
    }

    pub(super) fn steps(
        define: harness::Define<(), Work, Inner>,
        step: Inner,
    ) -> harness::declare::StepDef<(), Work, Inner> {
        match step {
            Inner::Each => define
                .each(|work, _| async move { Ok(work.items.clone()) })
                .run(|item: String, _, cx| async move {
                    let said = ask(item, &cx).await?;
                    Ok(format!("{} {said}", cx.step()))
                })
                .fold(|_, out| Ok(Work::update().out(out)))
                .then(Inner::Last),
            Inner::Last => define.run(|_, _| async move { Ok(Work::update()) }).end(),
        }
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Outer {
    #[step(nest)]
    First(inner::Inner),
    #[step(nest)]
    Second(inner::Inner),
}

#[tokio::test(start_paused = true)]
async fn a_nested_loop_has_items_too() {
    let harness = Harness::<(), Work>::builder("outer")
        .start(Outer::First(inner::Inner::Each))
        .steps(|define, step| match step {
            Outer::First(step) => define
                .nest(Outer::First, inner::steps, step)
                .then(Outer::Second(inner::Inner::Each)),
            Outer::Second(step) => define.nest(Outer::Second, inner::steps, step).end(),
        })
        .build()
        .unwrap();
    for stored in [false, true] {
        let agent = harness.agent("a", ());
        let agent = if stored { agent.store(MemoryStore::new()) } else { agent };
        let first = waiting(agent.run(items(["a", "b"]), ()).session("s").await.unwrap());
        let outcome = agent.resume(&first, answers(&first.questions), ()).await.unwrap();
        let second = waiting(outcome);
        let out = agent.resume(&second, answers(&second.questions), ()).await.unwrap();
        let out = ended(out).state.out;
        assert_eq!(out.len(), 4);
        assert!(out[0].starts_with("First") && out[3].starts_with("Second"), "{out:?}");
        assert!(out[3].ends_with("said b"));
    }
}
