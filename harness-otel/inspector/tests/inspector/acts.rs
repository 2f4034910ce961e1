//! What a user does.

use std::sync::Arc;
use std::time::Duration;

use harness::inspect::Phase;
use harness::loops::Conversation;
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::testing::{Call, Faulty};
use harness::{Seq, Sessions};

use super::rig::{Got, Rig, waiting};

fn answer<'f>(page: &'f Form, more: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    let fields = [("token", &*page.token), ("id", "t-1"), ("interrupt", &*page.interrupt)];
    fields.into_iter().chain(more.iter().copied()).collect()
}

struct Form {
    token: String,
    interrupt: String,
}

impl Form {
    fn of(page: &Got) -> Self {
        Self { token: page.hidden("token"), interrupt: page.hidden("interrupt") }
    }
}

#[tokio::test]
async fn an_approval_with_edited_arguments_is_applied() {
    let rig = Rig::new().await;
    let agent = waiting(&rig, "t-1").await;
    let page = rig.get("/session?id=t-1").await;
    // The arguments that were asked about can be edited, and nothing is chosen.
    assert!(page.body.contains("o-7") && page.body.contains("value=\"1250\""), "{}", page.body);
    assert!(!page.body.contains(" checked"), "{}", page.body);
    let form = Form::of(&page);
    let edited = [
        ("by", "ada"),
        ("a?", "0"),
        ("a/0/approve/edited?", "on"),
        ("a/0/approve/edited/order", "o-7"),
        ("a/0/approve/edited/cents", "500"),
    ];
    let got = rig.post("/session/answer", &answer(&form, &edited)).await;
    assert_eq!(got.status, 303, "{}", got.body);
    let shown = rig.get(got.header("location").unwrap()).await;
    let recorded = "The answer is recorded. A process of the agent applies it.";
    assert!(shown.body.contains(recorded), "{}", shown.body);

    let ended = agent.resume("t-1", Answers::none(), ()).await.unwrap().ended().unwrap();
    let said = ended.state.answer().unwrap();
    assert!(said.ends_with("paid 500 cents for o-7"), "{said}");
    let shown = rig.get("/session?id=t-1&done=answered").await;
    assert!(shown.body.contains("answered by ada"), "{}", shown.body);
    assert!(!shown.body.contains(recorded), "{}", shown.body);
    assert!(shown.body.contains("a process of the agent has read it"), "{}", shown.body);
}

#[tokio::test]
async fn an_answer_that_is_not_understood_is_asked_for_again() {
    let rig = Rig::new().await;
    waiting(&rig, "t-1").await;
    let form = Form::of(&rig.get("/session?id=t-1").await);
    let wrong = [
        ("by", "ada"),
        ("a?", "0"),
        ("a/0/approve/edited?", "on"),
        ("a/0/approve/edited/order", "o-8"),
        ("a/0/approve/edited/cents", "many"),
    ];
    let got = rig.post("/session/answer", &answer(&form, &wrong)).await;
    assert_eq!(got.status, 422);
    assert!(got.body.contains("is not a whole number"), "{}", got.body);
    assert!(got.body.contains("o-8") && got.body.contains("value=\"ada\""), "what was typed stays");
    // Nothing is approved by leaving it out.
    let got = rig.post("/session/answer", &answer(&form, &[("by", "ada")])).await;
    assert_eq!(got.status, 422);
    let steer = [("by", "ada"), ("a?", "2"), ("a/2/steer/text", "")];
    let got = rig.post("/session/answer", &answer(&form, &steer)).await;
    assert_eq!(got.status, 422, "the schema wants a text");
    let status = Sessions::shared(Arc::clone(&rig.store)).status("t-1").await.unwrap();
    assert_eq!(status.questions.len(), 1);
}

