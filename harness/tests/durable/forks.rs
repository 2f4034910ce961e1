//! The past of sessions, and other ways from there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use harness::inspect::{Filter, Moment, Phase};
use harness::observe::{EventKind, from_fn};
use harness::prelude::*;
use harness::session::End;
use harness::store::{MemoryStore, ReadRequest, SessionStore, StoredEntry};
use harness::{Seq, SessionId, Sessions, id::Position};
use serde_json::json;

use crate::sessions as doc;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Tale {
    #[state(reduce = append)]
    lines: Vec<String>,
    pad: String,
    #[state(reduce = add)]
    n: u32,
}

/// The same with another type of a field.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Changed {
    #[state(reduce = append)]
    lines: Vec<String>,
    pad: String,
    n: String,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    word: String,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct May {
    what: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Ask,
}

#[derive(Signal, Clone, Copy, Debug, PartialEq)]
enum Next {
    On,
    Ask,
}

const STEPS: u32 = 30;

type Views = Arc<Mutex<HashMap<Position, Tale>>>;

/// Writes a line with the run's word `STEPS` times, then asks twice in the middle of a step.
fn agent(store: &MemoryStore, views: &Views) -> Agent<Ctx, Tale> {
    let views = Arc::clone(views);
    let harness = Harness::<Ctx, Tale>::builder("tale")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => {
                let views = Arc::clone(&views);
                define
                    .run(move |tale: View<Tale>, cx: Cx<Ctx>| {
                        views.lock().unwrap().insert(cx.position(), (*tale).clone());
                        async move {
                            let word = cx.word.clone();
                            let line = cx.once("write", async move || Ok(word)).await?;
                            let pad = format!("{:>20000}", tale.n);
                            Ok(Tale::update().lines([line]).pad(pad).n(1))
                        }
                    })
                    .route(
                        |tale: &Tale| {
                            if tale.n.is_multiple_of(STEPS) { Next::Ask } else { Next::On }
                        },
                        |signal| match signal {
                            Next::On => to(Step::Write),
                            Next::Ask => to(Step::Ask),
                        },
                    )
            }
            Step::Ask => {
                let views = Arc::clone(&views);
                define
                    .run(move |tale: View<Tale>, cx: Cx<Ctx>| {
                        views.lock().unwrap().insert(cx.position(), (*tale).clone());
                        async move {
                            let may = |what: &str| May { what: what.to_owned() };
                            let (a, b) = tokio::join!(cx.ask("a", may("a")), cx.ask("b", may("b")));
                            Ok(Tale::update().lines([format!("{} {}", a?, b?)]))
                        }
                    })
                    .end()
            }
        })
        .build()
        .unwrap();
    harness.agent("teller", ()).store(store.clone())
}

fn word(word: &str) -> <Ctx as Context>::Runtime {
    Ctx::runtime().word(word.to_owned()).build()
}

async fn log(store: &MemoryStore, session: &str) -> Vec<StoredEntry> {
    let session = SessionId::new(session).unwrap();
    let page =
        store.read(&session, ReadRequest::from(Seq(0)).limit(u64::MAX)).await.unwrap().unwrap();
    assert!(page.next.is_none());
    page.entries
}

async fn moments(agent: &Agent<Ctx, Tale>, session: &str) -> Vec<Moment<Tale>> {
    let (mut all, mut from) = (Vec::new(), Seq(0));
    loop {
        let page = agent.history(session, from, 7).await.unwrap();
        assert!(page.moments.len() <= 7);
        all.extend(page.moments);
        match page.next {
            Some(next) => from = next,
            None => return all,
        }
    }
}

fn answer(questions: &[harness::Interrupt], key: &str, value: bool) -> Answers {
    let asked = questions.iter().find(|asked| asked.key.as_deref() == Some(key)).unwrap();
    Answers::json(asked.id.clone(), json!(value))
}

/// A session `s` that has written its lines and waits for both answers.
async fn written(store: &MemoryStore) -> (Agent<Ctx, Tale>, Sessions) {
    let agent = agent(store, &Views::default());
    let outcome = agent.run(Tale::update(), word("w")).session("s").await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted(_)), "{outcome:?}");
    (agent, Sessions::new(store.clone()))
}

