//! Questions of sessions in a store, and their answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Interrupted, UtcMillis};
use serde_json::{Value, json};

use super::rig::{all, log};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send {
    to: String,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Delete {
    to: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    First,
    Gate,
    Inline,
    Late,
}

/// How often each half and step ran: first, ask, answer, inline, effect.
type Counts = Arc<[AtomicU32; 5]>;

fn add(counts: &Counts, which: usize) {
    counts[which].fetch_add(1, Ordering::SeqCst);
}

fn counted(counts: &Counts) -> [u32; 5] {
    std::array::from_fn(|which| counts[which].load(Ordering::SeqCst))
}

fn harness(counts: &Counts) -> Harness<(), Doc> {
    Harness::<(), Doc>::builder("asks")
        .start(Step::First)
        .steps(|define, step| {
            let counts = Arc::clone(counts);
            match step {
                Step::First => define
                    .run(move |_, _| {
                        add(&counts, 0);
                        async move { Ok(Doc::update().lines(["first".to_owned()])) }
                    })
                    .then(Step::Gate),
                Step::Gate => {
                    let ask = Arc::clone(&counts);
                    define
                        .ask(move |_, _| {
                            add(&ask, 1);
                            async move { Ok(Send { to: "all".into() }) }
                        })
                        .answer(move |_, _, said| {
                            add(&counts, 2);
                            async move {
                                let text =
                                    format!("{} {:?} {}", said.answer, said.by, said.at.0 > 0);
                                Ok(Doc::update().lines([text]))
                            }
                        })
                        .then(Step::Inline)
                }
                Step::Inline => define
                    .run(move |_, cx: Cx<()>| {
                        add(&counts, 3);
                        let counts = Arc::clone(&counts);
                        async move {
                            let done = async move || Ok(counts[4].fetch_add(1, Ordering::SeqCst));
                            let n: u32 = cx.once("act", done).await?;
                            let (a, b, c) = tokio::join!(
                                cx.ask("a", Send { to: "a".into() }),
                                cx.ask("b", Send { to: "b".into() }),
                                cx.ask("c", Delete { to: "c".into() }),
                            );
                            let d = cx.ask("d", Send { to: "d".into() }).await?;
                            Ok(Doc::update().lines([format!("{n} {} {} {} {d}", a?, b?, c?)]))
                        }
                    })
                    .then(Step::Late),
                Step::Late => define
                    .run(|_, _| async move { Ok(Doc::update().lines(["late".to_owned()])) })
                    .end(),
            }
        })
        .build()
        .unwrap()
}

fn agent(store: &MemoryStore, counts: &Counts) -> Agent<(), Doc> {
    harness(counts).agent("a", ()).store(store.clone())
}

fn waiting(outcome: Outcome<Doc>) -> Interrupted<Doc> {
    match outcome {
        Outcome::Interrupted(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

fn answer(waiting: &Interrupted<Doc>, key: &str, value: impl Into<Value>) -> Answers {
    let mut asked = waiting.questions.iter();
    let found = asked.find(|asked| asked.key.as_deref().unwrap_or("gate") == key).unwrap();
    Answers::json(found.id.clone(), value.into())
}

#[tokio::test]
async fn nothing_that_was_committed_runs_again() {
    let (store, counts) = (MemoryStore::new(), Counts::default());
    // Each from an agent of its own.
    let agent = || agent(&store, &counts);
    let gate = waiting(agent().run(Doc::update(), ()).session("s").await.unwrap());
    assert_eq!(counted(&counts), [1, 1, 0, 0, 0]);
    let before = UtcMillis::now();
    let yes = answer(&gate, "gate", true).by("sam");
    let three = waiting(agent().resume("s", yes, ()).await.unwrap());
    assert_eq!(counted(&counts), [1, 1, 1, 1, 1]);
    assert_eq!(three.state.lines, ["first", "true Some(\"sam\") true"]);
    assert_eq!(three.questions.len(), 3);

    // In any order, and not all at once: nothing runs until all are there.
    let left = waiting(agent().resume("s", answer(&three, "b", false), ()).await.unwrap());
    assert_eq!(left.questions.len(), 2);
    let again = waiting(agent().resume("s", answer(&three, "b", false), ()).await.unwrap());
    assert_eq!(again.questions.len(), 2);
    let rest = answer(&three, "c", true).and(answer(&three, "a", true).by("kim"));
    let last = waiting(agent().resume("s", rest, ()).await.unwrap());
    assert_eq!(counted(&counts), [1, 1, 1, 2, 1]);
    // The step has come as far as its next question.
    assert_eq!(last.questions[0].key.as_deref(), Some("d"));
    let ended = agent().resume("s", answer(&last, "d", true), ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines[2..], ["0 true false true true", "late"]);
    assert_eq!(counted(&counts), [1, 1, 1, 3, 1]);

    // The log has the author, the time and the value.
    let log = log(&store, "s").await;
    let resolved: Vec<&Value> = log.iter().filter_map(|entry| entry.get("resolve")).collect();
    assert_eq!(resolved.len(), 5);
    assert_eq!((&resolved[0]["by"], &resolved[0]["value"]), (&json!("sam"), &json!(true)));
    assert!(resolved[0]["at"].as_u64().unwrap() >= before.0);
    assert!(resolved.iter().all(|one| one["digest"].as_str().is_some_and(|it| it.len() > 16)));
    assert_eq!(resolved.iter().filter(|one| one["by"] == "kim").count(), 1);
}

#[tokio::test]
async fn what_may_not_be_answered_changes_nothing() {
    let (store, counts) = (MemoryStore::new(), Counts::default());
    let agent = || agent(&store, &counts);
    let gate = waiting(agent().run(Doc::update(), ()).session("s").await.unwrap());
    let yes = || answer(&gate, "gate", true);
    let three = waiting(agent().resume("s", yes(), ()).await.unwrap());
    let left = waiting(agent().resume("s", answer(&three, "a", true), ()).await.unwrap());
    let before = all(&store, "s").await;
    let c = three.questions.iter().find(|asked| asked.key.as_deref() == Some("c")).unwrap();
    let b = three.questions.iter().find(|asked| asked.key.as_deref() == Some("b")).unwrap();
    // Each is given together with one that is sound: all or none.
    let sound = || answer(&three, "c", true);
    let refuse = async |answers: Answers| {
        let both = agent().resume("s", sound().and(answers), ()).await.unwrap_err();
        assert_eq!(all(&store, "s").await, before, "{both}");
        both
    };
    assert!(
        refuse(Answers::json("no-such-question", true.into()))
            .await
            .answer_error()
            .is_some_and(|it| it.is_unknown_interrupt())
    );
    let other = refuse(answer(&three, "a", false)).await;
    assert!(
        other.answer_error().is_some_and(|it| it.is_conflict())
            && other.answer_error().and_then(|it| it.recorded_answer()) == Some(&json!(true))
    );
    let other = refuse(answer(&gate, "gate", false)).await;
    assert!(
        other.answer_error().is_some_and(|it| it.is_conflict())
            && other.answer_error().and_then(|it| it.recorded_answer()) == Some(&json!(true))
    );
    assert!(
        refuse(sound().and(answer(&three, "c", false)))
            .await
            .answer_error()
            .is_some_and(|it| it.is_conflict())
    );
    let ill = refuse(Answers::json(b.id.clone(), "yes".into())).await;
    assert!(ill.answer_error().is_some_and(|it| it.is_wrong_answer()), "{ill}");
    // An answer to a `Send` is none to a `Delete`, though both take a `bool`.
    let mut asked = c.clone();
    asked.name = "send".into();
    let moved = asked.as_question::<Send>().unwrap().answer(true);
    let err = agent().resume("s", moved, ()).await.unwrap_err();
    assert!(err.answer_error().is_some_and(|it| it.is_wrong_answer()), "{err}");
    // The same again is fine, also of a question that was asked before: nothing new.
    let same = agent().resume("s", answer(&three, "a", true).by("eve"), ()).await.unwrap();
    assert_eq!(waiting(same).questions.len(), 2);
    let same = agent().resume("s", yes(), ()).await.unwrap();
    assert_eq!(waiting(same).questions.len(), 2);
    assert_eq!(all(&store, "s").await, before);
    assert_eq!((left.questions.len(), c.name.as_str()), (2, "delete"));
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Step,
}

/// A step that asks under one key, and then under another.
fn asks<Q: Question<Answer = bool> + std::marker::Send + 'static>(
    question: fn() -> Q,
) -> Harness<(), Doc> {
    Harness::<(), Doc>::builder("moves")
        .start(Only::Step)
        .steps(|define, Only::Step| {
            define
                .run(move |_, cx: Cx<()>| async move {
                    let sure = cx.ask("sure", question()).await?;
                    let really = cx.ask("really", Send { to: "really".into() }).await?;
                    Ok(Doc::update().lines([format!("{sure} {really}")]))
                })
                .end()
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn an_answer_never_moves_over() {
    let send = || Send { to: "x".into() };
    // The step asks something else since the answer: other words, or another question.
    let others: [fn() -> Harness<(), Doc>; 2] =
        [|| asks(|| Send { to: "y".into() }), || asks(|| Delete { to: "x".into() })];
    for other in others {
        let store = MemoryStore::new();
        let old = asks(send).agent("a", ()).store(store.clone());
        let sure = waiting(old.run(Doc::update(), ()).session("s").await.unwrap());
        let really = waiting(old.resume("s", answer(&sure, "sure", true), ()).await.unwrap());
        let new = other().agent("a", ()).store(store.clone());
        let refused = new.resume("s", answer(&really, "really", true), ()).await.unwrap();
        let Outcome::Failed(failed) = refused else { panic!("{refused:?}") };
        assert_eq!(failed.failure.kind, harness::FailureKind::QuestionChanged);
        assert!(!failed.failure.retryable);
        let said = &failed.failure.message;
        assert!(said.starts_with("the question `sure` is not the one that was answered"), "{said}");
        // Under the words that were answered, the answers hold.
        let ended = old.resume("s", Answers::none(), ()).await.unwrap();
        assert_eq!(ended.ended().unwrap().state.lines, ["true true"]);
    }
}

fn expiring(after: Duration, target: bool) -> Harness<(), Doc> {
    Harness::<(), Doc>::builder("expires")
        .start(Step::Gate)
        .steps(|define, step| match step {
            Step::Gate => {
                let gate = define.ask(|_, _| async move { Ok(Send { to: "all".into() }) }).answer(
                    |_, _, said| async move { Ok(Doc::update().lines([said.answer.to_string()])) },
                );
                match target {
                    true => gate.expires(after, Step::Late).then(Step::Inline),
                    false => gate.expires_or_fails(after).at_most(9, Step::Late).then(Step::Inline),
                }
            }
            Step::First | Step::Inline => define
                .run(move |_, cx: Cx<()>| async move {
                    let said = cx.ask("k", Send { to: "k".into() }).expires(after).await;
                    let said = said.map_err(|error| error.is_expired());
                    Ok(Doc::update().lines([format!("{said:?}")]))
                })
                .then(Step::Late),
            Step::Late => define
                .run(|_, _| async move { Ok(Doc::update().lines(["late".to_owned()])) })
                .route(
                    |doc: &Doc| Again::OF[usize::from(doc.lines.len() < 2)],
                    |again| match again {
                        Again::No => end(),
                        Again::Yes => to(Step::First),
                    },
                ),
        })
        .build()
        .unwrap()
}

#[derive(Signal, Clone, Copy, Debug)]
enum Again {
    No,
    Yes,
}

impl Again {
    const OF: [Self; 2] = [Self::No, Self::Yes];
}

#[tokio::test]
async fn an_expired_question_is_answered_no_more() {
    let store = MemoryStore::new();
    let agent = expiring(Duration::ZERO, true).agent("a", ()).store(store.clone());
    let gate = waiting(agent.run(Doc::update(), ()).session("s").await.unwrap());
    let before = log(&store, "s").await;
    let err = agent.resume("s", answer(&gate, "gate", true), ()).await.unwrap_err();
    assert!(err.answer_error().is_some_and(|it| it.is_expired()), "{err}");
    assert_eq!(log(&store, "s").await, before);
    // The gate takes its expiry edge; the inline question of the next step expires too.
    let inline = waiting(agent.resume("s", Answers::none(), ()).await.unwrap());
    assert_eq!(inline.state.lines, ["late"]);
    let next = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    assert_eq!(next.state.lines, ["late", "Err(true)", "late"]);
    // Without a target, the gate fails.
    let agent = expiring(Duration::ZERO, false).agent("a", ()).store(store.clone());
    waiting(agent.run(Doc::update(), ()).session("t").await.unwrap());
    let outcome = agent.resume("t", Answers::none(), ()).await.unwrap();
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.kind, harness::FailureKind::Expired);
    // In time.
    let agent = expiring(Duration::from_secs(60), true).agent("a", ()).store(store.clone());
    let gate = waiting(agent.run(Doc::update(), ()).session("u").await.unwrap());
    let inline = waiting(agent.resume("u", answer(&gate, "gate", true), ()).await.unwrap());
    assert_eq!(inline.state.lines, ["true"]);
}