#[tokio::test]
async fn the_second_of_two_people_learns_of_the_first() {
    let rig = Rig::new().await;
    waiting(&rig, "t-1").await;
    let (ada, sam) =
        (Form::of(&rig.get("/session?id=t-1").await), Form::of(&rig.get("/session?id=t-1").await));
    let no = [("by", "sam"), ("a?", "1"), ("a/1/reject/message", "never paid")];
    let (yes, no) = (answer(&ada, &[("by", "ada"), ("a?", "0")]), answer(&sam, &no));
    let (one, other) =
        tokio::join!(rig.post("/session/answer", &yes), rig.post("/session/answer", &no));
    let mut got = [one.status, other.status];
    got.sort_unstable();
    assert_eq!(got, [303, 409]);
    let refused = if one.status == 409 { one } else { other };
    assert!(refused.body.contains("Another answer was first"), "{}", refused.body);
    assert!(refused.body.contains("The answer that counts"), "{}", refused.body);
}

#[tokio::test]
async fn a_page_that_is_out_of_date_changes_nothing() {
    let rig = Rig::new().await;
    let agent = waiting(&rig, "t-1").await;
    let form = Form::of(&rig.get("/session?id=t-1").await);
    let yes = [("by", "ada"), ("a?", "0")];
    assert_eq!(rig.post("/session/answer", &answer(&form, &yes)).await.status, 303);
    agent.resume("t-1", Answers::none(), ()).await.unwrap().ended().unwrap();
    let no = [("by", "sam"), ("a?", "1")];
    let got = rig.post("/session/answer", &answer(&form, &no)).await;
    assert_eq!(got.status, 409, "{}", got.body);
    let gone = [("token", &*form.token), ("id", "t-1"), ("interrupt", "none"), ("by", "x")];
    assert_eq!(rig.post("/session/answer", &gone).await.status, 409);

    let edit = |head: &'static str, value: &'static str| {
        let token = form.token.clone();
        let rig = rig.clone();
        async move {
            let fields = [
                ("token", &*token),
                ("id", "t-1"),
                ("head", head),
                ("field", "talk"),
                ("value", value),
                ("why", "a test"),
                ("by", "ada"),
            ];
            rig.post("/session/edit", &fields).await
        }
    };
    let got = edit("1", "[]").await;
    assert_eq!(got.status, 409);
    assert!(got.body.contains("has changed since entry 1"), "{}", got.body);
    let sessions = Sessions::shared(Arc::clone(&rig.store));
    let head = sessions.status("t-1").await.unwrap().head;
    let head: &'static str = Box::leak(head.to_string().into_boxed_str());
    assert_eq!(edit(head, "7").await.status, 422, "a list stays a list");
    assert_eq!(edit(head, "[]").await.status, 303);
    assert_eq!(sessions.state("t-1").await.unwrap()["talk"], serde_json::json!([]));
    let page = rig.get("/session?id=t-1").await;
    assert!(page.body.contains("ada edited the state: a test"), "{}", page.body);
}

#[tokio::test]
async fn a_field_is_corrected_from_its_present_value() {
    let rig = Rig::new().await;
    waiting(&rig, "t-1").await;
    let operate = rig.get("/session?id=t-1").await.body;
    assert!(operate.contains("action=\"/session/edit\"") && operate.contains("Show its value"));
    assert!(operate.contains("value=\"t-1-fork\""), "{operate}");
    let page = rig.get("/session/edit?id=t-1&field=talk").await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("o-7 is &lt;b&gt;broken&lt;/b&gt;"), "{}", page.body);
    let (token, head) = (page.hidden("token"), page.hidden("head"));
    let edit = async |value: &str| {
        let fields = [
            ("token", &*token),
            ("id", "t-1"),
            ("head", &*head),
            ("field", "talk"),
            ("value", value),
            ("why", "it was <i>wrong"),
            ("by", "ada"),
        ];
        rig.post("/session/edit", &fields).await
    };
    // What was typed stays, with what is wrong with it.
    for (value, said) in [("[<u", "The value is not JSON"), ("{\"u\": 7}", "a list")] {
        let got = edit(value).await;
        assert_eq!(got.status, 422, "{}", got.body);
        for kept in
            [said, &value.replace('<', "&lt;").replace('"', "&quot;"), "it was &lt;i&gt;wrong"]
        {
            assert!(got.body.contains(kept), "{kept}: {}", got.body);
        }
        assert!(got.body.contains("value=\"ada\""), "{}", got.body);
    }
    assert_eq!(edit("[]").await.status, 303);
    // Another editor has seen what is no longer so.
    assert_eq!(edit("[]").await.status, 409);

    assert_eq!(rig.get("/session/edit?id=t-1&field=none").await.status, 404);
    assert_eq!(rig.get("/session/edit?id=none&field=talk").await.status, 404);
    let reading = Rig::over(Arc::clone(&rig.store), |it| it).await;
    assert_eq!(reading.get("/session/edit?id=t-1&field=talk").await.status, 403);
}