#[tokio::test]
async fn the_state_at_each_commit_is_the_one_the_next_step_saw() {
    let (store, views) = (MemoryStore::new(), Views::default());
    let commits: Arc<Mutex<Vec<(Position, Seq)>>> = Arc::default();
    let seen = Arc::clone(&commits);
    let agent = agent(&store, &views).observe(from_fn(move |event| {
        if matches!(event.kind, EventKind::Committed { .. }) {
            seen.lock().unwrap().push((event.position, event.seq.unwrap()));
        }
    }));
    agent.run(Tale::update(), word("w")).session("s").await.unwrap();
    let sessions = Sessions::new(store.clone());
    let commits = commits.lock().unwrap().clone();
    assert_eq!(commits.len(), STEPS as usize);
    let snapshots = log(&store, "s").await;
    let snapshots =
        snapshots.iter().filter(|it| it.bytes.windows(10).any(|w| w == b"\"snapshot\""));
    assert!(snapshots.count() > 1, "there is something to start from");
    for (position, seq) in commits {
        let then = views.lock().unwrap()[&Position(position.0 + 1)].clone();
        assert_eq!(agent.state_at("s", seq).await.unwrap(), then, "{seq}");
        assert_eq!(
            sessions.state_at("s", seq).await.unwrap(),
            serde_json::to_value(&then).unwrap()
        );
    }
    let moments = moments(&agent, "s").await;
    // The input, each step, how it settled; and the snapshots, which change nothing.
    assert!(moments.is_sorted_by(|one, other| one.seq < other.seq));
    for moment in &moments {
        assert_eq!(moment.state, agent.state_at("s", moment.seq).await.unwrap());
    }
    let first = &moments[0];
    assert_eq!((first.state.n, first.step.as_str(), first.steps, first.turn), (0, "Write", 0, 1));
    let last = moments.last().unwrap();
    assert_eq!((last.phase, last.step.as_str(), last.steps), (Phase::Interrupted, "Ask", 30));
    assert_eq!(last.seq, sessions.status("s").await.unwrap().head);
}

#[tokio::test]
async fn a_fork_goes_another_way_and_leaves_its_source_alone() {
    let store = MemoryStore::new();
    let (agent, sessions) = written(&store).await;
    let before = log(&store, "s").await;
    let past = moments(&agent, "s").await;
    let at = past.iter().find(|moment| moment.state.n == 10).unwrap();
    agent.fork("s", at.seq, "t").await.unwrap();
    let fork = sessions.status("t").await.unwrap();
    assert_eq!((fork.phase, fork.step.as_str(), fork.steps), (Phase::Stopped, "Write", 10));
    assert_eq!((fork.position, fork.spent, fork.holder), (at.position, at.spent, None));
    let from = fork.from.unwrap();
    assert_eq!((from.session.as_str(), from.seq), ("s", at.seq));
    assert!(matches!(fork.settled.unwrap().end, End::Stopped));
    assert_eq!(agent.state_at("t", fork.head).await.unwrap(), at.state);

    let err = agent.run(Tale::update(), word("v")).session("t").await.unwrap_err();
    assert!(!err.is_busy() && !err.is_not_found(), "the turn is to be resumed: {err}");
    let outcome = agent.resume("t", Answers::none(), word("v")).await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let lines: Vec<_> = [vec!["w"; 10], vec!["v"; 20]].concat();
    assert_eq!(waiting.state.lines, lines);
    let answers = answer(&waiting.questions, "a", true).and(answer(&waiting.questions, "b", false));
    let ended = agent.resume("t", answers, word("v")).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.lines.last().unwrap(), "true false");
    assert_eq!(log(&store, "s").await, before);
    assert_eq!(sessions.status("s").await.unwrap().phase, Phase::Interrupted);

    // What becomes of the source is nothing to the fork, and a fork of it is one like others.
    sessions.prune("s", Seq(u64::MAX)).await.unwrap();
    sessions.delete("s").await.unwrap();
    let head = sessions.status("t").await.unwrap().head;
    agent.fork("t", head, "u").await.unwrap();
    assert_eq!(sessions.status("u").await.unwrap().from.unwrap().session.as_str(), "t");
    assert_eq!(agent.state_at("t", head).await.unwrap(), ended.state);
    // It has ended, and takes the next turn.
    let outcome = agent.run(Tale::update().lines(["x".into()]), word("u")).session("u").await;
    let Outcome::Interrupted(again) = outcome.unwrap() else { panic!() };
    assert_eq!((again.state.n, again.state.lines.len()), (60, 62));
    assert!(again.questions.iter().all(|new| waiting.questions.iter().all(|old| old.id != new.id)));
}

