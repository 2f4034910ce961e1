//! Sessions and their ids.

use harness::{SessionId, id::MAX_SESSION_ID};

use crate::common::*;

fn gate() -> Bench {
    only(|define| {
        define
            .run(async |_, cx| {
                let said = cx.ask("k", may("go")).await?;
                Ok(line(format!("{said} in {} by {}", cx.session_id(), cx.agent_id())))
            })
            .end()
    })
}

#[tokio::test]
async fn without_an_id_a_session_gets_a_fresh_one() {
    let bench = gate();
    let (one, two) = (interrupted(bench.run().await), interrupted(bench.run().await));
    assert_ne!(one.session, two.session);
    assert_ne!(one.run, two.run);
}

#[tokio::test]
async fn the_id_given_is_the_sessions_in_outcomes_events_and_steps() {
    let bench = gate();
    let id = "../../customer 7 \u{65e5}";
    let waiting = bench.agent.run(Log::update(), ()).session(id).await.unwrap();
    assert_eq!(waiting.session().as_str(), id);
    let waiting = interrupted(waiting);
    assert_eq!(waiting.session.as_str(), id);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    assert_eq!(out.session.as_str(), id);
    assert_ne!(out.run, waiting.run, "each advance is a run of its own");
    assert_eq!(out.state.lines, [format!("true in {id} by bench")]);
    assert!(bench.seen.events().iter().all(|event| event.session.as_str() == id));
}

#[tokio::test]
async fn an_illegal_id_is_refused_before_anything_runs() {
    let bench = gate();
    for id in [String::new(), "x".repeat(MAX_SESSION_ID + 1)] {
        let request = || bench.agent.run(Log::update(), ()).session(id.clone());
        let refused = request().await.unwrap_err();
        assert!(refused.is_invalid_session_id(), "{refused}");
        let mut run = request().start();
        assert!(run.events().next().await.is_none());
        let refused = run.await.unwrap_err();
        assert!(refused.is_invalid_session_id(), "{refused}");
        let refused = bench.agent.resume(&*id, Answers::none(), ()).await.unwrap_err();
        assert!(refused.is_invalid_session_id(), "{refused}");
    }
    assert!(bench.seen.events().is_empty());
    let longest = "x".repeat(MAX_SESSION_ID);
    let waiting = bench.agent.run(Log::update(), ()).session(longest.clone()).await.unwrap();
    assert_eq!(waiting.session(), &SessionId::new(longest).unwrap());
}

#[tokio::test]
async fn a_resumed_session_keeps_its_id() {
    for other in ["s-2", ""] {
        let bench = gate();
        let request = bench.agent.run(Log::update(), ()).session("s-1");
        let waiting = interrupted(request.await.unwrap());
        let answers = waiting.pending::<May>().unwrap().answer(true);
        let out = bench.agent.resume(&waiting, answers, ()).session(other).await.unwrap();
        let out = ended(out);
        assert_eq!(out.session.as_str(), "s-1");
        assert_eq!(out.state.lines, ["true in s-1 by bench"]);
        assert!(bench.seen.events().iter().all(|event| event.session.as_str() == "s-1"));
    }
}

#[tokio::test]
async fn a_request_does_nothing_until_it_is_awaited() {
    let bench = only(|define| define.run(async |_, cx| Ok(line(cx.step()))).end());
    drop(bench.agent.run(Log::update(), ()));
    assert!(bench.seen.events().is_empty());
    let mut run = bench.agent.run(Log::update(), ()).start();
    let id = run.run_id().clone();
    assert_eq!(run.control().run_id(), &id);
    let out = ended((&mut run).await.unwrap());
    assert_eq!(out.run, id);
    assert_eq!(out.state.lines, ["Work"]);
}

#[tokio::test]
async fn a_session_is_resumed_by_its_outcome_or_by_any_form_of_its_id() {
    let bench = gate();
    let asked = bench.run().await;
    let answers = |outcome: &Outcome<Log>| {
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        waiting.pending::<May>().unwrap().answer(true)
    };
    let said = answers(&asked);
    let over = bench.agent.resume(&asked, said, ()).await.unwrap();
    let refused = bench.agent.resume(&over, Answers::none(), ()).await.unwrap_err();
    assert!(refused.is_not_waiting(), "{refused}");

    let agent = bench.agent.clone().store(harness::store::MemoryStore::new());
    for form in 0..4 {
        let asked = agent.run(Log::update(), ()).await.unwrap();
        let (said, id) = (answers(&asked), asked.session().clone());
        let text = id.to_string();
        let resumed = match form {
            0 => agent.resume(&text, said, ()),
            1 => agent.resume(text, said, ()),
            2 => agent.resume(id.clone(), said, ()),
            _ => agent.resume(&asked, said, ()),
        };
        let over = resumed.await.unwrap();
        let refused = agent.resume(&over, Answers::none(), ()).await.unwrap_err();
        assert!(refused.is_not_waiting(), "{refused}");
    }
}
