//! Sessions of loops that hold others: their steps are stored under the names of their groups.

use harness::compat::Difference;
use harness::inspect::{Filter, Phase};
use harness::prelude::*;
use harness::session::Change;
use harness::store::MemoryStore;
use harness::{Durability, Seq, Sessions, id::Position};
use serde_json::json;

use super::rig::{Act, On, Rig, all, count, log, run_or_crash, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
    /// The group that asks; empty for both.
    asks: String,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool, name = "sign")]
struct Sign;

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Ask,
    Pass,
}

async fn note(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    Ok(Doc::update().lines([cx.step().to_owned()]))
}

async fn file(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    let step = cx.step().to_owned();
    let filed: String = cx.once("file", async move || Ok(step)).await?;
    Ok(Doc::update().lines([filed]))
}

/// Whether the group whose first step has just run asks.
fn route(doc: &Doc) -> Next {
    match doc.lines.last().is_some_and(|line| line.starts_with(&doc.asks)) {
        true => Next::Ask,
        false => Next::Pass,
    }
}

/// A loop that uses another twice, which holds a third; the names are a version's own.
macro_rules! version {
    (
        $name:ident,
        $(#[$group:meta])* $first:ident,
        $(#[$inner:meta])* $sign:ident,
        $(#[$leaf:meta])* $ask:ident
    ) => {
        mod $name {
            use super::*;

            mod sign {
                use super::super::*;
                use harness::{Define, declare::StepDef};

                #[derive(StepId, Clone, Debug, PartialEq, Eq)]
                pub enum Step {
                    $(#[$leaf])*
                    $ask,
                    File,
                }

                pub fn sign(define: Define<(), Doc, Step>, step: Step) -> StepDef<(), Doc, Step> {
                    match step {
                        Step::$ask => define
                            .ask(|_, _| async move { Ok(Sign) })
                            .answer(|_, cx, said| async move {
                                let line = format!("{} {}", cx.step(), said.answer);
                                Ok(Doc::update().lines([line]))
                            })
                            .then(Step::File),
                        Step::File => define.run(file).end(),
                    }
                }
            }

            mod review {
                use super::super::*;
                use super::sign;
                use harness::{Define, declare::StepDef};

                #[derive(StepId, Clone, Debug, PartialEq, Eq)]
                pub enum Step {
                    Read,
                    $(#[$inner])*
                    $sign(sign::Step),
                }

                pub fn review(define: Define<(), Doc, Step>, step: Step) -> StepDef<(), Doc, Step> {
                    match step {
                        Step::Read => define.run(note).route(route, |next| match next {
                            Next::Ask => to(Step::$sign(sign::Step::$ask)),
                            Next::Pass => end(),
                        }),
                        Step::$sign(step) => define.nest(Step::$sign, sign::sign, step).end(),
                    }
                }
            }

            #[derive(StepId, Clone, Debug, PartialEq, Eq)]
            enum Step {
                Write,
                $(#[$group])*
                $first(review::Step),
                #[step(nest)]
                Second(review::Step),
                Publish,
            }

            pub fn harness() -> Harness<(), Doc> {
                Harness::<(), Doc>::builder("nested")
                    .start(Step::Write)
                    .steps(|define, step| match step {
                        Step::Write => define.run(note).then(Step::$first(review::Step::Read)),
                        Step::$first(step) => {
                            let after = to(Step::Second(review::Step::Read));
                            define.nest(Step::$first, review::review, step).route(|()| after.clone())
                        }
                        Step::Second(step) => {
                            define.nest(Step::Second, review::review, step).then(Step::Publish)
                        }
                        Step::Publish => define.run(note).end(),
                    })
                    .build()
                    .unwrap()
            }
        }
    };
}

version!(
    now,
    #[step(nest)]
    First,
    #[step(nest)]
    Sign,
    Ask
);
version!(
    renamed,
    #[step(nest, alias = "First")]
    Editor,
    #[step(nest, alias = "Sign")]
    Stamp,
    #[step(alias = "Ask")]
    Confirm
);
version!(
    lost,
    #[step(nest)]
    Editor,
    #[step(nest)]
    Sign,
    Ask
);

fn agent(store: &MemoryStore) -> Agent<(), Doc> {
    now::harness().agent("a", ()).store(store.clone())
}

/// The next steps, from the typed and from the untyped history.
async fn steps(agent: &Agent<(), Doc>, store: &MemoryStore) -> (Vec<String>, Vec<String>) {
    let moments = agent.history("s", Seq(0), 1_000).await.unwrap().moments;
    let mut typed: Vec<String> = moments.into_iter().map(|moment| moment.step).collect();
    // Waiting at a step and ending after one are separate moments.
    typed.dedup();
    let entries = Sessions::new(store.clone()).history("s", Seq(0), 1_000).await.unwrap().entries;
    let next = entries.into_iter().filter_map(|(_, entry)| match entry.change {
        Change::RunStarted(run) => run.start,
        Change::Committed(committed) => committed.next,
        _ => None,
    });
    (typed, next.map(|step| step.to_string()).collect())
}

#[tokio::test]
async fn a_step_that_waits_is_stored_below_the_names_of_its_groups() {
    for group in ["First", "Second"] {
        let store = MemoryStore::new();
        let (agent, sessions) = (agent(&store), Sessions::new(store.clone()));
        let ask = format!("{group}/Sign/Ask");
        let outcome = agent.run(Doc::update().asks(group), ()).session("s").await.unwrap();
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        assert_eq!((waiting.questions.len(), &waiting.questions[0].step), (1, &ask));

        let status = sessions.status("s").await.unwrap();
        assert_eq!((status.phase, &status.step), (Phase::Interrupted, &ask));
        assert_eq!(status.questions[0].step, ask);
        let inbox = sessions.list_interrupts(&Filter::default(), None, 9).await.unwrap();
        assert_eq!(inbox.rows[0].interrupt.step, ask);
        assert_eq!(sessions.all(&Filter::default()).await.unwrap()[0].step, ask);

        let mut expected = vec!["Write", "First/Read"];
        if group == "Second" {
            expected.push("Second/Read");
        }
        expected.push(&ask);
        let (typed, untyped) = steps(&agent, &store).await;
        assert_eq!((&typed[..], &untyped[..]), (&text(&expected)[..], &text(&expected)[..]));

        let yes = Answers::json(waiting.questions[0].id.clone(), json!(true));
        let ended = agent.resume("s", yes, ()).await.unwrap().ended().unwrap();
        let (said, filed) = (format!("{ask} true"), format!("{group}/Sign/File"));
        let lines = match group {
            "First" => ["Write", "First/Read", &said, &filed, "Second/Read", "Publish"],
            _ => ["Write", "First/Read", "Second/Read", &said, &filed, "Publish"],
        };
        assert_eq!(ended.state.lines, lines);

        expected.push(&filed);
        if group == "First" {
            expected.push("Second/Read");
        }
        expected.push("Publish");
        let (typed, untyped) = steps(&agent, &store).await;
        assert_eq!((&typed[..], &untyped[..]), (&text(&expected)[..], &text(&expected)[..]));
    }
}

fn text(steps: &[&str]) -> Vec<String> {
    steps.iter().map(|&step| step.to_owned()).collect()
}

type Past = Vec<(String, Position, Phase, Doc)>;

/// Runs to the end of the turn, answering whatever is asked: the state, all moments, and how often
/// a process has died.
fn in_the_end(
    asks: &str,
    durability: Durability,
    mut death: Option<(u64, Act)>,
) -> (Doc, Past, u32) {
    let memory = MemoryStore::new();
    let sessions = Sessions::new(memory.clone());
    let mut crashes = 0;
    for _ in 0..10 {
        // What is known of the session is what the store says.
        let status = runtime().block_on(sessions.status("s")).ok();
        let rig = match death.take() {
            Some((n, act)) => Rig::nth(&memory, On::Append, n, act),
            None => Rig::new(memory.clone()),
        };
        let agent = now::harness().agent("a", ()).store(rig.clone()).durability(durability);
        let request = match status {
            None => agent.run(Doc::update().asks(asks), ()).session("s"),
            Some(status) if status.phase == Phase::Ended => {
                let moments =
                    runtime().block_on(agent.history("s", Seq(0), 1_000)).unwrap().moments;
                let state = moments.last().unwrap().state.clone();
                let past = moments.into_iter().map(|at| (at.step, at.position, at.phase, at.state));
                return (state, past.collect(), crashes);
            }
            Some(status) => {
                let answers = status.questions.iter().fold(Answers::none(), |all, asked| {
                    all.and(Answers::json(asked.id.clone(), json!(true)))
                });
                agent.resume("s", answers, ())
            }
        };
        crashes += u32::from(run_or_crash(&rig, |_| request).is_none());
    }
    panic!("no end after 10 runs: {:?}", runtime().block_on(log(&memory, "s")));
}

#[test]
fn a_death_at_any_append_within_a_group_changes_neither_state_nor_history() {
    for durability in [Durability::Step, Durability::Settle] {
        // Each of the two alone, and both, one after the other.
        for asks in ["First", "Second", ""] {
            let (state, past, _) = in_the_end(asks, durability, None);
            let waited: Vec<&str> = past
                .iter()
                .filter(|(_, _, phase, _)| *phase == Phase::Interrupted)
                .map(|(step, ..)| &**step)
                .collect();
            match asks {
                "" => assert_eq!(waited, ["First/Sign/Ask", "Second/Sign/Ask"]),
                group => assert_eq!(waited, [format!("{group}/Sign/Ask")]),
            }
            let mut crashed = 0;
            for act in [Act::HangBefore, Act::HangAfter] {
                let after = matches!(act, Act::HangAfter);
                for n in 1..12 {
                    let got = in_the_end(asks, durability, Some((n, act.clone())));
                    crashed += got.2;
                    let what = format!("append {n}, after {after}, {durability:?}, `{asks}`");
                    assert_eq!((&got.0, &got.1), (&state, &past), "{what}");
                }
            }
            assert!(crashed >= 4, "{crashed}, {durability:?}, `{asks}`");
        }
    }
}

/// A session that waits in the first group.
async fn left() -> (MemoryStore, Answers) {
    let store = MemoryStore::new();
    let outcome = agent(&store).run(Doc::update().asks(""), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    (store, Answers::json(waiting.questions[0].id.clone(), json!(true)))
}

#[tokio::test]
async fn a_renamed_group_is_resumed_under_its_new_name() {
    let (store, yes) = left().await;
    let (agent, sessions) =
        (renamed::harness().agent("a", ()).store(store.clone()), Sessions::new(store.clone()));
    let outcome = agent.resume("s", yes, ()).await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    assert_eq!(waiting.questions[0].step, "Second/Stamp/Confirm");
    assert_eq!(
        waiting.state.lines[1..],
        ["First/Read", "Editor/Stamp/Confirm true", "Editor/Stamp/File", "Second/Read"]
    );
    // It is taken over once, with the steps that this turn has entered.
    let entries = sessions.history("s", Seq(0), 1_000).await.unwrap().entries;
    let adopted: Vec<_> = entries
        .into_iter()
        .filter_map(|(_, entry)| match entry.change {
            Change::Adopted(adopted) => Some(adopted),
            _ => None,
        })
        .collect();
    assert_eq!(adopted.len(), 1);
    assert_eq!(adopted[0].renamed["First/Sign/Ask"].as_ref(), "Editor/Stamp/Confirm");

    let yes = Answers::json(waiting.questions[0].id.clone(), json!(true));
    let ended = agent.resume("s", yes, ()).await.unwrap().ended().unwrap();
    assert_eq!(
        ended.state.lines[5..],
        ["Second/Stamp/Confirm true", "Second/Stamp/File", "Publish"]
    );
    assert_eq!(count(&store, "s", "adopt").await, 1);
    // What was before has the names that it had.
    let (typed, untyped) = steps(&agent, &store).await;
    let expected = [
        "Write",
        "First/Read",
        "First/Sign/Ask",
        "Editor/Stamp/File",
        "Second/Read",
        "Second/Stamp/Confirm",
        "Second/Stamp/File",
        "Publish",
    ];
    assert_eq!((&typed[..], &untyped[..]), (&text(&expected)[..], &text(&expected)[..]));
}

#[tokio::test]
async fn a_renamed_group_without_an_alias_is_gone() {
    let (store, yes) = left().await;
    let before = all(&store, "s").await;
    let agent_of_lost = lost::harness().agent("a", ()).store(store.clone());
    let error = agent_of_lost.resume("s", yes.clone(), ()).await.unwrap_err();
    let gone = error.incompatible().unwrap().differences();
    assert!(
        matches!(gone, [Difference::StepGone { step, .. }] if step == "First/Sign/Ask"),
        "{gone:?}"
    );
    assert_eq!(all(&store, "s").await, before);
    assert!(matches!(agent(&store).resume("s", yes, ()).await.unwrap(), Outcome::Interrupted(_)));
}