#[tokio::test]
async fn a_session_is_forked_and_gets_an_input() {
    let rig = Rig::new().await;
    let agent = waiting(&rig, "t-1").await;
    let token = rig.get("/session?id=t-1").await.hidden("token");
    let sessions = Sessions::shared(Arc::clone(&rig.store));
    let head = sessions.status("t-1").await.unwrap().head.to_string();
    let fork = [("token", &*token), ("id", "t-1"), ("seq", &head), ("to", "t-2")];
    let got = rig.post("/session/fork", &fork).await;
    assert_eq!(got.status, 303, "{}", got.body);
    assert_eq!(rig.post("/session/fork", &fork).await.status, 409, "it exists");
    let inside = [("token", &*token), ("id", "t-1"), ("seq", "1"), ("to", "t-3")];
    assert_eq!(rig.post("/session/fork", &inside).await.status, 422, "no commit ends there");
    let fork = sessions.status("t-2").await.unwrap();
    assert_eq!((fork.phase, fork.questions.len()), (Phase::Interrupted, 1));
    assert_ne!(fork.questions[0].id, sessions.status("t-1").await.unwrap().questions[0].id);

    let answers = Answers::json(fork.questions[0].id.clone(), serde_json::json!({"reject": {}}));
    agent.resume("t-2", answers, ()).await.unwrap().ended().unwrap();
    let update = r#"{"talk": [{"user": [{"text": "and o-9?"}]}]}"#;
    let input = [("token", &*token), ("id", "t-2"), ("update", update)];
    let got = rig.post("/session/input", &input).await;
    assert_eq!(got.status, 303, "{}", got.body);
    assert_eq!(sessions.status("t-2").await.unwrap().unread, 1);
    let none = [("token", &*token), ("id", "none"), ("update", "{}")];
    assert_eq!(rig.post("/session/input", &none).await.status, 404);
    let stop = [("token", &*token), ("id", "t-2")];
    let got = rig.post("/session/stop", &stop).await;
    assert!(got.header("location").unwrap().contains("done=idle"), "{}", got.head);
}

#[tokio::test]
async fn the_page_of_a_session_gets_each_change() {
    let rig = Rig::new().await;
    let agent = waiting(&rig, "t-1").await;
    let sessions = Sessions::shared(Arc::clone(&rig.store));
    let mut events = rig.events("t-1").await;
    let head = sessions.status("t-1").await.unwrap().head;
    assert_eq!(Seq(events.head().await), head);
    let asked = sessions.status("t-1").await.unwrap().questions[0].id.clone();
    let answers = Answers::json(asked, serde_json::json!({"approve": {}}));
    agent.resume("t-1", answers, ()).await.unwrap().ended().unwrap();
    let end = sessions.status("t-1").await.unwrap().head;
    while Seq(events.head().await) < end {}
}

#[tokio::test]
async fn a_page_that_is_closed_costs_nothing_more() {
    let store = Arc::new(Faulty::new(MemoryStore::new()));
    let rig = Rig::over(store.clone(), |it| it).await;
    waiting(&rig, "t-1").await;
    let mut events = rig.events("t-1").await;
    events.head().await;
    tokio::time::pause();
    // Whether the store was read while time passed.
    let is_read = async || {
        let before = store.faults().calls(Call::Read);
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            tokio::task::yield_now().await;
        }
        store.faults().calls(Call::Read) > before
    };
    assert!(is_read().await);
    drop(events);
    for _ in 0..10_000 {
        if !is_read().await {
            return;
        }
    }
    panic!("the events of a closed page have no end");
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Work {
    #[state(reduce = add)]
    rounds: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Round,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    Enough,
}

