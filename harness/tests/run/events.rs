//! The events of a run: their ids and order, custom events, model calls.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use harness::llm::scripted::{fail, say};
use harness::llm::{LlmError, LlmErrorKind, Scripted, Usage};
use harness::observe::{self, Cause, End, EventKind, Recorder, Streamed};

use crate::common::*;

#[tokio::test]
async fn events_carry_every_id_and_count_from_one() {
    let bench = two(
        |define| {
            define
                .run(async |_, cx| {
                    if cx.attempt() == 1 {
                        Err(Oops("no"))?
                    }
                    Ok(line("first"))
                })
                .retry(Retry::every(Duration::ZERO))
                .then(Two::Second)
        },
        |define| define.run(async |_, _| Ok(line("second"))).end(),
    );
    let out = ended(bench.agent.run(Log::update(), ()).session("s-1").await.unwrap());
    let events = bench.seen.events();
    let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    for event in &events {
        assert_eq!((event.agent.as_str(), event.session.as_str()), ("bench", "s-1"));
        assert_eq!(event.run, out.run);
        assert!(event.parent.is_none());
    }
    let places: Vec<_> = events
        .iter()
        .map(|event| (event.step.as_deref().unwrap_or("-"), event.position.0, event.attempt))
        .collect();
    assert_eq!(
        places,
        [
            ("-", 0, 0),
            ("First", 1, 1),
            ("First", 1, 1),
            ("First", 1, 2),
            ("First", 1, 2),
            ("Second", 2, 1),
            ("Second", 2, 1),
            ("-", 0, 0),
        ]
    );
    let last = events.last().unwrap();
    let EventKind::Settled { end, steps, .. } = &last.kind else { panic!("{last}") };
    assert_eq!((end, *steps), (&End::Ended { by: None }, 2));
    let json = serde_json::to_value(&events[1]).unwrap();
    assert_eq!((&json["event"], &json["step"]), (&"step_started".into(), &"First".into()));
    assert_eq!((&json["position"], &json["session"]), (&1.into(), &"s-1".into()));
}

#[tokio::test]
async fn a_run_that_a_step_starts_knows_its_parent() {
    let seen = Recorder::default();
    let inner = only(|define| define.run(async |_, _| Ok(line("inner"))).end());
    let child = inner.agent.clone().observe(seen.clone());
    let outer = only(move |define| {
        let child = child.clone();
        define
            .run(move |_log, cx| {
                let child = child.clone();
                async move {
                    let awaited = child.run(Log::update(), ()).await.fatal()?;
                    let started = child.run(Log::update(), ()).start().await.fatal()?;
                    drop((awaited, started));
                    // The scope is the parent's again.
                    cx.emit(Note(observe::current().map(|it| it.step().to_owned())));
                    Ok(line("outer"))
                }
            })
            .end()
    });
    let out = ended(outer.run().await);
    let events = seen.events();
    assert_eq!(events.len(), 8);
    assert!(events.iter().all(|event| event.parent.as_ref() == Some(&out.run)));
    let runs: HashSet<_> = events.iter().map(|event| event.run.clone()).collect();
    assert_eq!(runs.len(), 2);
    assert!(!runs.contains(&out.run));
    assert_eq!(notes(&outer.seen), [Some("Work".to_owned())]);
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Note(Option<String>);

fn notes(seen: &Recorder) -> Vec<Option<String>> {
    seen.events().iter().filter_map(|it| it.custom::<Note>()).map(|it| it.0.clone()).collect()
}

/// A value in a slot that knows nothing of any `Cx`.
fn note(text: &str) {
    if let Some(step) = observe::current() {
        step.emit(Note(Some(format!("{text} in {} of {}", step.attempt(), step.op_id()))));
    }
}

#[tokio::test]
async fn any_value_may_emit_typed_events_wherever_the_step_is_carried() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                note("step");
                tokio::task::yield_now().await;
                note("after a pause");
                cx.spawn(async {
                    tokio::task::yield_now().await;
                    note("task");
                })
                .await?;
                tokio::spawn(cx.scope(async { note("carried") })).await?;
                tokio::spawn(async { note("not carried") }).await?;
                let effect = cx.once("k", async || {
                    note("effect");
                    Ok(())
                });
                effect.await?;
                note("step again");
                Ok(line("done"))
            })
            .end()
    });
    ended(bench.agent.run(Log::update(), ()).session("s").await.unwrap());
    let expected = ["step", "after a pause", "task", "carried", "effect", "step again"];
    let expected: Vec<_> = expected.map(|it| Some(format!("{it} in 1 of s/1"))).into();
    let found: Vec<_> = notes(&bench.seen)
        .into_iter()
        .map(|note| note.map(|it| without_incarnation(&it)))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(bench.seen.lines()[2], "Work#1 emitted Note");
    let json = serde_json::to_value(&bench.seen.events()[2]).unwrap();
    assert_eq!(json["name"], "Note");
    assert_eq!(without_incarnation(json["payload"].as_str().unwrap()), "step in 1 of s/1");
    assert!(observe::current().is_none());
}

