//! Gates, and the check of their answers.

use serde_json::json;

use crate::common::*;

fn gate() -> Bench {
    two(
        |define| {
            define
                .ask(async |log, cx| {
                    cx.probe.hit("asked");
                    tokio::task::yield_now().await;
                    Ok(may(format!("go {}", log.n)))
                })
                .answer(async |_, cx, said| {
                    cx.probe.hit("answered");
                    tokio::task::yield_now().await;
                    let by = said.by.unwrap_or_default();
                    Ok(line(format!("{}: {} by {by}", said.question.what, said.answer)))
                })
                .then(Two::Second)
        },
        |define| define.run(async |_, _| Ok(line("after"))).end(),
    )
}

#[tokio::test]
async fn a_gate_interrupts_and_neither_half_runs_again() {
    let bench = gate();
    let waiting = interrupted(bench.agent.run(Log::update().n(3), ()).await.unwrap());
    assert!(!waiting.durable);
    let [question] = &waiting.questions[..] else { panic!("{waiting:?}") };
    assert_eq!((&*question.name, &*question.step), ("may", "First"));
    assert_eq!((question.position.0, question.key.as_deref()), (1, None));
    assert_eq!(question.question, json!({"what": "go 3"}));
    assert_eq!(question.answer_schema["type"], "boolean");
    assert_eq!(bench.probe.hits(), ["asked"]);
    let pending = waiting.pending::<May>().unwrap();
    assert_eq!(pending.question, may("go 3"));
    let resumed = waiting.resume(pending.answer(true).by("sam"), ()).await.unwrap();
    assert_eq!(ended(resumed).state.lines, ["go 3: true by sam", "after"]);
    assert_eq!(bench.probe.hits(), ["asked", "answered"]);
    assert_eq!(
        bench.log(),
        [
            "run started",
            "First#1 started",
            "First#1 asked may",
            "run interrupted",
            "run resumed",
            "answered by sam",
            "First#1 (attempt 2) started",
            "First#1 (attempt 2) committed -> Second",
            "Second#2 started",
            "Second#2 committed -> end",
            "run ended",
        ]
    );
}