#[tokio::test]
async fn a_run_at_work_is_stopped_at_its_next_boundary() {
    let rig = Rig::new().await;
    let (entered, mut enters) = tokio::sync::mpsc::unbounded_channel();
    let gate = tokio::sync::watch::Sender::new(false);
    let opens = gate.clone();
    let round = move |_: View<Work>, _: Cx<()>| {
        let (entered, mut open) = (entered.clone(), opens.subscribe());
        async move {
            entered.send(()).map_err(StepError::fatal)?;
            open.wait_for(|open| *open).await.map_err(StepError::fatal)?;
            tokio::task::yield_now().await;
            Ok(Work::update().rounds(1))
        }
    };
    let agent = Harness::<(), Work>::builder("rounds")
        .start(Step::Round)
        .steps(move |define, step| match step {
            Step::Round => define.run(round.clone()).route(
                |work: &Work| if work.rounds < u32::MAX { Next::Again } else { Next::Enough },
                |next| match next {
                    Next::Again => to(Step::Round),
                    Next::Enough => end(),
                },
            ),
        })
        .budget(Budget::unbounded("the test stops it"))
        .build()
        .unwrap()
        .agent("rounds", ())
        .shared_store(Arc::clone(&rig.store));
    let running = tokio::spawn(agent.run(Work::update(), ()).session("w-1").into_future());
    enters.recv().await.unwrap();

    let page = rig.get("/session?id=w-1").await;
    assert!(page.body.contains("Stop at the next boundary"), "{}", page.body);
    assert!(page.body.contains("class=\"node current phase-running\""), "{}", page.body);
    let stop = [("token", &*page.hidden("token")), ("id", "w-1")];
    let got = rig.post("/session/stop", &stop).await;
    assert_eq!(got.status, 303, "{}", got.body);
    let shown = rig.get(got.header("location").unwrap()).await;
    assert!(shown.body.contains("asked to stop at its next boundary"), "{}", shown.body);
    gate.send_replace(true);
    let Outcome::Stopped(stopped) = running.await.unwrap().unwrap() else { panic!("it continues") };
    assert!(stopped.state.rounds > 0);
    let shown = rig.get("/session?id=w-1").await;
    assert!(!shown.body.contains("Stop at the next boundary"), "{}", shown.body);
}

#[tokio::test]
async fn the_page_of_a_parent_leads_to_the_child_that_asks() {
    let rig = Rig::new().await;
    let child = super::rig::support(Arc::clone(&rig.store));
    let agent = Harness::<(), Work>::builder("desk")
        .start(Step::Round)
        .steps(move |define, step| match step {
            Step::Round => {
                let child = child.clone();
                define
                    .run(move |_: View<Work>, cx: Cx<()>| {
                        let child = child.clone();
                        async move {
                            cx.call(&child, Conversation::say("o-7 is broken"), ()).await?;
                            Ok(Work::update().rounds(1))
                        }
                    })
                    .end()
            }
        })
        .build()
        .unwrap()
        .agent("desk", ())
        .shared_store(Arc::clone(&rig.store));
    let outcome = agent.run(Work::update(), ()).session("d-1").await.unwrap();
    assert!(matches!(outcome, Outcome::Waiting(_)), "{outcome:?}");
    let sessions = Sessions::shared(Arc::clone(&rig.store));
    let child = sessions.status("d-1").await.unwrap().children[0].session.to_string();
    let page = rig.get("/session?id=d-1").await;
    assert!(page.body.contains("Sessions that it waits for"), "{}", page.body);
    assert!(page.body.contains(&format!("/session?id={child}")), "{}", page.body);

    // The question is the child's, and the answer is given on its page.
    let page = rig.get(&format!("/session?id={child}")).await;
    let (token, interrupt) = (page.hidden("token"), page.hidden("interrupt"));
    let yes = [
        ("token", &*token),
        ("id", &*child),
        ("interrupt", &*interrupt),
        ("by", "ada"),
        ("a?", "0"),
    ];
    assert_eq!(rig.post("/session/answer", &yes).await.status, 303);
    agent.resume("d-1", Answers::none(), ()).await.unwrap().ended().unwrap();
    let page = rig.get("/session?id=d-1").await;
    assert!(!page.body.contains("Sessions that it waits for"), "{}", page.body);
}
