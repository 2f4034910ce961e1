//! Sessions written by another version of their loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness::compat::{Compatibility, Difference};
use harness::prelude::*;
use harness::session::{Adopted, Change, StepKind};
use harness::store::MemoryStore;
use harness::{Seq, Sessions};

use super::rig::{all, count};

mod v1 {
    use super::*;

    #[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Doc {
        #[state(reduce = append)]
        pub lines: Vec<String>,
        pub title: String,
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub enum Step {
        Write,
        Ask,
        Close,
    }

    #[derive(Question, Serialize, Deserialize)]
    #[question(answer = bool, name = "sure")]
    pub struct Sure;

    pub fn harness() -> Harness<(), Doc> {
        Harness::<(), Doc>::builder("versions")
            .start(Step::Write)
            .steps(|define, step| match step {
                Step::Write => define
                    .run(
                        |_, _| async move { Ok(Doc::update().lines(["v1".to_owned()]).title("t")) },
                    )
                    .then(Step::Ask),
                Step::Ask => define
                    .ask(|_, _| async move { Ok(Sure) })
                    .answer(|_, _, said| async move {
                        Ok(Doc::update().lines([said.answer.to_string()]))
                    })
                    .then(Step::Close),
                Step::Close => define
                    .run(|_, _| async move { Ok(Doc::update().lines(["closed".to_owned()])) })
                    .end(),
            })
            .build()
            .unwrap()
    }
}

