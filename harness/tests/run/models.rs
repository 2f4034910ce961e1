//! Model calls of a step: tokens, spend, deadlines, recorded replies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::llm::scripted::{call, fail, say};
use harness::llm::{
    CallCx, Caps, Delta, Llm, LlmError, LlmErrorKind, ModelId, Reply, Request, Scripted, Spend,
    StopReason, TimeoutPhase, Usage,
};
use harness::observe::{self, EventKind, Recorder, Streamed};
use harness::prelude::*;
use harness::{FailureKind, Outcome};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Log {
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    model: Arc<dyn Llm>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Think,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send {
    text: String,
}

fn talk() -> Transcript {
    Transcript::from_iter([user("hi")])
}

fn slots(model: impl Llm) -> <Ctx as Context>::Runtime {
    Ctx::runtime().model(Arc::new(model)).build()
}

/// A model whose replies come from a cache.
struct FromCache(Scripted);

#[harness::async_trait]
impl Llm for FromCache {
    fn id(&self) -> ModelId {
        self.0.id()
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        Ok(self.0.complete(request, cx).await?.as_cached())
    }
}

/// The event by itself says what a call has cost, or that it cost nothing.
#[tokio::test]
async fn the_end_of_a_call_has_its_cost_and_whether_it_was_cached() {
    let line = || say("yes").usage(Usage::tokens(3, 4)).cost_micros(250);
    let ends = async |model: Arc<dyn Llm>| {
        let seen = Recorder::default();
        let agent = thinker().observe(seen.clone());
        let slots = Ctx::runtime().model(model).build();
        agent.run(Log::update(), slots).await.unwrap().ended().unwrap();
        let ended = |it: &&observe::Event| matches!(it.kind, EventKind::CallEnded { .. });
        serde_json::json!(seen.events().iter().find(ended).unwrap())
    };
    let called = ends(Arc::new(Scripted::new([line()]))).await;
    assert_eq!(called["spent"]["cost_micros"], 250, "{called}");
    assert_eq!(called.get("cached"), None, "{called}");
    let cached = ends(Arc::new(FromCache(Scripted::new([line()])))).await;
    assert_eq!(cached["cached"], true, "{cached}");
    assert_eq!((&cached["model"], &cached["step"]), (&called["model"], &"Think".into()));
}

async fn think(_: View<Log>, cx: Cx<Ctx>) -> StepResult<Log> {
    let reply = cx.llm(&cx.model).complete(&talk(), &ToolSet::default()).await?;
    Ok(Log::update().lines([reply.text().unwrap_or_default()]))
}

fn thinker() -> Agent<Ctx, Log> {
    Harness::<Ctx, Log>::builder("thinker")
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define.run(think).end(),
        })
        .build()
        .unwrap()
        .agent("t", ())
}

fn tokens(seen: &Recorder) -> String {
    let events = seen.events();
    let text = events.iter().filter_map(|event| match &event.kind {
        EventKind::Token { delta: Delta::Text(text), .. } => Some(text.as_str()),
        _ => None,
    });
    text.collect::<Vec<_>>().join("|")
}

#[tokio::test]
async fn tokens_go_to_observers_that_want_them_and_take_no_numbers() {
    let (plain, live) = (Recorder::default(), Recorder::default().with_tokens());
    let agent = thinker().observe(plain.clone()).observe(live.clone());
    let model = Scripted::new(["one two three"]);
    agent.run(Log::update(), slots(model.clone())).await.unwrap().ended().unwrap();
    assert_eq!(tokens(&live), "one |two |three");
    assert_eq!(tokens(&plain), "");
    assert!(model.seen()[0].streamed);
    let numbers: Vec<u64> = plain.events().iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let shown = live.events();
    let token = shown.iter().find(|event| matches!(event.kind, EventKind::Token { .. })).unwrap();
    let json = serde_json::to_value(token).unwrap();
    assert_eq!((&json["event"], &json["delta"]["text"]), (&"token".into(), &"one ".into()));
    assert_eq!((&json["step"], &json["attempt"]), (&"Think".into(), &1.into()));
}

#[tokio::test]
async fn a_call_streams_only_if_tokens_are_observed() {
    let model = Scripted::new(["one two"]);
    let agent = thinker().observe(Recorder::default());
    agent.run(Log::update(), slots(model.clone())).await.unwrap().ended().unwrap();
    assert!(!model.seen()[0].streamed);
}

