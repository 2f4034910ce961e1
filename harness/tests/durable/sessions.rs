//! Sessions without their types: looked at, answered, stopped, deleted.

use std::sync::Arc;
use std::time::Duration;

use harness::inspect::{Filter, Phase};
use harness::prelude::*;
use harness::session::{Change, End};
use harness::store::{Batch, InboxSeq, MemoryStore, NewEntry, SessionStore};
use harness::{Seq, SessionId, Sessions};
use serde_json::json;
use tokio::sync::Notify;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Doc {
    #[state(reduce = append)]
    pub lines: Vec<String>,
    pub pad: String,
    pub sent: Option<bool>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send {
    to: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Ask,
}

#[derive(Signal, Clone, Copy, Debug, PartialEq)]
enum Next {
    Ask,
    Write,
    Done,
}

/// Writes while the text is padded; asks unless the first line says not to.
fn route(doc: &Doc) -> Next {
    match doc.lines.first().map(String::as_str) {
        Some("ask") => Next::Ask,
        Some("long") if doc.lines.len() < 40 => Next::Write,
        _ => Next::Done,
    }
}

async fn write(doc: View<Doc>, _: Cx<()>) -> StepResult<Doc> {
    match doc.lines.first().map(String::as_str) {
        Some("fail") => Err(StepError::fatal("no ink")),
        Some("long") => {
            let pad = format!("{:>20000}", doc.lines.len());
            Ok(Doc::update().lines(["more".into()]).pad(pad))
        }
        _ => Ok(Doc::update().lines(["written".into()])),
    }
}

pub(crate) fn agent(name: &str, store: &MemoryStore) -> Agent<(), Doc> {
    harness().agent(name, ()).store(store.clone())
}

pub(crate) fn harness() -> Harness<(), Doc> {
    Harness::<(), Doc>::builder("doc")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(write).route(route, |signal| match signal {
                Next::Ask => to(Step::Ask),
                Next::Write => to(Step::Write),
                Next::Done => end(),
            }),
            Step::Ask => define
                .ask(|_, _| async move { Ok(Send { to: "all".into() }) })
                .answer(|_, _, said| async move { Ok(Doc::update().sent(Some(said.answer))) })
                .end(),
        })
        .build()
        .unwrap()
}

pub(crate) async fn run(agent: &Agent<(), Doc>, session: &str, first: &str) -> Outcome<Doc> {
    agent.run(Doc::update().lines([first.into()]), ()).session(session).await.unwrap()
}

async fn question(sessions: &Sessions, session: &str) -> harness::InterruptId {
    sessions.status(session).await.unwrap().questions[0].id.clone()
}

#[tokio::test]
async fn status_reports_a_session() {
    let store = MemoryStore::new();
    let (agent, sessions) = (agent("a", &store), Sessions::new(store));
    run(&agent, "asks", "ask").await;
    let asks = sessions.status("asks").await.unwrap();
    assert_eq!((asks.session.as_str(), asks.agent.as_str()), ("asks", "a"));
    assert_eq!(
        (asks.phase, asks.step.as_str(), asks.turn, asks.steps),
        (Phase::Interrupted, "Ask", 1, 1)
    );
    assert_eq!((asks.position.0, asks.first, asks.holder), (2, Seq(1), None));
    assert_eq!((asks.questions.len(), asks.unread), (1, 0));
    assert!(asks.questions[0].name == "send" && asks.questions[0].question == json!({"to": "all"}));
    assert!(asks.created.0 > 0 && asks.updated >= asks.created && asks.head > Seq(3));
    assert!(matches!(asks.settled.unwrap().end, End::Interrupted));
    assert_eq!(sessions.state("asks").await.unwrap()["lines"], json!(["ask", "written"]));

    run(&agent, "fails", "fail").await;
    let fails = sessions.status("fails").await.unwrap();
    assert_eq!(
        (fails.phase, fails.failure.clone().unwrap().message.as_str()),
        (Phase::Failed, "no ink")
    );
    assert!(fails.questions.is_empty() && asks.failure.is_none());

    run(&agent, "ends", "x").await;
    run(&agent, "ends", "x").await;
    let ends = sessions.status("ends").await.unwrap();
    assert_eq!((ends.phase, ends.turn, ends.steps, ends.position.0), (Phase::Ended, 2, 1, 2));
}

