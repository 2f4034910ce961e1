//! Durable timers: they outlive the process, and are started once.

pub use std::sync::{Arc, Mutex};
pub use std::time::Duration;

use harness::observe::{self, EventKind};
pub use harness::prelude::*;
use harness::session::Change;
pub use harness::store::MemoryStore;
pub use harness::{Agent, Outcome, Sessions, UtcMillis};
use harness::{OnBusy, Seq, inspect, testing};

use super::rig::{all, count, log};

pub const HOUR: Duration = Duration::from_secs(3600);

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
pub struct What;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Only {
    Step,
}

pub fn line(text: impl Into<String>) -> StepResult<Doc> {
    Ok(Doc::update().lines([text.into()]))
}

pub fn only<F, Fut>(body: F) -> Agent<(), Doc>
where
    F: Fn(View<Doc>, Cx<()>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = StepResult<Doc>> + Send + 'static,
{
    let harness = Harness::<(), Doc>::builder("timers")
        .start(Only::Step)
        .steps(|define, Only::Step| define.run(body.clone()).end())
        .build()
        .unwrap();
    harness.agent("a", ())
}

pub async fn begin(agent: &Agent<(), Doc>) -> Outcome<Doc> {
    agent.run(Doc::update(), ()).session("s").await.unwrap()
}

pub async fn again(agent: &Agent<(), Doc>) -> Outcome<Doc> {
    agent.resume("s", Answers::none(), ()).await.unwrap()
}

pub fn until(outcome: &Outcome<Doc>) -> UtcMillis {
    let Outcome::Waiting(waiting) = outcome else { panic!("{outcome:?}") };
    waiting.until.unwrap()
}

pub fn lines(outcome: Outcome<Doc>) -> Vec<String> {
    outcome.ended().unwrap().state.lines
}

pub async fn nap(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    cx.sleep("nap", HOUR).await?;
    line(format!("attempt {}", cx.attempt()))
}

#[tokio::test(start_paused = true)]
async fn a_stored_session_waits_and_any_process_resumes_it_when_the_timer_is_due() {
    let store = MemoryStore::new();
    let agent = only(nap).store(store.clone());
    let began = UtcMillis::now();
    let outcome = begin(&agent).await;
    assert_eq!(until(&outcome), began.after(HOUR));
    assert!(outcome.ended().unwrap_err().to_string().contains("waits until"));

    let sessions = Sessions::new(store.clone());
    let status = sessions.status("s").await.unwrap();
    assert_eq!(status.phase, inspect::Phase::Waiting);
    let [timer] = &status.timers[..] else { panic!("{:?}", status.timers) };
    assert_eq!(
        (timer.key.as_deref(), timer.item, timer.due),
        (Some("nap"), None, began.after(HOUR))
    );
    let row = sessions.list(&inspect::Filter::sessions(), None, 9).await.unwrap().rows.remove(0);
    assert_eq!((row.phase, row.due), (inspect::Phase::Waiting, Some(began.after(HOUR))));

    // Before that nothing runs, and nothing is written.
    tokio::time::advance(HOUR - Duration::from_millis(1)).await;
    let before = all(&store, "s").await;
    assert_eq!(until(&again(&agent).await), began.after(HOUR));
    let refused = agent.run(Doc::update(), ()).session("s").await.unwrap_err();
    assert!(refused.to_string().contains("waits for a timer"), "{refused}");
    assert_eq!(all(&store, "s").await, before);

    tokio::time::advance(Duration::from_millis(1)).await;
    let elsewhere = only(nap).store(store.clone());
    assert_eq!(lines(again(&elsewhere).await), ["attempt 2"]);
    assert_eq!(count(&store, "s", "timer").await, 1);
    assert!(sessions.status("s").await.unwrap().timers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_store_waits_in_its_run() {
    let began = UtcMillis::now();
    let agent = only(nap);
    assert_eq!(lines(begin(&agent).await), ["attempt 2"]);
    assert!(UtcMillis::now() >= began.after(HOUR));
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_stays_in_the_process() {
    let store = MemoryStore::new();
    let agent = only(async |_, cx: Cx<()>| {
        cx.sleep_until("soon", UtcMillis::now().after(Duration::from_millis(900))).await?;
        cx.sleep_until("past", UtcMillis(7)).await?;
        cx.sleep("at once", Duration::ZERO).await?;
        line("awake")
    });
    assert_eq!(lines(begin(&agent.store(store.clone())).await), ["awake"]);
    let timers = log(&store, "s").await.into_iter().filter(|it| it.get("timer").is_some());
    let keys: Vec<String> = timers.map(|it| it["timer"]["timers"][0]["k"].to_string()).collect();
    assert_eq!(keys, ["\"soon\""]);
}

#[tokio::test(start_paused = true)]
async fn neither_a_budget_nor_a_time_out_counts_a_wait() {
    let harness = Harness::<(), Doc>::builder("timers")
        .start(Only::Step)
        .budget(Budget::default().wall(Duration::from_secs(9)))
        .steps(|define, Only::Step| {
            define.run(nap).timeout(Duration::from_secs(5)).after(HOUR).end()
        })
        .build()
        .unwrap();
    for agent in [harness.agent("a", ()), harness.agent("a", ()).store(MemoryStore::new())] {
        let began = UtcMillis::now();
        let tested = testing::run(&agent, Doc::update()).await.unwrap();
        assert_eq!(tested.ended().unwrap().state.lines, ["attempt 2"]);
        assert!(UtcMillis::now() >= began.after(2 * HOUR));
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_runs_after_its_time_at_each_entry_and_retries_at_once() {
    async fn flaky(doc: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
        if cx.attempt() == 1 {
            return Err(StepError::retryable("not yet"));
        }
        line(format!("{} attempt {}", doc.lines.len(), cx.attempt()))
    }
    #[derive(Signal, Clone, Copy, Debug)]
    enum Next {
        Again,
        Over,
    }
    let harness = Harness::<(), Doc>::builder("timers")
        .start(Only::Step)
        .steps(|define, Only::Step| {
            let route = |doc: &Doc| if doc.lines.len() < 2 { Next::Again } else { Next::Over };
            let step = define.run(flaky).retry(Retry::every(Duration::ZERO)).after(HOUR);
            step.route(route, |next| match next {
                Next::Again => to(Only::Step),
                Next::Over => end(),
            })
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let agent = harness.agent("a", ()).store(store.clone());
    let began = UtcMillis::now();
    let tested = testing::run(&agent, Doc::update()).with(|run| run.session("s")).await.unwrap();
    let said: Vec<String> = tested.lines().into_iter().collect();
    assert_eq!(tested.state().unwrap().lines, ["0 attempt 2", "1 attempt 2"]);
    let passed = UtcMillis::now().0 - began.0;
    assert!((7_200_000..7_300_000).contains(&passed), "{passed}");
    assert_eq!(count(&store, "s", "timer").await, 2);
    let found = |text: &str| said.iter().filter(|line| line.contains(text)).count();
    assert_eq!((found("waits until"), found("is due")), (4, 2), "{said:#?}");
}

#[tokio::test(start_paused = true)]
async fn timers_of_one_step_run_at_once() {
    let agent = only(async |_, cx: Cx<()>| {
        let both = tokio::join!(cx.sleep("one", HOUR), cx.sleep("two", 2 * HOUR));
        both.0.and(both.1)?;
        line("both")
    });
    let store = MemoryStore::new();
    let agent = agent.store(store.clone());
    let began = UtcMillis::now();
    assert_eq!(until(&begin(&agent).await), began.after(HOUR));
    assert_eq!(Sessions::new(store).status("s").await.unwrap().timers.len(), 2);
    tokio::time::advance(HOUR).await;
    assert_eq!(until(&again(&agent).await), began.after(2 * HOUR));
    tokio::time::advance(HOUR).await;
    assert_eq!(lines(again(&agent).await), ["both"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_used_twice_is_fatal() {
    let agent = only(async |_, cx: Cx<()>| {
        cx.sleep("nap", Duration::ZERO).await?;
        cx.once("nap", async || Ok(())).await?;
        cx.sleep("nap", HOUR).await?;
        line("never")
    });
    for agent in [agent.clone(), agent.store(MemoryStore::new())] {
        let Outcome::Failed(failed) = begin(&agent).await else { panic!("it continued") };
        assert!(failed.failure.message.contains("`nap` is used twice"), "{}", failed.failure);
        assert!(!failed.failure.retryable);
    }
}

/// Waits for an answer, for an hour.
pub async fn patient(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    tokio::select! {
        // The question is not asked again once it is late.
        biased;
        late = cx.sleep("late", HOUR) => {
            late?;
            line(format!("late in attempt {}", cx.attempt()))
        }
        said = cx.ask("what", What) => line(format!("{} in attempt {}", said?, cx.attempt())),
    }
}

#[tokio::test(start_paused = true)]
async fn of_an_answer_and_a_timer_the_first_enters_the_step_again() {
    for stored in [true, false] {
        for answered in [true, false] {
            let agent = only(patient);
            let agent = if stored { agent.store(MemoryStore::new()) } else { agent };
            let began = UtcMillis::now();
            let outcome = begin(&agent).await;
            let Outcome::Interrupted(waiting) = &outcome else { panic!("{outcome:?}") };
            assert_eq!((waiting.until, waiting.questions.len()), (Some(began.after(HOUR)), 1));
            let ended = if answered {
                let said = waiting.pending::<What>().unwrap().answer("yes".into());
                agent.resume(&outcome, said, ()).await.unwrap()
            } else {
                let outcome = agent.resume(&outcome, Answers::none(), ()).await.unwrap();
                assert!(matches!(outcome, Outcome::Interrupted(_)), "{outcome:?}");
                tokio::time::advance(HOUR).await;
                agent.resume(&outcome, Answers::none(), ()).await.unwrap()
            };
            let expected = if answered { "yes in attempt 2" } else { "late in attempt 2" };
            assert_eq!(lines(ended), [expected], "stored {stored}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_stays_as_it_was_asked_when_a_timer_enters_the_step_again() {
    let agent = only(async |_, cx: Cx<()>| {
        let (said, slept) =
            tokio::join!(cx.ask("what", What).expires(3 * HOUR), cx.sleep("late", HOUR));
        slept?;
        line(said?)
    });
    for agent in [agent.clone(), agent.store(MemoryStore::new())] {
        let first = begin(&agent).await;
        let Outcome::Interrupted(waiting) = &first else { panic!("{first:?}") };
        let (asked, began) = (waiting.questions.clone(), UtcMillis::now());
        assert_eq!(waiting.until, Some(began.after(HOUR)));
        tokio::time::advance(HOUR).await;
        let second = agent.resume(&first, Answers::none(), ()).await.unwrap();
        let Outcome::Interrupted(waiting) = &second else { panic!("{second:?}") };
        assert_eq!(waiting.questions, asked);
        // Nothing but the expiry is to come.
        assert_eq!(waiting.until, Some(began.after(3 * HOUR)));
        let said = asked[0].as_question::<What>().unwrap().answer("done".into());
        assert_eq!(lines(agent.resume(&second, said, ()).await.unwrap()), ["done"]);
    }
}

#[tokio::test(start_paused = true)]
async fn effects_beside_a_timer_go_to_their_end_and_what_they_lead_to_counts() {
    let agent = only(async |_, cx: Cx<()>| {
        let slow = async || {
            tokio::time::sleep(HOUR / 4).await;
            Ok("slow".to_owned())
        };
        tokio::select! {
            late = cx.sleep("late", HOUR) => {
                late?;
                line("late")
            }
            done = cx.once("slow", slow) => line(format!("{} in attempt {}", done?, cx.attempt())),
        }
    });
    for agent in [agent.clone(), agent.store(MemoryStore::new())] {
        let began = UtcMillis::now();
        assert_eq!(lines(begin(&agent).await), ["slow in attempt 1"]);
        assert!(UtcMillis::now() < began.after(HOUR / 2));
    }
    // A task whose effect is left alone holds up no timer.
    let agent = only(async |_, cx: Cx<()>| {
        let (own, effect) = (cx.clone(), async || Ok(tokio::time::sleep(HOUR / 4).await));
        cx.spawn(async move { own.once("left", effect).await });
        cx.sleep("late", HOUR).await?;
        line(format!("late in attempt {}", cx.attempt()))
    });
    for agent in [agent.clone(), agent.store(MemoryStore::new())] {
        let tested = testing::run(&agent, Doc::update()).await.unwrap();
        assert_eq!(tested.ended().unwrap().state.lines, ["late in attempt 2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_and_a_cancel_end_a_wait_and_the_timer_runs_on() {
    for cancel in [false, true] {
        let agent = only(nap);
        let mut run = agent.run(Doc::update(), ()).start();
        let mut events = run.events();
        while let Some(observe::Streamed::Event(event)) = events.next().await {
            if matches!(event.kind, EventKind::TimerStarted { .. }) {
                break;
            }
        }
        if cancel {
            run.cancel()
        } else {
            run.stop()
        }
        let outcome = run.await.unwrap();
        assert!(matches!(&outcome, Outcome::Stopped(it) if it.cancelled == cancel), "{outcome:?}");
        tokio::time::advance(HOUR / 2).await;
        let resumed = UtcMillis::now();
        assert_eq!(
            lines(agent.resume(&outcome, Answers::none(), ()).await.unwrap()),
            ["attempt 2"]
        );
        let waited = UtcMillis::now().0 - resumed.0;
        assert!((1_700_000..1_900_000).contains(&waited), "{waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_waits_for_the_timer_too_and_the_past_keeps_it() {
    let store = MemoryStore::new();
    let agent = only(nap).store(store.clone());
    let due = until(&begin(&agent).await);
    let head = Sessions::new(store.clone()).status("s").await.unwrap().head;
    agent.fork("s", head, "fork").await.unwrap();
    let status = Sessions::new(store.clone()).status("fork").await.unwrap();
    assert_eq!((status.phase, status.timers[0].due), (inspect::Phase::Waiting, due));
    let outcome = agent.resume("fork", Answers::none(), ()).await.unwrap();
    assert_eq!(until(&outcome), due);
    tokio::time::advance(HOUR).await;
    for session in ["fork", "s"] {
        let outcome = agent.resume(session, Answers::none(), ()).await.unwrap();
        assert_eq!(lines(outcome).len(), 1, "{session}");
    }
    let was = Sessions::new(store).state_at("s", head).await;
    assert!(was.is_ok(), "{was:?}");
}

#[tokio::test(start_paused = true)]
async fn an_input_waits_until_the_turn_that_sleeps_is_over() {
    let store = MemoryStore::new();
    let agent = only(nap).store(store.clone());
    begin(&agent).await;
    let queued = agent.run(Doc::update(), ()).session("s").on_busy(OnBusy::Queue).await;
    // Nothing holds the session: the input is refused, as by any other request.
    assert!(queued.is_err(), "{queued:?}");
    tokio::time::advance(HOUR).await;
    assert_eq!(lines(again(&agent).await).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_steps_may_wait_for_a_timer() {
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Work,
        Last,
    }
    let harness = Harness::<(), Doc>::builder("timers")
        .start(Step::Work)
        .finally(Step::Last)
        .steps(|define, step| match step {
            Step::Work => define.run(async |_, _| line("work")).end(),
            Step::Last => define.run(nap).end(),
        })
        .build()
        .unwrap();
    for agent in [harness.agent("a", ()), harness.agent("a", ()).store(MemoryStore::new())] {
        let tested = testing::run(&agent, Doc::update()).await.unwrap();
        assert_eq!(tested.ended().unwrap().state.lines, ["work", "attempt 2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn observers_see_timers_start_and_fire() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let agent = only(nap).observe(observe::from_fn(move |event| {
        if let EventKind::TimerStarted { .. } | EventKind::TimerFired { .. } = event.kind {
            kept.lock().unwrap().push(serde_json::to_value(event).unwrap());
        }
    }));
    let due = UtcMillis::now().after(HOUR);
    begin(&agent).await;
    let seen = seen.lock().unwrap();
    let [started, fired] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&started["event"], &started["key"]), (&"timer_started".into(), &"nap".into()));
    assert_eq!(started["due"], due.0);
    assert_eq!((&fired["event"], &fired["key"]), (&"timer_fired".into(), &"nap".into()));
}

#[tokio::test(start_paused = true)]
async fn the_log_says_which_attempt_waits_for_what() {
    let store = MemoryStore::new();
    let agent = only(patient).store(store.clone());
    begin(&agent).await;
    let page = Sessions::new(store).history("s", Seq(1), 99).await.unwrap();
    let waits: Vec<_> = page
        .entries
        .iter()
        .filter_map(|(_, entry)| match &entry.change {
            Change::Timer(wait) => Some((wait.n, wait.item, wait.timers.len())),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [(1, None, 1)]);
}