#[tokio::test]
async fn an_answer_may_come_as_json_by_the_questions_id() {
    let bench = gate();
    let waiting = interrupted(bench.run().await);
    let answers = Answers::json(waiting.questions[0].id.as_str(), json!(false));
    let out = ended(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    assert_eq!(out.state.lines, ["go 0: false by ", "after"]);
}

#[tokio::test]
async fn a_failing_half_is_tried_again_and_the_other_is_not() {
    let bench = only(|define| {
        define
            .ask(async |_, cx| match cx.probe.hit("ask") {
                1 => Err(Oops("no"))?,
                _ => Ok(may("go")),
            })
            .answer(async |_, cx, said| match cx.probe.hit("answer") {
                1 => Err(Oops("no"))?,
                2 => Err(Oops("never")).fatal(),
                _ => Ok(line(said.answer.to_string())),
            })
            .retry(Retry::every(std::time::Duration::ZERO))
            .end()
    });
    let waiting = interrupted(bench.run().await);
    let answers = waiting.pending::<May>().unwrap().answer(true);
    let out = failed(bench.agent.resume(&waiting, answers, ()).await.unwrap());
    // The answer holds, though its half failed.
    let out = ended(bench.agent.resume(&out, Answers::none(), ()).await.unwrap());
    assert_eq!(out.state.lines, ["true"]);
    assert_eq!(bench.probe.hits(), ["ask", "ask", "answer", "answer", "answer"]);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused_and_changes_nothing() {
    let bench = gate();
    let waiting = interrupted(bench.run().await);
    let id = waiting.questions[0].id.clone();
    let yes = || waiting.pending::<May>().unwrap().answer(true);
    bench.seen.clear();
    let refuse = async |answers: Answers| {
        let refused = bench.agent.resume(&waiting, answers, ()).await.unwrap_err();
        assert!(bench.seen.events().is_empty(), "{:?}", bench.seen.lines());
        refused
    };

    let ill_typed = refuse(Answers::json(id.as_str(), json!("yes"))).await;
    assert!(ill_typed.answer_error().is_some_and(|it| it.is_wrong_answer()), "{ill_typed}");
    assert!(ill_typed.to_string().contains("expected a boolean"), "{ill_typed}");

    // A typed answer knows which question it is for.
    let other =
        only(|define| define.run(async |_, cx| Ok(line(cx.ask("k", Name {}).await?))).end());
    let named = interrupted(other.run().await);
    let answer = named.pending::<Name>().unwrap().answer("true".into());
    let unknown = refuse(answer).await;
    assert!(unknown.answer_error().is_some_and(|it| it.is_unknown_interrupt()), "{unknown}");
    assert!(unknown.to_string().contains(id.as_str()), "names the open one: {unknown}");
    let mut pending = named.pending::<Name>().unwrap();
    pending.id = id.clone();
    let another = refuse(pending.answer("true".into())).await;
    assert!(another.answer_error().is_some_and(|it| it.is_wrong_answer()), "{another}");
    assert!(another.to_string().contains("`name`"), "{another}");
    assert!(another.to_string().contains("`may`"), "{another}");

    let unknown = refuse(yes().and(Answers::json("1-0", json!(true)))).await;
    assert!(unknown.answer_error().is_some_and(|it| it.is_unknown_interrupt()), "{unknown}");
    let conflict = refuse(yes().and(Answers::json(id.as_str(), json!(false)))).await;
    assert!(conflict.answer_error().is_some_and(|it| it.is_conflict()), "{conflict}");

    let slots = waiting.resume(yes(), "not the slots").await.unwrap_err();
    assert!(slots.is_wrong_slots(), "{slots}");
    assert!(slots.to_string().contains("`bench`") && slots.to_string().contains("&str"), "{slots}");
    for text in [waiting.session.as_str(), "unheard of"] {
        let no_store = bench.agent.resume(text, yes(), ()).await.unwrap_err();
        assert!(no_store.is_no_store(), "{no_store}");
    }
    let no_store = bench.agent.resume(&waiting.session, yes(), ()).start().await.unwrap_err();
    assert!(no_store.is_no_store(), "{no_store}");
    assert_eq!(bench.probe.hits(), ["asked"]);

    // The same answer twice is one answer, and it is applied.
    let out = bench.agent.resume(&waiting, yes().and(yes()), ()).await.unwrap();
    assert_eq!(ended(out).state.lines[0], "go 0: true by ");
    assert_eq!(bench.log().iter().filter(|line| *line == "answered").count(), 1);
}

#[tokio::test]
async fn a_session_that_is_not_at_rest_is_not_resumed() {
    let bench = gate();
    let waiting = interrupted(bench.run().await);
    let yes = || waiting.pending::<May>().unwrap().answer(true);
    let mut run = std::pin::pin!(bench.agent.resume(&waiting, yes(), ()).into_future());
    // The run has begun, and waits in the second half.
    assert!(futures_util::FutureExt::now_or_never(&mut run).is_none());
    let running = bench.agent.resume(&waiting, yes(), ()).await.unwrap_err();
    assert!(running.is_not_at_rest(), "{running}");
    ended(run.await.unwrap());
    let over = bench.agent.resume(&waiting, yes(), ()).await.unwrap_err();
    assert!(over.is_not_at_rest(), "{over}");
    assert!(over.to_string().contains(waiting.session.as_str()), "{over}");
    assert_eq!(bench.probe.hits(), ["asked", "answered"]);
}

#[tokio::test]
async fn a_resume_without_the_answer_settles_as_interrupted_again() {
    let bench = gate();
    let waiting = interrupted(bench.run().await);
    let again = interrupted(bench.agent.resume(&waiting, Answers::none(), ()).await.unwrap());
    assert_eq!(again.questions, waiting.questions);
    assert_eq!(bench.probe.hits(), ["asked"]);
    // The session rests in the later outcome now.
    let yes = again.pending::<May>().unwrap().answer(true);
    let stale = bench.agent.resume(&waiting, yes.clone(), ()).await.unwrap_err();
    assert!(stale.is_not_at_rest(), "{stale}");
    ended(bench.agent.resume(&again, yes, ()).await.unwrap());
}

#[tokio::test]
async fn a_question_is_not_read_as_another() {
    let bench = gate();
    let waiting = interrupted(bench.run().await);
    let wrong = waiting.pending::<Name>().unwrap_err();
    assert!(wrong.to_string().contains("`name`") && wrong.to_string().contains("`may`"), "{wrong}");
}

#[tokio::test]
async fn an_outcome_that_did_not_end_reports_how_it_settled() {
    let bench = gate();
    let not_ended = bench.run().await.ended().unwrap_err();
    assert!(not_ended.to_string().contains("waits for an answer to `may`"), "{not_ended}");
    let waiting = interrupted(not_ended.into_outcome());
    let yes = waiting.pending::<May>().unwrap().answer(true);
    assert!(bench.agent.resume(&waiting, yes, ()).await.unwrap().ended().is_ok());
}