#[tokio::test]
async fn a_reply_in_one_piece_is_still_observed() {
    let live = Recorder::default().with_tokens();
    let agent = thinker().observe(live.clone());
    agent.run(Log::update(), slots(Fixed::default())).await.unwrap().ended().unwrap();
    assert_eq!(tokens(&live), "fixed");
}

#[tokio::test]
async fn the_stream_of_a_run_has_tokens_if_asked() {
    for wanted in [false, true] {
        let request = thinker().run(Log::update(), slots(Scripted::new(["one two"])));
        let mut run = match wanted {
            true => request.with_tokens().start(),
            false => request.start(),
        };
        let mut events = run.events();
        let mut count = 0;
        while let Some(Streamed::Event(event)) = events.next().await {
            count += u32::from(matches!(event.kind, EventKind::Token { .. }));
        }
        assert_eq!(count > 0, wanted);
    }
}

#[tokio::test]
async fn an_observer_that_blocks_misses_tokens_and_nothing_else() {
    const WORDS: usize = 10_000;
    let (open, opened) = std::sync::mpsc::channel::<()>();
    let opened = Mutex::new(opened);
    let seen = Recorder::default().with_tokens();
    let kept = seen.clone();
    let slow = observe::from_fn(move |event| {
        if matches!(event.kind, EventKind::RunStarted { .. }) {
            opened.lock().unwrap().recv().unwrap();
        }
        observe::Observer::on_event(&kept, event);
    })
    .with_tokens();
    let agent = thinker().observe(slow);
    let words = "word ".repeat(WORDS);
    let opener = observe::from_fn(move |event| {
        if matches!(event.kind, EventKind::Committed { .. }) {
            open.send(()).unwrap();
        }
    });
    let run = agent.run(Log::update(), slots(Scripted::new([words]))).observe(opener);
    run.await.unwrap().ended().unwrap();
    let events = seen.events();
    let tokens = events.iter().filter(|it| matches!(it.kind, EventKind::Token { .. })).count();
    assert!(tokens > 0 && tokens < WORDS, "{tokens}");
    let others = events.iter().filter(|it| !matches!(it.kind, EventKind::Token { .. }));
    let numbers: Vec<u64> = others.map(|event| event.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(matches!(events.last().unwrap().kind, EventKind::Settled { .. }));
}

/// Replies in one piece, and charges what it is given.
#[derive(Default)]
struct Fixed {
    charges: Vec<Usage>,
    usage: Usage,
}

#[async_trait]
impl Llm for Fixed {
    fn id(&self) -> ModelId {
        ModelId::new("test", "fixed")
    }

    async fn complete(&self, _: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        for usage in &self.charges {
            cx.charge(&Spend::from(*usage));
        }
        Ok(Reply::new("fixed", StopReason::End, self.id()).with_usage(self.usage))
    }
}

#[tokio::test]
async fn the_usage_of_a_reply_is_charged_exactly_once() {
    let (seven, failed) = (Usage::tokens(3, 4), Usage::tokens(1, 1));
    let sum: Usage = [seven, failed].into_iter().sum();
    let cases = [
        // The model charged nothing, its reply, an exchange that failed before it, or both.
        (vec![], seven, 7),
        (vec![seven], seven, 7),
        (vec![failed], seven, 9),
        (vec![failed, seven], seven, 9),
        (vec![seven, failed], sum, 9),
        (vec![], Usage::default(), 0),
    ];
    for (charges, usage, total) in cases {
        let model = Fixed { charges, usage };
        let ended = thinker().run(Log::update(), slots(model)).await.unwrap().ended().unwrap();
        assert_eq!(ended.spent.usage.total().unwrap_or(0), total);
    }
}

/// Waits until its deadline, as an adapter does.
struct Patient(Arc<Mutex<Vec<Option<Duration>>>>);

#[async_trait]
impl Llm for Patient {
    fn id(&self) -> ModelId {
        ModelId::new("test", "patient")
    }

    async fn complete(&self, _: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        self.0.lock().unwrap().push(cx.remaining());
        match cx.remaining() {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
        Err(LlmError::new(LlmErrorKind::Timeout { phase: TimeoutPhase::Total }))
    }
}

async fn waiting(
    timeout: Option<u64>,
    wall: Option<u64>,
    within: Option<u64>,
) -> (Outcome<Log>, Option<Duration>) {
    let seconds = Duration::from_secs;
    let harness =
        Harness::<Ctx, Log>::builder("waits").start(Step::Think).steps(move |define, step| {
            match step {
                Step::Think => {
                    let step = define.run(move |_, cx: Cx<Ctx>| async move {
                        let mut calling = cx.llm(&cx.model);
                        if let Some(within) = within {
                            calling = calling.within(seconds(within));
                        }
                        calling.complete(&talk(), &ToolSet::default()).await?;
                        Ok(Log::update())
                    });
                    match timeout {
                        Some(timeout) => step.timeout(seconds(timeout)).end(),
                        None => step.end(),
                    }
                }
            }
        });
    let harness = match wall {
        Some(wall) => harness.budget(Budget::steps(9).wall(seconds(wall))),
        None => harness,
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let agent = harness.build().unwrap().agent("w", ());
    let outcome = agent.run(Log::update(), slots(Patient(seen.clone()))).await.unwrap();
    let left = seen.lock().unwrap()[0];
    (outcome, left)
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_the_earliest_of_timeout_wall_and_limit() {
    let seconds = |n| Some(Duration::from_secs(n));
    let (outcome, left) = waiting(Some(5), Some(9), Some(7)).await;
    assert_eq!(left, seconds(5));
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.kind, FailureKind::Timeout, "it is the step's");
    assert!(failed.failure.to_string().contains("its timeout of 5s"), "{}", failed.failure);

    let (outcome, left) = waiting(Some(9), Some(5), Some(7)).await;
    assert_eq!(left, seconds(5));
    assert!(matches!(outcome, Outcome::Exhausted(_)), "{outcome:?}");

    let (outcome, left) = waiting(Some(9), Some(7), Some(5)).await;
    assert_eq!(left, seconds(5));
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.kind, FailureKind::Error, "{}", failed.failure);
}

/// A model that never looks at its deadline.
struct Deaf;

#[async_trait]
impl Llm for Deaf {
    fn id(&self) -> ModelId {
        ModelId::new("test", "deaf")
    }

    async fn complete(&self, _: Request<'_>, _: &CallCx) -> Result<Reply, LlmError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_call_holds_for_any_model() {
    let harness = Harness::<Ctx, Log>::builder("waits")
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define
                .run(async |_, cx: Cx<Ctx>| {
                    let model = cx.llm(&cx.model).within(Duration::from_secs(2));
                    let error = model.complete(&talk(), &ToolSet::default()).await.unwrap_err();
                    Ok(Log::update().lines([error.to_string()]))
                })
                .end(),
        })
        .build()
        .unwrap();
    let ended =
        harness.agent("w", ()).run(Log::update(), slots(Deaf)).await.unwrap().ended().unwrap();
    assert_eq!(
        ended.state.lines,
        ["model `test/deaf` did not finish its reply in time: the call took longer than its \
             limit of 2s (try again or allow more time)"]
    );
}

async fn draft(_: View<Log>, cx: Cx<Ctx>) -> StepResult<Log> {
    let drafts = cx.llm(&cx.model).recorded("draft");
    let text = drafts.complete(&talk(), &ToolSet::default()).await?.text().unwrap_or_default();
    let sent = cx.ask("send", Send { text: text.clone() }).await?;
    Ok(Log::update().lines([format!("{text} {sent}")]))
}

#[tokio::test]
async fn a_recorded_reply_is_not_drafted_again_after_the_answer() {
    let harness = Harness::<Ctx, Log>::builder("drafts")
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define.run(draft).end(),
        })
        .build()
        .unwrap();
    let model = Scripted::new([say("first").usage(Usage::tokens(1, 2)), say("second")]);
    let agent = harness.agent("d", ());
    let waiting = agent.run(Log::update(), slots(model.clone())).await.unwrap();
    let Outcome::Interrupted(waiting) = waiting else { panic!("{waiting:?}") };
    let answers = waiting.pending::<Send>().unwrap().answer(true);
    let seen = Recorder::default();
    let resumed = agent.resume(&waiting, answers, slots(model.clone())).observe(seen.clone());
    let ended = resumed.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines, ["first true"]);
    assert_eq!(model.seen().len(), 1);
    assert_eq!(ended.spent.usage.total(), Some(3));
    // Observers can distinguish it from a call that spends.
    let calls: Vec<_> = seen.events().iter().map(|event| serde_json::json!(event)).collect();
    let calls: Vec<_> =
        calls.iter().filter(|it| it["event"].to_string().contains("call")).collect();
    let [ended] = calls[..] else { panic!("{calls:?}") };
    assert_eq!(
        (&ended["event"], &ended["recorded"]),
        (&serde_json::json!("call_ended"), &true.into())
    );
    assert_eq!(ended["spent"], serde_json::json!(harness::llm::Spend::default()));
}

