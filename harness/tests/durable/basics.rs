use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Durability, Outcome};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Talk {
    #[state(reduce = append)]
    said: Vec<String>,
    #[state(reduce = add)]
    turns: u32,
    sent: Option<bool>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Think,
    Ask,
    Close,
}

async fn think(talk: View<Talk>, cx: Cx<()>) -> StepResult<Talk> {
    let n = talk.said.len();
    let charged = cx.once("charge", async move || Ok(n)).await?;
    Ok(Talk::update().said([format!("thought {charged}")]))
}

async fn close(_: View<Talk>, _: Cx<()>) -> StepResult<Talk> {
    Ok(Talk::update().turns(1))
}

fn harness() -> Harness<(), Talk> {
    Harness::<(), Talk>::builder("talk")
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define.run(think).then(Step::Ask),
            Step::Ask => define
                .ask(|talk: View<Talk>, _cx| async move { Ok(Send { text: talk.said.join(" ") }) })
                .answer(|_talk, _cx, said| async move {
                    Ok(Talk::update().sent(Some(said.answer)).said([format!("{:?}", said.by)]))
                })
                .then(Step::Close),
            Step::Close => define.run(close).end(),
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_session_resumes_by_its_id_alone() {
    for durability in [Durability::Step, Durability::Relaxed, Durability::Settle] {
        let store = MemoryStore::new();
        let agent = || harness().agent("talker", ()).store(store.clone()).durability(durability);
        let outcome = agent().run(Talk::update().said(["hi".into()]), ()).session("s").await;
        let Outcome::Interrupted(waiting) = outcome.unwrap() else { panic!() };
        assert!(waiting.durable);
        let question = waiting.pending::<Send>().unwrap();
        assert_eq!(question.question.text, "hi thought 1");
        let err = agent().run(Talk::update(), ()).session("s").await.unwrap_err();
        assert!(err.is_pending_interrupt(), "{err}");
        let ended = agent().resume("s", question.answer(true).by("sam"), ()).await.unwrap();
        let ended = ended.ended().unwrap();
        assert_eq!(ended.state.said, ["hi", "thought 1", "Some(\"sam\")"]);
        assert_eq!((ended.state.turns, ended.state.sent, ended.steps), (1, Some(true), 3));
        // The same answer again: what came of it.
        let again = agent().resume("s", question.answer(true), ()).await.unwrap().ended().unwrap();
        assert_eq!(again.state, ended.state);
        let err = agent().resume("s", question.answer(false), ()).await.unwrap_err();
        assert!(
            err.answer_error().is_some_and(|it| it.is_conflict())
                && err.answer_error().and_then(|it| it.recorded_answer()) == Some(&true.into()),
            "{err}"
        );
        assert!(agent().resume("s", Answers::none(), ()).await.unwrap_err().is_not_waiting());
        // The next turn.
        let outcome = agent().run(Talk::update().said(["more".into()]), ()).session("s").await;
        let Outcome::Interrupted(waiting) = outcome.unwrap() else { panic!() };
        let next = waiting.pending::<Send>().unwrap();
        assert_ne!(next.id, question.id);
        let ended =
            agent().resume(&waiting, next.answer(false), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.turns, 2);
        assert!(agent().resume("t", Answers::none(), ()).await.unwrap_err().is_not_found());
    }
}