#[tokio::test]
async fn lists_page_and_filter() {
    let store = MemoryStore::new();
    let sessions = Sessions::new(store.clone());
    let agents = [agent("a", &store), agent("b", &store)];
    for n in 0..260 {
        let first = if n % 10 == 0 { "ask" } else { "x" };
        run(&agents[usize::from(n % 4 == 0)], &format!("s{n:03}"), first).await;
    }
    let mut seen = Vec::new();
    let (mut after, mut pages) = (None::<Vec<u8>>, 0);
    loop {
        let page = sessions.list(&Filter::sessions(), after.as_deref(), 30).await.unwrap();
        assert!(page.rows.len() <= 30);
        pages += 1;
        seen.extend(page.rows.into_iter().map(|row| row.session.to_string()));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let all: Vec<_> = (0..260).map(|n| format!("s{n:03}")).collect();
    assert_eq!((seen, pages), (all, 9));

    let count = async |filter: Filter| sessions.all(&filter).await.unwrap().len();
    let of = |agent: usize| agents[agent].id().clone();
    assert_eq!(count(Filter::sessions()).await, 260);
    assert_eq!(count(Filter::sessions().agent(of(1))).await, 65);
    assert_eq!(count(Filter::sessions().phase(Phase::Interrupted)).await, 26);
    assert_eq!(count(Filter::sessions().agent(of(1)).phase(Phase::Interrupted)).await, 13);
    // Whatever the filter says of questions, these are sessions.
    assert_eq!(count(Filter::interrupts()).await, 260);
    let row = sessions.all(&Filter::sessions().agent(of(1))).await.unwrap().remove(0);
    assert_eq!((row.session.as_str(), row.agent.as_str(), row.step.as_str()), ("s000", "b", "Ask"));
    let status = sessions.status("s000").await.unwrap();
    assert_eq!((row.phase, row.head, row.created), (status.phase, status.head, status.created));

    let (mut found, mut after) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let filter = Filter::default().agent(of(1));
        let page = sessions.list_interrupts(&filter, after.as_deref(), 5).await.unwrap();
        assert!(page.unreadable.is_empty());
        found.extend(page.rows);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(found.len(), 13);
    assert!(found.iter().all(|it| it.interrupt.name == "send" && it.agent == of(1)));
    assert_eq!(found[0].interrupt, sessions.status("s000").await.unwrap().questions[0]);
    assert_eq!((found[0].since, found[0].expires), (found[0].interrupt.asked_at, None));
    let all = sessions.pending_interrupts().await.unwrap();
    assert!(all.next.is_none() && all.unreadable.is_empty());
    assert_eq!(all.rows.len(), 26);
    assert!(found.iter().all(|one| all.rows.contains(one)));
}

#[tokio::test]
async fn answers_wait_for_the_run_that_resumes() {
    let store = MemoryStore::new();
    let (agent, sessions) = (agent("a", &store), Sessions::new(store));
    run(&agent, "s", "ask").await;
    let id = question(&sessions, "s").await;
    let answer = |value| sessions.answer_json("s", Answers::json(id.clone(), value).by("sam"));
    let before = sessions.status("s").await.unwrap();

    let err = answer(json!("yes")).await.unwrap_err();
    assert!(err.answer_error().is_some_and(|it| it.is_wrong_answer()), "{err}");
    let strange = Answers::json("unknown", json!(true));
    // One of several is not right: none is recorded.
    let several = Answers::json(id.clone(), json!(false)).and(strange);
    let err = sessions.answer_json("s", several).await.unwrap_err();
    assert!(
        err.answer_error().is_some_and(|it| it.is_unknown_interrupt())
            && err.to_string().contains(id.as_str()),
        "{err}"
    );
    assert_eq!(sessions.status("s").await.unwrap(), before);
    assert_eq!(sessions.answer_json("s", Answers::none()).await.unwrap().open.len(), 1);

    let recorded = answer(json!(true)).await.unwrap();
    assert!(recorded.open.is_empty() && recorded.holder.is_none());
    assert!(answer(json!(true)).await.unwrap().open.is_empty());
    let err = answer(json!(false)).await.unwrap_err();
    assert!(
        err.answer_error().is_some_and(|it| it.is_conflict())
            && err.answer_error().and_then(|it| it.recorded_answer()) == Some(&json!(true)),
        "{err}"
    );
    // Nothing has run, and the question waits no more.
    let now = sessions.status("s").await.unwrap();
    assert_eq!((now.phase, now.head, now.unread), (Phase::Interrupted, before.head, 1));
    assert!(now.questions.is_empty());
    let inbox = sessions.list_interrupts(&Filter::default(), None, 10).await.unwrap();
    assert!(inbox.rows.is_empty());

    let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.sent, Some(true));
    // Long after: the same is fine, another is not.
    assert!(answer(json!(true)).await.is_ok());
    let err = answer(json!(false)).await.unwrap_err();
    assert!(err.answer_error().and_then(|it| it.recorded_answer()) == Some(&json!(true)), "{err}");
}