#[tokio::test]
async fn a_recorded_value_is_read_as_it_was_asked_for() {
    let harness = Harness::<Ctx, Log>::builder("drafts")
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define
                .run(async |_, cx: Cx<Ctx>| {
                    let mood: Mood = cx.llm(&cx.model).recorded("m").extract(&talk()).await?;
                    let sent = cx.ask("send", Send { text: mood.name.clone() }).await?;
                    Ok(Log::update().lines([format!("{} {sent}", mood.name)]))
                })
                .end(),
        })
        .build()
        .unwrap();
    // Its protocol cannot express the schema, and it calls the tool in its place.
    let refused = fail(LlmError::new(LlmErrorKind::Unsupported));
    let caps = Caps::default().structured_output(true).tools(true).tool_choice(true);
    let replies = [refused, call("answer", serde_json::json!({"name": "calm"}))];
    let model = Scripted::new(replies).with_caps(caps);
    let agent = harness.agent("d", ());
    let waiting = agent.run(Log::update(), slots(model.clone())).await.unwrap();
    let Outcome::Interrupted(waiting) = waiting else { panic!("{waiting:?}") };
    let answers = waiting.pending::<Send>().unwrap().answer(true);
    let resumed = agent.resume(&waiting, answers, slots(model.clone())).await.unwrap();
    assert_eq!(resumed.ended().unwrap().state.lines, ["calm true"]);
    assert_eq!(model.seen().len(), 2);
}

