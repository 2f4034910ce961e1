//! Agents that steps call: how they are stopped, given up, tried again, bounded.

use std::sync::Arc;
use std::time::Duration;

use harness::graph::Limit;
use harness::inspect::Filter;
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Budget, Retry, Seq, Sessions};

use super::children::*;
use super::rig::log;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    First,
    Second,
}

/// A child that reports when it is at work, and works until it is stopped.
fn endless() -> (Agent<(), Doc>, Arc<tokio::sync::Semaphore>) {
    let at_work = Arc::new(tokio::sync::Semaphore::new(0));
    let report = Arc::clone(&at_work);
    let work = move |doc: View<Doc>, cx: Cx<()>| {
        let report = Arc::clone(&report);
        async move {
            if doc.lines.len() > 1 {
                return line("again");
            }
            report.add_permits(1);
            cx.cancelled().await;
            line("stopped")
        }
    };
    let harness = Harness::<(), Doc>::builder("child")
        .start(Step::First)
        .steps(move |define, step| match step {
            Step::First => define.run(work.clone()).then(Step::Second),
            Step::Second => define.run(async |_, _| line("ended")).end(),
        })
        .build()
        .unwrap();
    (harness.agent("child", ()), at_work)
}

#[tokio::test]
async fn a_stop_and_a_cancel_go_through_to_the_child_which_resumes() {
    for cancel in [false, true] {
        let (memory, (child, at_work)) = (MemoryStore::new(), endless());
        let parent = calls(&child).agent("p", ()).store(memory.clone());
        let run = parent.run(Doc::update(), ()).session("s").start();
        at_work.acquire().await.unwrap().forget();
        if cancel {
            run.cancel()
        } else {
            run.stop()
        }
        let Outcome::Stopped(stopped) = run.await.unwrap() else { panic!("cancel: {cancel}") };
        assert_eq!(stopped.cancelled, cancel);
        let id = started(&memory, "s").await[0].clone();
        let status = Sessions::new(memory.clone()).status(&id).await.unwrap();
        assert_eq!(status.phase, harness::inspect::Phase::Stopped);
        // What it has committed stays, and the parent continues it.
        let committed = log(&memory, &id).await.iter().any(|entry| entry.get("commit").is_some());
        assert_eq!(committed, !cancel);
        let run = parent.resume("s", Answers::none(), ()).start();
        if cancel {
            at_work.acquire().await.unwrap().forget();
            run.stop();
            assert!(matches!(run.await.unwrap(), Outcome::Stopped(_)));
            assert!(parent.resume("s", Answers::none(), ()).await.unwrap().ended().is_ok());
        } else {
            let out = run.await.unwrap().ended().unwrap();
            assert_eq!(out.state.lines, ["input,stopped,ended", "last"]);
        }
        assert_eq!(started(&memory, "s").await, [id]);
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_cancels_its_child_and_releases_both() {
    let (memory, (child, at_work)) = (MemoryStore::new(), endless());
    let parent = calls(&child).agent("p", ()).store(memory.clone());
    let run = parent.run(Doc::update(), ()).session("s").start();
    at_work.acquire().await.unwrap().forget();
    drop(run);
    super::rig::settled(&memory, "s").await;
    super::rig::settled(&memory, &started(&memory, "s").await[0]).await;
}

/// A step that calls an agent, with a time-out of the step, or of the call alone.
fn impatient(child: &Agent<(), Doc>, of_step: bool) -> Agent<(), Doc> {
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Only {
        Call,
    }
    const LIMIT: Duration = Duration::from_secs(5);
    let child = child.clone();
    let body = move |_, cx: Cx<()>| {
        let child = child.clone();
        async move {
            let call = cx.call(&child, Doc::update(), ());
            let ended = match of_step {
                true => Ok(call.await),
                false => tokio::time::timeout(LIMIT, call).await,
            };
            line(ended??.state.lines.join(","))
        }
    };
    Harness::<(), Doc>::builder("p")
        .start(Only::Call)
        .steps(move |define, step| match step {
            Only::Call => {
                let define = define.run(body.clone()).retry(Retry::every(LIMIT).times(1));
                if of_step { define.timeout(LIMIT).end() } else { define.end() }
            }
        })
        .build()
        .unwrap()
        .agent("p", ())
}

#[tokio::test(start_paused = true)]
async fn a_timeout_cancels_the_child_and_the_next_attempt_continues_it() {
    for of_step in [false, true] {
        let (memory, (child, at_work)) = (MemoryStore::new(), endless());
        let parent = impatient(&child, of_step).store(memory.clone());
        let outcome = parent.run(Doc::update(), ()).session("s").await.unwrap();
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
        let [id] = &started(&memory, "s").await[..] else { panic!("{of_step}") };
        // One run of the child for each attempt, and none is left.
        assert_eq!(at_work.available_permits(), 2);
        assert!(!super::rig::is_held(&memory, id).await);
        let settled = super::rig::count(&memory, id, "settle").await;
        assert_eq!((settled, super::rig::count(&memory, id, "open").await), (2, 1));
    }
}

#[tokio::test]
async fn the_budget_of_the_parent_stops_its_child_and_a_larger_one_continues_it() {
    let memory = MemoryStore::new();
    let spends = |_: View<Doc>, _: Cx<()>| async {
        spend(10);
        line("spent")
    };
    let child = Harness::<(), Doc>::builder("child")
        .start(Step::First)
        .steps(move |define, step| match step {
            Step::First => define.run(spends).then(Step::Second),
            Step::Second => define.run(spends).end(),
        })
        .build()
        .unwrap();
    let parent = calls(&child.agent("child", ())).agent("p", ()).store(memory.clone());
    let run = parent.run(Doc::update(), ()).session("s").budget(Budget::default().tokens(10));
    let Outcome::Exhausted(over) = run.await.unwrap() else { panic!() };
    assert_eq!((over.limit, tokens(&over.spent)), (Limit::Tokens, 10));
    let more = parent.resume("s", Answers::none(), ()).budget(Budget::default().tokens(100));
    let out = ended(more).await;
    assert_eq!((out.state.lines[0].as_str(), tokens(&out.spent)), ("input,spent,spent", 21));
    assert_eq!(started(&memory, "s").await.len(), 1);
}

/// A child that fails as often as this says, and spends 10 tokens each time.
fn failing(times: usize, fatal: bool) -> (Agent<(), Doc>, Effects) {
    let tries = Effects::default();
    let seen = Arc::clone(&tries);
    let fails = only(move |_, cx: Cx<()>| {
        let tries = Arc::clone(&tries);
        async move {
            spend(10);
            tries.lock().unwrap().push(cx.session_id().to_string());
            match tries.lock().unwrap().len() > times {
                true => line("well"),
                false if fatal => Err(StepError::fatal("broken")),
                false => Err(StepError::retryable("busy")),
            }
        }
    });
    (fails.agent("child", ()), seen)
}

#[tokio::test(start_paused = true)]
async fn a_retry_starts_another_child_unless_the_failure_is_fatal() {
    for fatal in [false, true] {
        let (memory, (child, tries)) = (MemoryStore::new(), failing(1, fatal));
        let body = move |_, cx: Cx<()>| {
            let child = child.clone();
            async move {
                let called = cx.call(&child, Doc::update(), ()).await;
                if let Err(error) = &called {
                    assert_eq!(error.agent().as_str(), "child");
                    assert!(error.failure().is_some() && error.session().is_some());
                }
                line(called?.state.lines.join(","))
            }
        };
        #[derive(StepId, Clone, Debug, PartialEq, Eq)]
        enum Only {
            Call,
        }
        let parent = Harness::<(), Doc>::builder("p")
            .start(Only::Call)
            .steps(move |define, step| match step {
                Only::Call => define
                    .run(body.clone())
                    .retry(Retry::every(Duration::from_secs(1)).times(2))
                    .end(),
            })
            .build()
            .unwrap();
        let parent = parent.agent("p", ()).store(memory.clone());
        let outcome = parent.run(Doc::update(), ()).session("s").await.unwrap();
        let out = match (fatal, outcome) {
            (false, outcome) => outcome.ended().unwrap(),
            (true, Outcome::Failed(failed)) => {
                assert!(failed.failure.message.contains("broken"), "{}", failed.failure);
                assert_eq!(tries.lock().unwrap().len(), 1);
                // A person who resumes it wants another try.
                ended(parent.resume("s", Answers::none(), ())).await
            }
            (true, other) => panic!("{other:?}"),
        };
        assert_eq!((out.state.lines, tokens(&out.spent)), (vec!["well".to_owned()], 20));
        let tries = tries.lock().unwrap().clone();
        assert_ne!(tries[0], tries[1]);
        assert_eq!(started(&memory, "s").await, tries);
    }
}

#[tokio::test]
async fn items_call_children_of_their_own_and_the_others_go_to_their_end() {
    let memory = MemoryStore::new();
    let child = only(async |doc: View<Doc>, cx: Cx<()>| {
        if doc.lines == ["1"] {
            cx.ask("sign", Sign).await?;
        }
        line("done")
    });
    let child = child.agent("child", ());
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Only {
        Fan,
    }
    let again = child.clone();
    let parent = Harness::<(), Doc>::builder("p")
        .start(Only::Fan)
        .steps(move |define, step| match step {
            Only::Fan => {
                let child = again.clone();
                define
                    .each(async |_, _| Ok(vec![0_u32, 1, 2]))
                    .concurrency(2)
                    .run(move |item: u32, _, cx: Cx<()>| {
                        let child = child.clone();
                        async move {
                            let input = Doc::update().lines([item.to_string()]);
                            Ok(cx.call(&child, input, ()).await?.state.lines.join(" "))
                        }
                    })
                    .fold(|_, lines| Ok(Doc::update().lines(lines)))
                    .end()
            }
        })
        .build()
        .unwrap();
    let parent = parent.agent("p", ()).store(memory.clone());
    let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
    assert_eq!((rests.children.len(), started(&memory, "s").await.len()), (1, 3));
    let inbox = Sessions::new(memory.clone());
    let inbox = inbox.list_interrupts(&Filter::default(), None, 9).await.unwrap();
    let answers = Answers::json(inbox.rows[0].interrupt.id.clone(), true.into());
    ended(child.store(memory.clone()).resume(&rests.children[0].session, answers, ())).await;
    let out = ended(parent.resume("s", Answers::none(), ())).await;
    assert_eq!(out.state.lines, ["0 done", "1 done", "2 done"]);
    assert_eq!(started(&memory, "s").await.len(), 3);
}

#[tokio::test]
async fn calls_that_cannot_be_made_are_typed_errors() {
    let effects = Effects::default();
    let callee = child(&effects);
    let store = MemoryStore::new();
    let twice = callee.clone();
    let body = move |_, cx: Cx<()>| {
        let child = twice.clone();
        async move {
            let first = cx.call(&child, Doc::update(), ());
            let second = cx.call(&child, Doc::update(), ());
            let (first, second) = tokio::join!(first, second);
            assert!(first.is_ok() && second.unwrap_err().is_key_reused());
            let ended = cx.call(&child, Doc::update(), ()).key("another").await?;
            line(ended.state.lines.join(","))
        }
    };
    let out = ended(only(body).agent("p", ()).store(store.clone()).run(Doc::update(), ())).await;
    assert_eq!(out.state.lines, ["worked,ended"]);

    // Another input than before.
    let changes = move |_, cx: Cx<()>| async move {
        let input = Doc::update().lines([cx.attempt().to_string()]);
        match cx.call(&asking(), input, ()).await {
            Err(error) => line(error.is_input_changed().to_string()),
            Ok(_) => line("called"),
        }
    };
    let parent = only(changes).agent("p", ()).store(store.clone());
    waiting(parent.run(Doc::update(), ()).session("changes").await.unwrap());
    let out = ended(parent.resume("changes", Answers::none(), ())).await;
    assert_eq!(out.state.lines, ["true"]);

    // A question, and no store to wait in.
    let asks = |_, cx: Cx<()>| async move {
        line(cx.call(&asking(), Doc::update(), ()).await.unwrap_err().is_no_store().to_string())
    };
    let out = ended(only(asks).agent("p", ()).run(Doc::update(), ())).await;
    assert_eq!(out.state.lines, ["true"]);
}

/// A step that calls its own agent.
fn itself(
    _: View<Doc>,
    cx: Cx<()>,
) -> std::pin::Pin<Box<dyn Future<Output = StepResult<Doc>> + Send>> {
    Box::pin(async move {
        match cx.call(&only(itself).agent("self", ()), Doc::update(), ()).await {
            Ok(ended) => line(format!("{}.", ended.state.lines[0])),
            Err(error) => line(error.is_too_deep().to_string()),
        }
    })
}

#[tokio::test]
async fn agents_that_call_themselves_end() {
    for store in [None, Some(MemoryStore::new())] {
        let agent = only(itself).agent("self", ());
        let agent = match store {
            Some(store) => agent.store(store),
            None => agent,
        };
        let out = ended(agent.run(Doc::update(), ())).await;
        assert_eq!(out.state.lines, [format!("true{}", ".".repeat(16))]);
    }
}

#[tokio::test]
async fn a_fork_starts_children_of_its_own() {
    let memory = MemoryStore::new();
    let parent = calls(&asking()).agent("p", ()).store(memory.clone());
    let rests = waiting(parent.run(Doc::update(), ()).session("s").await.unwrap());
    let begin = parent.history("s", Seq(0), 99).await.unwrap().moments[0].seq;
    parent.fork("s", begin, "fork").await.unwrap();
    let forked = waiting(parent.resume("fork", Answers::none(), ()).await.unwrap());
    assert_ne!(rests.children[0].session, forked.children[0].session);
    assert_eq!(tokens(&forked.spent), 10);
}