/// A session that waits at its gate, with the id of its question.
async fn left() -> (MemoryStore, String) {
    let store = MemoryStore::new();
    let agent = v1::harness().agent("a", ()).store(store.clone());
    let outcome = agent.run(v1::Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    (store, waiting.questions[0].id.to_string())
}

/// How often any step of a newer version ran.
type Ran = Arc<AtomicU32>;

/// A newer version: its state, its steps, its question.
macro_rules! version {
    ($name:ident, $(#[$state:meta])* { $($fields:tt)* }, $(#[$alias:meta])* $gate:ident, $answer:ty) => {
        mod $name {
            use super::*;

            #[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            $(#[$state])*
            pub struct Doc {
                #[state(reduce = append)]
                pub lines: Vec<String>,
                $($fields)*
            }

            #[derive(StepId, Clone, Debug, PartialEq, Eq)]
            pub enum Step {
                Write,
                $(#[$alias])*
                $gate,
                Close,
            }

            #[derive(Question, Serialize, Deserialize)]
            #[question(answer = $answer, name = "sure")]
            pub struct Sure;

            pub fn harness(ran: &Ran) -> Harness<(), Doc> {
                let step = |text: &'static str| {
                    let ran = Arc::clone(ran);
                    move |_: View<Doc>, _: Cx<()>| {
                        ran.fetch_add(1, Ordering::SeqCst);
                        async move { Ok(Doc::update().lines([text.to_owned()])) }
                    }
                };
                Harness::<(), Doc>::builder("versions")
                    .start(Step::Write)
                    .steps(|define, at| match at {
                        Step::Write => define.run(step("write")).then(Step::$gate),
                        Step::$gate => {
                            let ran = Arc::clone(ran);
                            define
                                .ask(|_, _| async move { Ok(Sure) })
                                .answer(move |_, _, said| {
                                    ran.fetch_add(1, Ordering::SeqCst);
                                    async move { Ok(Doc::update().lines([format!("{:?}", said.answer)])) }
                                })
                                .then(Step::Close)
                        }
                        Step::Close => define.run(step("new")).end(),
                    })
                    .build()
                    .unwrap()
            }

            pub fn agent(store: &MemoryStore, ran: &Ran) -> Agent<(), Doc> {
                harness(ran).agent("a", ()).store(store.clone())
            }
        }
    };
}

version!(same, { pub title: String, }, Ask, bool);
version!(renamed, { pub title: String, }, Confirm, bool);
version!(aliased, { pub title: String, }, #[step(alias = "Ask")] Confirm, bool);
version!(added, { pub title: String, #[serde(default)] pub note: Option<String>, }, Ask, bool);
version!(removed, {}, Ask, bool);
version!(retyped, { pub title: u32, }, Ask, bool);
version!(other_answer, { pub title: String, }, Ask, String);
version!(
    migrated,
    #[state(version = 2, migrate = super::to_two)] { pub heading: String, },
    Ask,
    bool
);
version!(unknown, #[state(version = 7, migrate = super::to_seven)] { pub title: String, }, Ask, bool);

fn to_two(old: v1::Doc) -> Result<migrated::Doc, std::convert::Infallible> {
    Ok(migrated::Doc { lines: old.lines, heading: old.title })
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[state(version = 6)]
struct Six {
    title: String,
}

fn to_seven(old: Six) -> Result<unknown::Doc, std::convert::Infallible> {
    Ok(unknown::Doc { lines: Vec::new(), title: old.title })
}

/// Resumes the session that the first version wrote.
macro_rules! resume {
    ($version:ident, $compatibility:expr) => {{
        let ((store, id), ran) = (left().await, Ran::default());
        let before = all(&store, "s").await;
        let agent = $version::agent(&store, &ran).compatibility($compatibility);
        let yes = Answers::json(&*id, true.into());
        let outcome = agent.resume("s", yes, ()).await;
        if outcome.is_err() {
            // Refused: nothing has run, and nothing has changed, not even by the answer.
            assert_eq!(ran.load(Ordering::SeqCst), 0);
            assert_eq!(all(&store, "s").await, before);
            // The version that wrote it can resume it.
            let old = v1::harness().agent("a", ()).store(store.clone());
            let ended = old.resume("s", Answers::json(&*id, true.into()), ()).await.unwrap();
            assert_eq!(ended.ended().unwrap().state.lines, ["v1", "true", "closed"]);
        }
        (outcome, store)
    }};
}

macro_rules! refused {
    ($version:ident, $compatibility:expr) => {{
        let error = resume!($version, $compatibility).0.unwrap_err();
        error.incompatible().unwrap_or_else(|| panic!("{error}")).differences().to_vec()
    }};
}

#[tokio::test]
async fn an_incompatible_session_is_refused_before_anything_runs() {
    let gone = refused!(renamed, Compatibility::Compatible);
    assert!(matches!(&gone[..], [Difference::StepGone { step, .. }] if step == "Ask"), "{gone:?}");
    let field = refused!(removed, Compatibility::Compatible);
    let is = |field: &str| Difference::FieldRemoved { field: field.into() };
    assert_eq!(field, [is("title")]);
    let retyped = refused!(retyped, Compatibility::Compatible);
    let [Difference::FieldTypeChanged { field, saved, now }] = &retyped[..] else {
        panic!("{retyped:?}")
    };
    assert_eq!((&**field, &**saved, &**now), ("title", "String", "u32"));
    let answer = refused!(other_answer, Compatibility::Compatible);
    assert_eq!(answer, [Difference::AnswerSchemaChanged { question: "sure".into() }]);
    let version = refused!(unknown, Compatibility::Compatible);
    assert!(version.contains(&Difference::VersionUnknown { saved: 1, now: 7 }), "{version:?}");
}

#[tokio::test]
async fn compatible_changes_are_adopted_and_recorded() {
    let lines = ["v1", "true", "new"];
    let (outcome, store) = resume!(same, Compatibility::Strict);
    assert_eq!(outcome.unwrap().ended().unwrap().state.lines, lines);
    assert_eq!(count(&store, "s", "adopt").await, 0);

    let (outcome, store) = resume!(aliased, Compatibility::Compatible);
    assert_eq!(outcome.unwrap().ended().unwrap().state.lines, lines);
    assert_eq!(count(&store, "s", "adopt").await, 1);

    let (outcome, store) = resume!(added, Compatibility::Compatible);
    let ended = outcome.unwrap().ended().unwrap();
    assert_eq!((&ended.state.lines[..], ended.state.note), (&lines.map(str::to_owned)[..], None));
    assert_eq!(count(&store, "s", "adopt").await, 1);

    let (outcome, store) = resume!(migrated, Compatibility::Compatible);
    let ended = outcome.unwrap().ended().unwrap();
    assert_eq!(
        (&ended.state.lines[..], &*ended.state.heading),
        (&lines.map(str::to_owned)[..], "t")
    );
    assert_eq!(count(&store, "s", "adopt").await, 1);
    // It is taken over once.
    let agent = migrated::agent(&store, &Ran::default());
    let outcome = agent.run(migrated::Doc::update(), ()).session("s").await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted(_)));
    assert_eq!(count(&store, "s", "adopt").await, 1);
    // There is no way back.
    let old = v1::harness().agent("a", ()).store(store.clone());
    let err = old.resume("s", Answers::none(), ()).await.unwrap_err();
    assert!(err.incompatible().is_some_and(|it| it.is_state()), "{err}");
}

#[tokio::test]
async fn strictly_nothing_may_have_changed() {
    let added = refused!(added, Compatibility::Strict);
    assert!(added.contains(&Difference::FieldAdded { field: "note".into() }), "{added:?}");
    let aliased = refused!(aliased, Compatibility::Strict);
    assert!(aliased.contains(&Difference::WiringChanged), "{aliased:?}");
    let version = refused!(migrated, Compatibility::Strict);
    assert!(version.contains(&Difference::VersionChanged { saved: 1, now: 2 }), "{version:?}");
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Ask,
    Close,
}

/// What a step of another wiring does: it says its name, and that it ran.
fn says(ran: &Ran) -> impl Fn(View<v1::Doc>, Cx<()>) -> Says + Clone + Send + Sync + 'static {
    let ran = Arc::clone(ran);
    move |_, cx| {
        ran.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(v1::Doc::update().lines([cx.step().to_owned()])))
    }
}

type Says = std::future::Ready<StepResult<v1::Doc>>;

/// The same steps, and other ways between them.
fn rerouted(ran: &Ran) -> Harness<(), v1::Doc> {
    Harness::<(), v1::Doc>::builder("versions")
        .start(v1::Step::Write)
        .steps(|define, step| match step {
            v1::Step::Write => define.run(says(ran)).route(
                |doc: &v1::Doc| if doc.title.is_empty() { Next::Ask } else { Next::Close },
                |next| match next {
                    Next::Ask => to(v1::Step::Ask),
                    Next::Close => to(v1::Step::Close),
                },
            ),
            v1::Step::Ask => define
                .ask(|_, _| async move { Ok(v1::Sure) })
                .answer(|_, _, _| async move { Ok(v1::Doc::update().lines(["yes".to_owned()])) })
                .end(),
            v1::Step::Close => define.run(says(ran)).end(),
        })
        .build()
        .unwrap()
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum More {
    Write,
    Ask,
    Check,
    Close,
}

/// One step more, on the way from the gate on.
fn longer(ran: &Ran) -> Harness<(), v1::Doc> {
    Harness::<(), v1::Doc>::builder("versions")
        .start(More::Write)
        .steps(|define, step| match step {
            More::Write => define.run(says(ran)).then(More::Ask),
            More::Ask => define
                .ask(|_, _| async move { Ok(v1::Sure) })
                .answer(|_, _, _| async move { Ok(v1::Doc::update().lines(["yes".to_owned()])) })
                .then(More::Check),
            More::Check => define.run(says(ran)).then(More::Close),
            More::Close => define.run(says(ran)).end(),
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn other_edges_between_steps_are_adopted_once() {
    let ran = Ran::default();
    let steps = ["Ask", "Close", "Write"];
    let cases = [
        (rerouted(&ran), &["v1", "yes"][..], &steps[..], &["Write", "Close"][..]),
        (
            longer(&ran),
            &["v1", "yes", "Check", "Close"],
            &["Ask", "Check", "Close", "Write"],
            &["Write"],
        ),
    ];
    for (harness, lines, steps, next) in cases {
        let (store, id) = left().await;
        let strict = harness
            .clone()
            .agent("a", ())
            .store(store.clone())
            .compatibility(Compatibility::Strict);
        let before = all(&store, "s").await;
        let yes = || Answers::json(&*id, true.into());
        let refused = strict.resume("s", yes(), ()).await.unwrap_err();
        assert_eq!(refused.incompatible().unwrap().differences(), [Difference::WiringChanged]);
        assert_eq!((all(&store, "s").await, ran.load(Ordering::SeqCst)), (before, 0));

        let agent = harness.agent("a", ()).store(store.clone());
        let ended = agent.resume("s", yes(), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.lines, lines);
        // The next turn goes the new ways, and is nothing to take over.
        let turn = agent.run(v1::Doc::update(), ()).session("s").await.unwrap();
        assert_eq!(turn.state().unwrap().lines[lines.len()..], *next);
        let adopted = adopted(&store).await;
        assert_eq!(adopted.len(), 1);
        let Adopted { graph, schema, state, renamed, .. } = &adopted[0];
        assert!(schema.is_none() && state.is_none() && renamed.is_empty());
        assert!(graph.as_ref().unwrap().steps.keys().eq(steps));
        ran.store(0, Ordering::SeqCst);
    }
}

/// How a session was taken over.
async fn adopted(store: &MemoryStore) -> Vec<Adopted> {
    let page = Sessions::new(store.clone()).history("s", Seq(0), 1_000).await.unwrap();
    let adopted = page.entries.into_iter().filter_map(|(_, entry)| match entry.change {
        Change::Adopted(adopted) => Some(*adopted),
        _ => None,
    });
    adopted.collect()
}

/// The first version, but its last step is a gate, or its gate a plain step.
fn other_kind(gate: &v1::Step, ran: &Ran) -> Harness<(), v1::Doc> {
    let after = |step: &v1::Step| match step {
        v1::Step::Write => to(v1::Step::Ask),
        v1::Step::Ask => to(v1::Step::Close),
        v1::Step::Close => end(),
    };
    Harness::<(), v1::Doc>::builder("versions")
        .start(v1::Step::Write)
        .steps(|define, step| {
            let only = |_: &v1::Doc| Only::Way;
            if step != *gate {
                return define.run(says(ran)).route(only, |Only::Way| after(&step));
            }
            let asks = Arc::clone(ran);
            define
                .ask(move |_, _| {
                    asks.fetch_add(1, Ordering::SeqCst);
                    async move { Ok(v1::Sure) }
                })
                .answer(|_, _, _| async move { Ok(v1::Doc::update()) })
                .route(only, |Only::Way| after(&step))
        })
        .build()
        .unwrap()
}

#[derive(Signal, Clone, Copy, Debug)]
enum Only {
    Way,
}

/// The first version, whose last step fails.
fn failing() -> Harness<(), v1::Doc> {
    Harness::<(), v1::Doc>::builder("versions")
        .start(v1::Step::Close)
        .steps(|define, step| match step {
            v1::Step::Write | v1::Step::Ask => define.off("not here"),
            v1::Step::Close => {
                define.run(|_, _| async move { Err(StepError::fatal("no room")) }).end()
            }
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_step_at_rest_that_is_of_another_kind_is_refused_before_anything_runs() {
    let ran = Ran::default();
    let check = async |store: &MemoryStore, gate: v1::Step, step: &str, saved, now| {
        let before = all(store, "s").await;
        let agent = other_kind(&gate, &ran).agent("a", ()).store(store.clone());
        let refused = agent.resume("s", Answers::none(), ()).await.unwrap_err();
        let kind = Difference::StepKindChanged { step: step.to_owned(), saved, now };
        assert_eq!(refused.incompatible().unwrap().differences(), [kind]);
        assert_eq!((all(store, "s").await, ran.load(Ordering::SeqCst)), (before, 0));
    };
    // A plain step is a gate now.
    let store = MemoryStore::new();
    let agent = failing().agent("a", ()).store(store.clone());
    let failed = agent.run(v1::Doc::update(), ()).session("s").await.unwrap();
    assert!(matches!(failed, Outcome::Failed(_)), "{failed:?}");
    check(&store, v1::Step::Close, "Close", StepKind::Run, StepKind::Gate).await;
    // A gate that waits is a plain step now.
    let (store, id) = left().await;
    check(&store, v1::Step::Close, "Ask", StepKind::Gate, StepKind::Run).await;
    // The version that wrote it resumes it.
    let old = v1::harness().agent("a", ()).store(store);
    let ended = old.resume("s", Answers::json(&*id, true.into()), ()).await.unwrap();
    assert_eq!(ended.ended().unwrap().state.lines, ["v1", "true", "closed"]);
}