#[tokio::test]
async fn a_call_that_fails_is_not_recorded_and_a_key_is_used_once() {
    let harness = Harness::<Ctx, Log>::builder("drafts")
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define
                .run(async |_, cx: Cx<Ctx>| {
                    let ask = || cx.llm(&cx.model).recorded("draft");
                    let one = ask().complete(&talk(), &ToolSet::default()).await?;
                    let two = ask().complete(&talk(), &ToolSet::default()).await;
                    let why = two.unwrap_err().to_string();
                    Ok(Log::update().lines([one.text().unwrap_or_default(), why]))
                })
                .retry(Retry::every(Duration::ZERO))
                .end(),
        })
        .build()
        .unwrap();
    let overloaded = fail(LlmError::new(LlmErrorKind::Overloaded));
    let model = Scripted::new([overloaded, say("good")]);
    let run = harness.agent("d", ()).run(Log::update(), slots(model));
    let ended = run.await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines[0], "good");
    assert!(ended.state.lines[1].contains("is used twice in one attempt"), "{:?}", ended.state);
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Mood {
    name: String,
}

#[tokio::test]
async fn a_step_extracts_a_typed_value() {
    let harness = Harness::<Ctx, Log>::builder("moods")
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define
                .run(async |_, cx: Cx<Ctx>| {
                    // A limit beyond the end of time is none.
                    let model = cx.llm(&cx.model).within(Duration::MAX);
                    let mood: Mood = model.extract(&talk()).await?;
                    let again: Mood = cx.llm(&cx.model).recorded("m").extract(&talk()).await?;
                    Ok(Log::update().lines([mood.name, again.name]))
                })
                .timeout(Duration::MAX)
                .end(),
        })
        .build()
        .unwrap();
    let model = Scripted::from_fn(|_| say(r#"{"name": "calm"}"#));
    let run = harness.agent("m", ()).run(Log::update(), slots(model));
    assert_eq!(run.await.unwrap().ended().unwrap().state.lines, ["calm", "calm"]);
}