#[tokio::test]
async fn a_fork_of_a_waiting_session_waits_by_itself() {
    let store = MemoryStore::new();
    let (agent, sessions) = written(&store).await;
    let asked = sessions.status("s").await.unwrap().questions;
    // One is answered before the fork, one after.
    let outcome = agent.resume("s", answer(&asked, "a", true), word("w")).await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted(_)));
    let head = sessions.status("s").await.unwrap().head;
    agent.fork("s", head, "t").await.unwrap();
    let fork = sessions.status("t").await.unwrap();
    assert_eq!((fork.phase, fork.questions.len(), fork.unread), (Phase::Interrupted, 1, 0));
    let open = &fork.questions[0];
    assert_eq!((open.key.as_deref(), &open.question), (Some("b"), &json!({"what": "b"})));
    assert!(asked.iter().all(|it| it.id != open.id));

    let source = agent.resume("s", answer(&asked, "b", false), word("w")).await.unwrap();
    assert_eq!(source.ended().unwrap().state.lines.last().unwrap(), "true false");
    assert_eq!(sessions.status("t").await.unwrap(), fork, "the fork waits on");
    let waiting = sessions.list_interrupts(&Default::default(), None, 9).await.unwrap();
    assert!(waiting.rows.len() == 1 && waiting.rows[0].session.as_str() == "t");
    let err = agent.resume("t", answer(&asked, "b", false), word("w")).await.unwrap_err();
    assert!(err.answer_error().is_some_and(|it| it.is_unknown_interrupt()), "{err}");
    let err = sessions.answer_json("t", answer(&asked, "a", true)).await.unwrap_err();
    assert!(err.answer_error().is_some_and(|it| it.is_unknown_interrupt()), "{err}");

    let ended = agent.resume("t", answer(&fork.questions, "b", true), word("w")).await.unwrap();
    // The answer given before the fork is the fork's too.
    assert_eq!(ended.ended().unwrap().state.lines.last().unwrap(), "true true");
}

#[tokio::test]
async fn a_fork_is_as_its_source_was() {
    let store = MemoryStore::new();
    let (agent, sessions) = (doc::agent("a", &store), Sessions::new(store.clone()));
    for (first, phase) in
        [("ask", Phase::Interrupted), ("fail", Phase::Failed), ("x", Phase::Ended)]
    {
        doc::run(&agent, first, first).await;
        let source = sessions.status(first).await.unwrap();
        if phase != Phase::Failed {
            // The last step's result, or its questions, are one with how the run settled.
            let within = agent.fork(first, Seq(source.head.0 - 1), "not one").await;
            assert!(within.unwrap_err().is_not_a_boundary(), "{first}");
        }
        let to = format!("fork of {first}");
        agent.fork(first, source.head, &to).await.unwrap();
        let fork = sessions.status(&to).await.unwrap();
        assert_eq!(
            (fork.phase, fork.settled, fork.failure),
            (phase, source.settled, source.failure)
        );
        assert_eq!((fork.turn, fork.steps, fork.total), (1, source.steps, source.total));
        let listed = sessions.all(&Filter::default().phase(phase)).await.unwrap();
        assert!(listed.len() == 2 && listed.iter().any(|row| row.session == fork.session));
        for (asked, before) in fork.questions.iter().zip(&source.questions) {
            assert_ne!(asked.id, before.id);
            assert_eq!((&asked.question, asked.asked_at), (&before.question, before.asked_at));
        }
    }
    let id = sessions.status("fork of ask").await.unwrap().questions[0].id.clone();
    let ended = agent.resume("fork of ask", Answers::json(id, json!(true)), ()).await.unwrap();
    assert_eq!(ended.ended().unwrap().state.sent, Some(true));
    let failed = agent.resume("fork of fail", Answers::none(), ()).await.unwrap();
    let Outcome::Failed(failed) = failed else { panic!("{failed:?}") };
    assert_eq!(failed.failure.attempts, 2, "it was tried once before the fork");
}

