//! Loops built at run time.
#![allow(missing_docs, clippy::panic, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use harness::graph::{Rule, Violation};
use harness::observe::Recorder;
use harness::prelude::*;
use harness::{BuildError, declare::Registry};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = add)]
    turns: u32,
    answer: Option<String>,
}

#[derive(Signal, Clone, Copy, Debug, PartialEq)]
enum Next {
    CallTools,
    Answer,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Approve;

async fn think(_: View<Chat>, _: Cx<()>) -> StepResult<Chat> {
    Ok(Chat::update().turns(1))
}

async fn fail(_: View<Chat>, _: Cx<()>) -> StepResult<Chat> {
    Err(StepError::fatal("torn"))
}

fn next(chat: &Chat) -> Next {
    if chat.turns < 3 { Next::CallTools } else { Next::Answer }
}

struct Say(&'static str);

#[async_trait]
impl Handler<(), Chat> for Say {
    async fn run(&self, _: View<Chat>, _: Cx<()>) -> StepResult<Chat> {
        Ok(Chat::update().answer(Some(self.0.to_owned())))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    text: String,
    #[serde(default)]
    times: usize,
}

#[async_trait]
impl Handler<(), Chat> for Repeat {
    async fn run(&self, _: View<Chat>, _: Cx<()>) -> StepResult<Chat> {
        Ok(Chat::update().answer(Some(self.text.repeat(self.times))))
    }
}

fn registry() -> Registry<(), Chat> {
    Registry::new()
        .run("think", think)
        .handler("say", Say("hi"))
        .make("repeat", |repeat: Repeat| repeat)
        .route("next", next)
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Think,
    Act,
    Approve,
    Say,
    Explain,
    Close,
}

async fn finished<S: Into<String>>(harness: Harness<(), Chat>, id: S) -> (Chat, Vec<String>) {
    let seen = Recorder::default();
    let agent = harness.observe(seen.clone()).agent(id, ());
    let outcome = agent.run(Chat::update(), ()).await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let answers = waiting.pending::<Approve>().unwrap().answer(true);
    let ended = agent.resume(&waiting, answers, ()).await.unwrap().ended().unwrap();
    // Each run and question has its own id.
    let lines = seen.lines().into_iter();
    let lines = lines.map(|line| line.split(" asked").next().unwrap_or_default().to_owned());
    let lines = lines.filter(|line| !line.contains("answer")).collect();
    (ended.state, lines)
}

#[tokio::test]
async fn a_typed_and_a_dynamic_loop_run_and_draw_the_same() {
    let typed = Harness::<(), Chat>::builder("chat")
        .start(Step::Think)
        .on_error(Step::Explain)
        .finally(Step::Close)
        .budget(Budget::steps(50))
        .steps(|define, step| match step {
            Step::Think => define.run(think).at_most(9, Step::Say).route(next, |next| match next {
                Next::CallTools => to(Step::Act),
                Next::Answer => to(Step::Approve),
            }),
            Step::Act => define.run(fail).then(Step::Say),
            Step::Approve => define
                .ask(|_, _| async move { Ok(Approve) })
                .answer(|_, _, _| async move { Ok(Chat::update()) })
                .then(Step::Say),
            Step::Say => define.handler(Say("bye")).end(),
            Step::Explain => define.run(think).then(Step::Think),
            Step::Close => define.run(think).end(),
        })
        .build()
        .unwrap();
    let dynamic = Harness::<(), Chat>::dynamic("chat")
        .start("Think")
        .on_error("Explain")
        .finally("Close")
        .budget(Budget::steps(50))
        .step("Think", |define| {
            let pairs = [("Answer", to("Approve")), ("CallTools", to("Act"))];
            define.run(think).at_most(9, "Say").route(next, pairs)
        })
        .step(String::from("Act"), |define| define.run(fail).then(String::from("Say")))
        .step("Approve", |define| {
            define
                .ask(|_, _| async move { Ok(Approve) })
                .answer(|_, _, _| async move { Ok(Chat::update()) })
                .then("Say")
        })
        .step("Say", |define| define.handler(Say("bye")).end())
        .step("Explain", |define| define.run(think).then("Think"))
        .step("Close", |define| define.run(think).end())
        .build()
        .unwrap();
    assert_eq!(typed.graph().to_mermaid(), dynamic.graph().to_mermaid());
    let (typed, dynamic) = (finished(typed, "a").await, finished(dynamic, "a").await);
    assert_eq!(typed.1, dynamic.1);
    assert!(typed.1.iter().any(|line| line.contains("Explain")), "{:?}", typed.1);
    assert_eq!((typed.0.turns, typed.0.answer), (dynamic.0.turns, dynamic.0.answer));
}

#[tokio::test]
async fn a_loop_of_registered_parts_runs() {
    let registry = registry();
    let pairs = vec![("CallTools".to_owned(), to("loud".to_owned())), ("Answer".to_owned(), end())];
    let harness = Harness::<(), Chat>::dynamic("named")
        .start("think")
        .step("think", |define| define.named(&registry, "think").then("choose"))
        .step("choose", |define| define.decide_named(&registry, "next", pairs))
        .step("loud", |define| {
            let parameters = serde_json::json!({"text": "ha", "times": 2});
            define.named_with(&registry, "repeat", &parameters).then("think")
        })
        .build()
        .unwrap();
    let ended = harness.agent("a", ()).run(Chat::update(), ()).await.unwrap().ended().unwrap();
    assert_eq!((ended.state.turns, ended.state.answer.as_deref()), (3, Some("haha")));
    assert_eq!(ended.by::<Next>(), Some(Next::Answer));
}

fn rules(error: &BuildError) -> Vec<Rule> {
    error.violations().iter().map(|violation| violation.rule).collect()
}

fn words(violation: &Violation) -> String {
    violation.message().to_owned()
}

#[test]
fn reports_every_violation_with_its_line_and_a_suggestion() {
    let registry = registry();
    let first = line!() + 1;
    let error = Harness::<(), Chat>::dynamic("wrong")
        .start("thnik")
        .on_error("nowhere")
        .step("think", |define| {
            define.named(&registry, "thinc").route(next, [("CallTool", to("act")), ("More", end())])
        })
        .step("act", |define| {
            let pairs = [("CallTools", to("think")), ("CallTools", to("atc")), ("Answer", end())];
            define.run(think).at_most(2, "gone").route(next, pairs)
        })
        .step("act", |define| define.run(think).on_error("lost").end())
        .step("by", |define| define.decide_named(&registry, "nxt", [("Answer", to("act"))]))
        .step("with", |define| {
            let parameters = serde_json::json!({"text": "x", "tmies": 2});
            define.named_with(&registry, "repeat", &parameters).then("by")
        })
        .step("plain", |define| {
            define.named_with(&registry, "think", &serde_json::json!({"a": 1})).then("with")
        })
        .build()
        .unwrap_err();
    let messages: Vec<String> = error.violations().iter().map(words).collect();
    let expected = [
        "step `act` is declared twice (rename one of them)",
        "step `think` runs `thinc`, unknown to the registry (did you mean `think`?)",
        "step `think` routes signal `CallTool`, unknown to `Next` (did you mean `CallTools`?)",
        "step `think` routes signal `More`, unknown to `Next` (it has `CallTools`, `Answer`)",
        "step `think` has no target for signal `CallTools` of `Next`",
        "step `think` has no target for signal `Answer` of `Next`",
        "step `act` routes signal `CallTools` twice (remove one of them)",
        "step `act` leads to `atc`, which is not a step (did you mean `act`?)",
        "step `act` leads to `gone`, which is not a step (declare it",
        "step `act` leads to `lost`, which is not a step (declare it",
        "step `by` routes by `nxt`, unknown to the registry (did you mean `next`?)",
        "step `with` passes invalid parameters to `repeat`: unknown field `tmies`",
        "step `plain` passes invalid parameters to `think`: it has no parameters",
        "the start leads to `thnik`, which is not a step (did you mean `think`?)",
        "`on_error` of the loop leads to `nowhere`, which is not a step",
        "step `by` cannot be reached from `think`",
        "step `with` cannot be reached from `think`",
        "step `plain` cannot be reached from `think`",
    ];
    assert_eq!(messages.len(), expected.len(), "{error}");
    for (message, expected) in messages.iter().zip(expected) {
        assert!(message.starts_with(expected), "{message}\n{expected}");
    }
    assert!(error.violations().iter().all(|violation| violation.declared.file == file!()));
    assert!(!messages.iter().any(|message| message.contains(file!())), "{messages:#?}");
    let other = error.violations()[0].first.unwrap();
    assert_eq!((other.file, other.line), (file!(), first + 6));
    assert!(error.violations()[1..].iter().all(|violation| violation.first.is_none()));
    let start = error.violations().iter().find(|violation| violation.steps.is_empty()).unwrap();
    assert_eq!((start.declared.line, start.near.as_deref()), (first + 1, Some("think")));
    assert!(format!("{error:#}").contains("flowchart"));
}

#[test]
fn an_empty_loop_and_one_without_a_start() {
    let empty = Harness::<(), Chat>::dynamic("empty").build().unwrap_err();
    assert_eq!(rules(&empty), [Rule::MissingStart, Rule::Empty]);
    assert!(!format!("{empty:#}").is_empty());
    let started = Harness::<(), Chat>::dynamic("empty").start("a").build().unwrap_err();
    assert_eq!(rules(&started), [Rule::UnknownStep, Rule::Empty]);
    let unstarted = Harness::<(), Chat>::dynamic("unstarted")
        .step("a", |define| define.run(think).then("a"))
        .build()
        .unwrap_err();
    assert_eq!(rules(&unstarted), [Rule::MissingStart, Rule::EndlessCycle]);
    assert_eq!(unstarted.graph().start(), "");
}

#[test]
fn dynamic_loops_follow_the_rules_of_typed_loops() {
    let error = Harness::<(), Chat>::dynamic("cycles")
        .start("a")
        .finally("off")
        .step("a", |define| define.run(think).then("b"))
        .step("b", |define| define.run(think).on_error("b").then("a"))
        .step("off", |define| define.off("not now"))
        .build()
        .unwrap_err();
    assert_eq!(rules(&error), [Rule::NoExit, Rule::ErrorCycle, Rule::Off]);
}

#[test]
fn reports_every_cycle_of_a_loop_without_an_exit() {
    let error = Harness::<(), Chat>::dynamic("held")
        .start("a")
        .step("a", |define| {
            define.run(think).route(next, [("CallTools", to("b")), ("Answer", to("c"))])
        })
        .step("b", |define| define.run(think).then("b"))
        .step("c", |define| define.run(think).then("d"))
        .step("d", |define| define.run(think).then("c"))
        .build()
        .unwrap_err();
    assert_eq!(rules(&error), [Rule::NoExit, Rule::EndlessCycle, Rule::EndlessCycle]);
    let steps: Vec<&[String]> = error.violations().iter().map(|found| &*found.steps).collect();
    assert_eq!(steps, [vec!["a"], vec!["b"], vec!["c", "d"]]);
}

#[test]
fn reports_every_violation_of_a_repeated_step() {
    let repeated = |declare: fn(harness::Define<(), Chat, harness::declare::StepName>) -> _| {
        Harness::<(), Chat>::dynamic("twice")
            .start("a")
            .step("a", |define| define.run(think).then("b"))
            .step("b", |define| define.run(think).end())
            .step("a", declare)
            .step("c", |define| define.off("not now"))
            .build()
            .unwrap_err()
    };
    let off = repeated(|define| define.run(think).then("c"));
    assert_eq!(rules(&off), [Rule::DuplicateStep, Rule::Off]);
    let unknown = repeated(|define| define.run(think).at_most(2, "nowhere").then("b"));
    assert_eq!(rules(&unknown), [Rule::DuplicateStep, Rule::UnknownStep]);
    let endless = repeated(|define| define.run(think).then("a"));
    assert_eq!(rules(&endless), [Rule::DuplicateStep, Rule::EndlessCycle]);
    let failing = repeated(|define| define.run(think).on_error("a").end());
    assert_eq!(rules(&failing), [Rule::DuplicateStep, Rule::ErrorCycle]);
    // The graph has each name once.
    assert_eq!(endless.graph().steps().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(format!("{endless:#}").contains("flowchart"));
}

#[test]
fn reasons_are_not_shortened() {
    let (why, registry) = ("no key ".repeat(30), registry());
    let parameters = serde_json::json!({"text": "x", "tmies".repeat(30): 2});
    let error = Harness::<(), Chat>::dynamic("off")
        .start("a")
        .step("a", |define| define.off(why.clone()))
        .step("b", |define| define.named_with(&registry, "repeat", &parameters).then("a"))
        .build()
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains(&why), "{message}");
    assert!(message.contains("expected `text` or `times`"), "{message}");
}

#[test]
fn steps_without_a_name_are_violations() {
    let error = Harness::<(), Chat>::dynamic("unset")
        .start("a")
        .step("a", |define| define.run(think).then(""))
        .step("", |define| define.run(think).end())
        .step("", |define| define.run(think).end())
        .step(" \t", |define| define.off("not now"))
        .build()
        .unwrap_err();
    assert_eq!(rules(&error), [Rule::Empty; 3]);
    let messages: Vec<String> = error.violations().iter().map(words).collect();
    assert_eq!(messages[0], "step 2 of the loop has no name (give it one)");
    assert!(
        messages[1].starts_with("step 3 ") && messages[2].starts_with("step 4 "),
        "{messages:?}"
    );
    assert!(error.graph().to_mermaid().contains("s1[\"(no name)\"]"), "{error:#}");
}

#[test]
fn hostile_names_are_bounded_and_escaped() {
    let huge = "x\"]\n\u{1b}[2J\u{202e}".repeat(100_000);
    let slashes = "/".repeat(1 << 20);
    let deep = "a/".repeat(1 << 19);
    let sound = Harness::<(), Chat>::dynamic(huge.clone())
        .start(huge.as_str())
        .step(huge.as_str(), |define| define.run(think).then(slashes.as_str()))
        .step(slashes.as_str(), |define| define.run(think).then(deep.as_str()))
        .step(deep.as_str(), |define| define.run(think).then("\0"))
        .step("\0", |define| define.run(think).end())
        .build()
        .unwrap();
    let drawn = sound.graph().to_mermaid();
    assert!(drawn.len() < 4_000, "{}", drawn.len());
    assert!(drawn.lines().all(|line| !line.contains(|c: char| c.is_control())));
    let error = Harness::<(), Chat>::dynamic(huge.clone())
        .start(format!("{huge}!"))
        .step(huge.as_str(), |define| define.run(think).then(huge.as_str()))
        .step(huge.as_str(), |define| {
            define.run(think).route(next, [(huge.as_str(), to(slashes.as_str()))])
        })
        .build()
        .unwrap_err();
    let text = format!("{error:#}");
    assert!(text.len() < 8_000, "{}", text.len());
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
}

#[test]
fn ten_thousand_steps_build_fast() {
    let timed = |broken: bool| {
        let started = Instant::now();
        let mut builder = Harness::<(), Chat>::dynamic("long").start("step 0");
        for step in 0..10_000 {
            let next = match broken {
                true => format!("stop {}", step + 1),
                false => format!("step {}", step + 1),
            };
            builder = builder.step(format!("step {step}"), |define| define.run(think).then(next));
        }
        let built = builder.step("step 10000", |define| define.run(think).end()).build();
        (built, started.elapsed())
    };
    let (sound, took) = timed(false);
    assert_eq!(sound.unwrap().graph().steps().len(), 10_001);
    // A generous limit, for slow machines and builds without optimisation.
    assert!(took < Duration::from_secs(5), "{took:?}");
    let (broken, took) = timed(true);
    assert!(broken.unwrap_err().violations().len() >= 10_000);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn gates_expire_and_steps_have_aliases() {
    let declare = |target: &str, alias: &str| {
        let (target, alias) = (target.to_owned(), alias.to_owned());
        Harness::<(), Chat>::dynamic("asks")
            .start("ask")
            .step("ask", |define| {
                define
                    .ask(|_, _| async move { Ok(Approve) })
                    .answer(|_, _, _| async move { Ok(Chat::update()) })
                    .expires(Duration::from_secs(60), target)
                    .alias(alias)
                    .end()
            })
            .step("late", |define| define.run(think).end())
            .build()
    };
    let drawn = declare("late", "old").unwrap().graph().to_mermaid();
    assert!(drawn.contains("s0 -- \"expires after 60s\" --> s1"), "{drawn}");
    let error = declare("lat", "late").unwrap_err();
    let rules: Vec<Rule> = error.violations().iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::UnknownStep, Rule::Alias]);
}