#[tokio::test]
async fn committed_events_follow_the_commit() {
    // A later step sees what the earlier one committed; its event comes before that step's own.
    let bench = two(
        |define| define.run(async |_, _| Ok(line("first"))).then(Two::Second),
        |define| {
            define
                .run(async |log, cx| {
                    cx.emit(Note(log.lines.first().cloned()));
                    Ok(line("second"))
                })
                .end()
        },
    );
    bench.run().await;
    assert_eq!(
        bench.log(),
        [
            "run started",
            "First#1 started",
            "First#1 committed -> Second",
            "Second#2 started",
            "Second#2 emitted Note",
            "Second#2 committed -> end",
            "run ended",
        ]
    );
    // A step whose reducer panics is not reported as committed.
    let lost = only(|define| {
        define.run(async |_, _| Ok(line("half"))).route(
            |_| -> Never { panic!("no way") },
            |next| match next {
                Never::Here => end(),
            },
        )
    });
    failed(lost.run().await);
    assert_eq!(
        lost.log(),
        ["run started", "Work#1 started", "run failed: the route panicked: no way"]
    );
}

#[derive(Signal, Clone, Copy)]
enum Never {
    Here,
}

#[tokio::test]
async fn model_calls_are_identified_reported_and_charged() {
    let overloaded = || fail(LlmError::new(LlmErrorKind::Overloaded));
    let model = Scripted::new([
        say("one").usage(Usage::tokens(3, 4)),
        overloaded(),
        say("two").usage(Usage::tokens(5, 6)),
        say("three").usage(Usage::tokens(1, 1)),
    ]);
    let scripted = model.clone();
    let bench = two(
        move |define| {
            let model: Arc<dyn Llm> = Arc::new(scripted.clone());
            define
                .run(move |_log, cx| {
                    let model = Arc::clone(&model);
                    async move {
                        let talk = Transcript::from_iter([user("hi")]);
                        let tools = ToolSet::default();
                        let a = cx.llm(&model).complete(&talk, &tools).await?;
                        let b = cx.llm(&model).complete(&talk, &tools).await?;
                        Ok(line(format!("{:?} {:?}", a.text(), b.text())))
                    }
                })
                .retry(Retry::every(Duration::ZERO))
                .then(Two::Second)
        },
        |define| define.run(async |_, _| Ok(line("end"))).end(),
    );
    let out = ended(bench.agent.run(Log::update(), ()).session("s").await.unwrap());
    assert_eq!(out.state.lines, [r#"Some("two") Some("three")"#, "end"]);
    assert_eq!(out.spent.usage.total(), Some(20));
    let (mut started, mut over, mut charged) = (Vec::new(), Vec::new(), 0);
    for event in bench.seen.events() {
        match &event.kind {
            EventKind::CallStarted { call, .. } => started.push(call.to_string()),
            EventKind::CallEnded { call, error, .. } => {
                over.push((call.to_string(), error.is_some()))
            }
            EventKind::Charged { spend } => charged += spend.usage.total().unwrap_or(0),
            _ => {}
        }
    }
    let calls: Vec<_> = started.iter().map(|call| without_incarnation(call)).collect();
    assert_eq!(calls, ["s/1#1", "s/1#2", "s/1#3", "s/1#4"]);
    assert_eq!(over.iter().map(|it| it.1).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(over.into_iter().map(|it| it.0).collect::<Vec<_>>(), started);
    assert_eq!(charged, 20);
    let heard: Vec<_> =
        model.seen().iter().map(|it| it.call.clone().unwrap().to_string()).collect();
    assert_eq!(heard, started, "the model receives the id");
}

/// A call's event has everything that there is to know of the call.
#[tokio::test]
async fn the_end_of_a_model_call_is_enough_by_itself() {
    let spent = Usage::tokens(3, 4);
    let model = Scripted::new([say("one").usage(spent), fail(LlmError::new(LlmErrorKind::Auth))]);
    let scripted = model.clone();
    let bench = only(move |define| {
        let model: Arc<dyn Llm> = Arc::new(scripted.clone());
        define
            .run(move |_log, cx| {
                let model = Arc::clone(&model);
                async move {
                    let talk = Transcript::from_iter([user("hi")]);
                    let tools = ToolSet::default();
                    cx.llm(&model).complete(&talk, &tools).await?;
                    cx.llm(&model).complete(&talk, &tools).await?;
                    Ok(line("never"))
                }
            })
            .end()
    });
    failed(bench.run().await);
    let events = bench.seen.events();
    let ended: Vec<_> =
        events.iter().filter(|it| matches!(it.kind, EventKind::CallEnded { .. })).collect();
    let [EventKind::CallEnded { replied: None, stop, error: None, error_kind: None, .. }, _] =
        [&ended[0].kind, &ended[1].kind]
    else {
        panic!("{ended:?}")
    };
    assert_eq!(*stop, Some(harness::llm::StopReason::End));
    let json: Vec<_> = ended.iter().map(|event| serde_json::json!(event)).collect();
    assert_eq!(json[0]["spent"]["usage"]["input"], 3);
    assert!(json[0]["took_ms"].is_u64() && json[0].get("cached").is_none());
    assert_eq!(json[1]["error_kind"], "auth");
    assert_eq!(json[1]["spent"]["usage"]["input"], serde_json::Value::Null);
    let EventKind::RunStarted {
        resumed: false,
        cause: Cause::Start,
        waited_ms: None,
        worker: false,
        trace: None,
    } = events[0].kind
    else {
        panic!("{}", events[0])
    };
}

#[tokio::test]
async fn the_stream_begins_at_the_beginning_and_ends_with_the_run() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                cx.probe.meet("inside").await;
                Ok(line("done"))
            })
            .end()
    });
    let mut run = bench.agent.run(Log::update(), ()).start();
    bench.probe.reached("inside").await;
    let mut first = run.events();
    let mut later = run.events();
    bench.probe.open("inside");
    ended((&mut run).await.unwrap());
    let mut lines = [Vec::new(), Vec::new()];
    for (stream, lines) in [&mut first, &mut later].into_iter().zip(&mut lines) {
        while let Some(event) = stream.next().await {
            let Streamed::Event(event) = event else { panic!("{event:?}") };
            lines.push(event.to_string());
        }
    }
    let all = ["run started", "Work#1 started", "Work#1 committed -> end", "run ended"];
    assert_eq!(lines, [&all[..], &all[2..]]);
    assert!(run.events().next().await.is_none(), "a run that is over has no more events");
}

#[tokio::test]
async fn a_slow_reader_learns_how_much_it_missed() {
    let bench = only(|define| {
        define
            .run(async |_, cx| {
                for n in 0..5_000 {
                    cx.emit(n);
                }
                Ok(line("done"))
            })
            .end()
    });
    let mut run = bench.agent.run(Log::update(), ()).start();
    let mut events = run.events();
    ended(run.await.unwrap());
    let (mut missed, mut read, mut last) = (0, 0, None);
    while let Some(event) = events.next().await {
        match event {
            Streamed::Missed(n) => missed += n,
            Streamed::Event(event) => {
                read += 1;
                last = Some(event.to_string());
            }
        }
    }
    assert!(missed > 0);
    assert_eq!(missed + read, 5_004);
    assert_eq!(last.as_deref(), Some("run ended"));
}