#[cfg(feature = "testing")]
#[tokio::test(start_paused = true)]
async fn a_fork_whose_answer_is_lost_is_made_once_and_one_that_cannot_be_made_is_not() {
    use harness::testing::{Call, Faulty};

    let store = MemoryStore::new();
    let (agent, sessions) = written(&store).await;
    let head = sessions.status("s").await.unwrap().head;
    let faulty = Faulty::new(store.clone());
    let faults = faulty.faults();
    let agent = agent.store(faulty);
    faults.after(Call::Append, |n| n < 3);
    agent.fork("s", head, "t").await.unwrap();
    assert_eq!((faults.calls(Call::Append), log(&store, "t").await.len()), (3, 2));
    faults.clear();
    faults.before(Call::Append, |_| true);
    let err = agent.fork("s", head, "u").await.unwrap_err();
    assert!(err.store_error().is_some(), "{err}");
    faults.clear();
    assert!(sessions.status("u").await.unwrap_err().is_not_found());
    agent.fork("s", head, "u").await.unwrap();
    assert!(agent.fork("s", head, "u").await.unwrap_err().is_exists());
}

#[tokio::test]
async fn only_a_moment_of_an_own_session_is_forked_and_only_into_a_new_one() {
    let store = MemoryStore::new();
    let (agent, sessions) = written(&store).await;
    let seqs: Vec<Seq> = moments(&agent, "s").await.iter().map(|moment| moment.seq).collect();
    let head = sessions.status("s").await.unwrap().head;
    let mut refused = 0;
    for seq in (1..=head.0).map(Seq) {
        let to = format!("f{seq}");
        let forked = agent.fork("s", seq, &to).await;
        assert_eq!(forked.is_ok(), seqs.contains(&seq), "{seq}: {forked:?}");
        let Err(err) = forked else { continue };
        let nearest = seqs.iter().copied().rfind(|before| *before < seq);
        assert!(err.is_not_a_boundary() && err.nearest_boundary() == nearest, "{seq}: {err}");
        assert!(sessions.status(&to).await.unwrap_err().is_not_found(), "nothing was written");
        refused += 1;
    }
    assert!(refused > 30, "each effect is an entry");
    // The boundary before a kept entry may be pruned.
    sessions.prune("s", Seq(u64::MAX)).await.unwrap();
    let err = agent.fork("s", Seq(2), "x").await.unwrap_err();
    assert!(err.is_pruned(), "{err}");

    for to in ["s", "f2"] {
        let err = agent.fork("s", head, to).await.unwrap_err();
        assert!(err.is_exists(), "{err}");
    }
    assert!(agent.fork("s", head.next(), "x").await.unwrap_err().is_no_such_entry());
    assert!(agent.fork("missing", Seq(1), "x").await.unwrap_err().is_not_found());
    let stranger = {
        let harness =
            Harness::<Ctx, Tale>::builder("other").start(Step::Write).steps(|define, step| {
                match step {
                    Step::Write => define.decide(|_| Next::On, |_| to(Step::Ask)),
                    Step::Ask => define.run(async |_, _| Ok(Tale::update())).end(),
                }
            });
        harness.build().unwrap().agent("stranger", ())
    };
    assert!(stranger.state_at("s", head).await.unwrap_err().is_no_store());
    let changed = {
        let harness =
            Harness::<(), Changed>::builder("tale").start(Step::Write).steps(|define, step| {
                match step {
                    Step::Write => define.decide(|_| Next::On, |_| to(Step::Ask)),
                    Step::Ask => define.run(async |_, _| Ok(Changed::update())).end(),
                }
            });
        harness.build().unwrap().agent("teller", ()).store(store.clone())
    };
    for err in [
        changed.state_at("s", head).await.unwrap_err(),
        changed.history("s", head, 1).await.unwrap_err(),
    ] {
        assert!(err.incompatible().is_some() && err.to_string().contains("`n`"), "{err}");
    }
    let stranger = stranger.store(store);
    assert!(stranger.state_at("s", head).await.unwrap_err().is_wrong_agent());
    assert!(stranger.history("s", head, 1).await.unwrap_err().is_wrong_agent());
    assert!(stranger.fork("s", head, "x").await.unwrap_err().is_wrong_agent());
    assert!(sessions.status("x").await.unwrap_err().is_not_found());
}