#[tokio::test]
async fn a_question_whose_time_is_over_takes_no_answer() {
    let store = MemoryStore::new();
    let harness = Harness::<(), Doc>::builder("doc")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Write => define.run(write).end(),
            Step::Ask => define
                .ask(|_, _| async move { Ok(Send { to: "all".into() }) })
                .answer(|_, _, said| async move { Ok(Doc::update().sent(Some(said.answer))) })
                .expires(Duration::ZERO, Step::Write)
                .end(),
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(store.clone());
    let sessions = Sessions::new(store);
    let outcome = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let id = waiting.questions[0].id.clone();
    let err = sessions.answer_json("s", Answers::json(id, json!(true))).await.unwrap_err();
    assert!(err.answer_error().is_some_and(|it| it.is_expired()), "{err}");
    let ended = agent.resume("s", Answers::none(), ()).await.unwrap().ended().unwrap();
    assert_eq!((ended.state.sent, &ended.state.lines[..]), (None, &["written".to_owned()][..]));
}

#[tokio::test]
async fn a_run_is_stopped_from_elsewhere_and_holds_its_session_until_then() {
    let store = MemoryStore::new();
    let at_work = Arc::new(Notify::new());
    let reached = Arc::clone(&at_work);
    let harness = Harness::<(), Doc>::builder("doc")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => {
                let reached = Arc::clone(&reached);
                define
                    .run(move |_, cx: Cx<()>| {
                        let reached = Arc::clone(&reached);
                        async move {
                            reached.notify_one();
                            cx.cancelled().await;
                            Ok(Doc::update().lines(["finished".into()]))
                        }
                    })
                    .then(Step::Ask)
            }
            Step::Ask => define.run(write).end(),
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(store.clone()).lease(Duration::from_millis(1_500));
    let sessions = Sessions::new(store);
    let run = agent.run(Doc::update(), ()).session("s").start();
    at_work.notified().await;

    assert!(sessions.status("s").await.unwrap().holder.is_some());
    for err in
        [sessions.delete("s").await.unwrap_err(), sessions.prune("s", Seq(9)).await.unwrap_err()]
    {
        assert!(err.is_busy(), "{err}");
    }
    assert!(sessions.stop("s").await.unwrap());
    assert!(sessions.stop("s").await.unwrap(), "asking twice is fine");
    let outcome = run.await.unwrap();
    let Outcome::Stopped(stopped) = outcome else { panic!("{outcome:?}") };
    assert!(!stopped.cancelled && stopped.state.lines == ["finished"]);
    let status = sessions.status("s").await.unwrap();
    assert_eq!((status.phase, status.step.as_str(), status.holder), (Phase::Stopped, "Ask", None));

    assert!(!sessions.stop("s").await.unwrap(), "no run holds it");
    // The stop was for the run before.
    assert!(agent.resume("s", Answers::none(), ()).await.unwrap().ended().is_ok());
    sessions.delete("s").await.unwrap();
    assert!(sessions.status("s").await.unwrap_err().is_not_found());
    assert!(sessions.all(&Filter::default()).await.unwrap().is_empty());
    assert!(sessions.delete("s").await.unwrap_err().is_not_found());
    // The id is free again.
    assert!(agent.resume("s", Answers::none(), ()).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_log_is_read_in_pages_and_pruned() {
    let store = MemoryStore::new();
    let (agent, sessions) = (agent("a", &store), Sessions::new(store));
    run(&agent, "s", "long").await.ended().unwrap();
    let head = sessions.status("s").await.unwrap().head;
    for limit in [1, 7, 1_000] {
        let (mut found, mut from) = (Vec::new(), Seq(0));
        loop {
            let page = sessions.history("s", from, limit).await.unwrap();
            assert!(page.entries.len() <= limit && (page.first, page.head) == (Seq(1), head));
            found.extend(page.entries);
            match page.next {
                Some(next) => from = next,
                None => break,
            }
        }
        let seqs: Vec<u64> = found.iter().map(|(seq, _)| seq.0).collect();
        assert_eq!(seqs, (1..=head.0).collect::<Vec<_>>());
        assert!(matches!(found[0].1.change, Change::Opened(_)));
        assert!(matches!(found[head.0 as usize - 1].1.change, Change::Settled(_)));
    }
    assert!(sessions.history("s", Seq(head.0 + 1), 5).await.unwrap().entries.is_empty());

    let last = sessions.state_at("s", head).await.unwrap();
    assert_eq!(last, sessions.state("s").await.unwrap());
    let first = sessions.prune("s", Seq(20)).await.unwrap();
    assert_eq!(first, Seq(20), "there are snapshots after it");
    let first = sessions.prune("s", Seq(u64::MAX)).await.unwrap();
    assert!(first > Seq(20) && first <= head, "{first}");
    let err = sessions.state_at("s", Seq(first.0 - 1)).await.unwrap_err();
    assert!(err.is_pruned() && err.pruned() == Some(first), "{err}");
    assert!(sessions.history("s", Seq(0), 5).await.unwrap_err().is_pruned());
    assert_eq!(sessions.state_at("s", head).await.unwrap(), last);
    assert_eq!(sessions.status("s").await.unwrap().first, first);
    let again = agent.run(Doc::update(), ()).session("s").await.unwrap();
    assert!(again.ended().is_ok(), "a pruned session can be resumed");
    for (seq, there) in [(Seq(0), false), (Seq(u64::MAX), false), (first, true)] {
        assert_eq!(sessions.state_at("s", seq).await.is_ok(), there, "{seq}");
    }
    let err = sessions.state_at("s", Seq(u64::MAX)).await.unwrap_err();
    assert!(err.is_no_such_entry(), "{err}");
}

#[tokio::test]
async fn ids_may_be_anything_and_are_refused_before_the_store_is_asked() {
    let store = MemoryStore::new();
    let (agent, sessions) = (agent("a", &store), Sessions::new(store));
    let long = "x".repeat(1024);
    let odd = ["../../etc/passwd", "a\0b", "a", " ", "日本/%00", "'; drop table", &long];
    for id in odd {
        assert!(sessions.status(id).await.unwrap_err().is_not_found(), "{id:?}");
        assert!(sessions.stop(id).await.unwrap_err().is_not_found(), "{id:?}");
        assert!(sessions.delete(id).await.unwrap_err().is_not_found(), "{id:?}");
        run(&agent, id, "ask").await;
    }
    let rows = sessions.all(&Filter::default()).await.unwrap();
    assert_eq!(rows.len(), odd.len());
    for id in odd {
        let answer = Answers::json(question(&sessions, id).await, json!(true));
        assert!(sessions.answer_json(id, answer).await.unwrap().open.is_empty());
        assert_eq!(
            sessions.status(SessionId::new(id).unwrap()).await.unwrap().session.as_str(),
            id
        );
        sessions.delete(id).await.unwrap();
        assert!(sessions.status(id).await.unwrap_err().is_not_found());
    }
    for id in ["", &"x".repeat(1025)] {
        let errors = [
            sessions.status(id).await.map(|_| ()),
            sessions.stop(id).await.map(|_| ()),
            sessions.delete(id).await,
            sessions.answer_json(id, Answers::none()).await.map(|_| ()),
            agent.fork(id, Seq(1), "fine").await,
            agent.fork("fine", Seq(1), id).await,
        ];
        assert!(errors.into_iter().all(|it| it.unwrap_err().is_invalid_session_id()));
    }
}

/// Appends what is no entry; says where the sound part of the log ends.
async fn break_log(store: &MemoryStore, session: &str, bytes: &[u8]) -> Seq {
    let id = SessionId::new(session).unwrap();
    let claimed = store.claim(&id, Duration::from_secs(9)).await.unwrap();
    let entries = [NewEntry { bytes, snapshot: false }];
    let batch = Batch { after: claimed.head, entries: &entries, ..Batch::default() };
    store.append(&claimed.lease, batch).await.unwrap();
    store.release(&claimed.lease, InboxSeq(0)).await.unwrap();
    claimed.head
}

#[tokio::test]
async fn a_damaged_session_is_reported_and_hides_no_other() {
    let store = MemoryStore::new();
    let (agent, sessions) = (agent("a", &store), Sessions::new(store.clone()));
    for id in ["one", "three", "two"] {
        run(&agent, id, "ask").await;
    }
    let id = SessionId::new("three").unwrap();
    let head = break_log(&store, "three", br#"{"t":1,"commit":{"n":"secret"#).await;

    for err in [
        sessions.status("three").await.unwrap_err(),
        sessions.state("three").await.unwrap_err(),
        sessions.history("three", Seq(0), 99).await.unwrap_err(),
        sessions.answer_json("three", Answers::none()).await.unwrap_err(),
    ] {
        assert!(err.is_damaged(), "{err}");
        assert_eq!(err.replay_error().unwrap().seq(), Some(head.next()));
        assert!(!format!("{err} {err:?}").contains("secret"));
    }
    // What is before the damage can be read.
    assert!(sessions.state_at("three", head).await.is_ok());
    assert_eq!(sessions.all(&Filter::default()).await.unwrap().len(), 3);
    assert!(sessions.status("two").await.is_ok());
    let inbox = sessions.list_interrupts(&Filter::default(), None, 10).await.unwrap();
    let waiting: Vec<_> = inbox.rows.iter().map(|row| row.session.as_str()).collect();
    assert_eq!(waiting, ["one", "two"]);
    assert!(inbox.unreadable.len() == 1 && inbox.unreadable[0].0 == id);
    assert!(inbox.unreadable[0].1.is_damaged());
    sessions.delete("three").await.unwrap();

    // What a newer version wrote is not damaged, and cannot be read either.
    break_log(&store, "two", br#"{"t":1,"hologram":{}}"#).await;
    let err = sessions.status("two").await.unwrap_err();
    assert!(!err.is_damaged() && err.replay_error().unwrap().is_newer(), "{err}");
    let inbox = sessions.list_interrupts(&Filter::default(), None, 10).await.unwrap();
    assert_eq!((inbox.rows.len(), inbox.unreadable.len()), (1, 1));
    assert_eq!(sessions.all(&Filter::default()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn errors_show_no_control_characters_of_an_id() {
    let sessions = Sessions::new(MemoryStore::new());
    let error = sessions.status("a\u{1b}[2J\nb").await.unwrap_err();
    assert_eq!(error.to_string(), "no session `a\\u{1b}[2J\\nb` in the store");
}
