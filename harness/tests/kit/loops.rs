//! Whole loops.

use harness::observe::EventKind;
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::testing::{self, Call, Faulty};
use harness::{Agent, Outcome};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Report {
    pages: Vec<String>,
    #[state(reduce = append)]
    read: Vec<String>,
    verdict: Option<Verdict>,
    title: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
enum Verdict {
    Good,
    Bad,
}

#[derive(Question, Serialize, Deserialize, Debug, PartialEq)]
#[question(answer = Verdict)]
struct Review {
    pages: usize,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct Title;

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct May {
    page: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Read,
    Review,
    Name,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Done,
    Again,
}

#[derive(Debug, PartialEq, Serialize)]
struct Named;

async fn pages(report: View<Report>, _: Cx<()>) -> Result<Vec<String>, StepError> {
    Ok(report.pages.clone())
}

async fn read(page: String, _: View<Report>, cx: Cx<()>) -> Result<String, StepError> {
    let may = cx.ask("may", May { page: page.clone() }).await?;
    Ok(if may { page.to_uppercase() } else { "-".to_owned() })
}

async fn name(_: View<Report>, cx: Cx<()>) -> StepResult<Report> {
    let title = cx.ask("title", Title).await?;
    cx.emit(Named);
    Ok(Report::update().title(title))
}

fn next(report: &Report) -> Next {
    if report.verdict == Some(Verdict::Good) { Next::Done } else { Next::Again }
}

fn harness() -> Harness<(), Report> {
    Harness::builder("reports")
        .start(Step::Name)
        .steps(|define, step| match step {
            Step::Name => define.run(name).then(Step::Read),
            Step::Read => define
                .each(pages)
                .run(read)
                .fold(|_, read| Ok(Report::update().read(read)))
                .then(Step::Review),
            Step::Review => define
                .ask(|report, _| async move { Ok(Review { pages: report.read.len() }) })
                .answer(|_, _, said| async move { Ok(Report::update().verdict(said.answer)) })
                .route(next, |next| match next {
                    Next::Done => end(),
                    Next::Again => to(Step::Read),
                }),
        })
        .build()
        .unwrap()
}

/// Without a store and with one.
fn both() -> [Agent<(), Report>; 2] {
    let agent = harness().agent("a", ());
    [agent.clone(), agent.store(MemoryStore::new())]
}

fn input() -> <Report as State>::Update {
    Report::update().pages(vec!["a".to_owned(), "b".to_owned()])
}

#[tokio::test]
async fn a_loop_is_resumed_until_it_settles() {
    for agent in both() {
        let tested = testing::run(&agent, input())
            .answer("title", "A report")
            .answer_item(1, "may", false)
            .answer(Step::Review, Verdict::Bad)
            .answer("Review", Verdict::Good)
            .answer_all(|ask: May| ask.page == "a" || ask.page == "b")
            .await
            .unwrap();
        assert_eq!(tested.steps(), ["Name", "Read", "Review", "Read", "Review"]);
        assert_eq!(tested.steps_as::<Step>()[..2], [Step::Name, Step::Read]);
        assert_eq!(tested.signals(), ["Again", "Done"]);
        assert_eq!(tested.questions::<Review>(), [Review { pages: 2 }, Review { pages: 4 }]);
        assert_eq!(tested.asked().len(), 1 + 2 + 1 + 2 + 1);
        assert_eq!(tested.emitted::<Named>(), [&Named]);
        let settled =
            |event: &&harness::observe::Event| matches!(event.kind, EventKind::Settled { .. });
        assert_eq!(tested.events().iter().filter(settled).count(), 6);
        assert_eq!(tested.lines().last().map(String::as_str), Some("run ended by Done"));
        let drawn = harness().graph().drawing().mark(tested.steps()).to_mermaid();
        assert!(drawn.contains("Read ×2"), "{drawn}");
        let ended = tested.ended().unwrap();
        assert_eq!(ended.state.read, ["A", "-", "A", "B"]);
        assert_eq!(ended.state.title.as_deref(), Some("A report"));
    }
}

#[tokio::test]
async fn a_question_without_an_answer_ends_the_test_there() {
    for agent in both() {
        let tested = testing::run(&agent, input())
            .answer("title", "A report")
            .answer_item(0, "may", true)
            .await
            .unwrap();
        assert_eq!(tested.state().unwrap().title.as_deref(), Some("A report"));
        let Outcome::Interrupted(waiting) = &tested.outcome else { panic!("{tested:?}") };
        assert_eq!(waiting.questions.len(), 1);
        assert_eq!(waiting.questions[0].item, Some(1));
        let waits = tested.ended().unwrap_err().to_string();
        assert!(waits.ends_with("waits for an answer to `may`"), "{waits}");
    }
}

#[tokio::test]
async fn answers_that_are_not_used_say_what_waits() {
    for agent in both() {
        let typo = testing::run(&agent, input())
            .answer("titel", "A report")
            .answer(Step::Review, Verdict::Good)
            .answer_all(|_: May| true)
            .await
            .unwrap_err();
        assert!(typo.is_unused());
        assert_eq!(
            typo.to_string(),
            "the scripted answers to `titel`, the gate `Review`, every `may` were not used: the \
             loop waits for an answer to `title` (remove them, or correct who asks)"
        );
    }
}

#[tokio::test]
async fn an_answer_of_another_type_names_who_asked() {
    for agent in both() {
        let wrong = testing::run(&agent, input()).answer("title", 7).await.unwrap_err();
        assert!(wrong.is_wrong_answer(), "{wrong}");
        let text = wrong.to_string();
        assert!(text.starts_with("the answer to `title` does not fit its question `title`"));
        let wrong = testing::run(&agent, Report::update())
            .answer("title", "t")
            .answer(Step::Review, "Fine")
            .await
            .unwrap_err();
        assert!(wrong.to_string().starts_with("the answer to the gate `Review` does not fit"));
    }
}

#[tokio::test]
async fn runs_take_options_and_report_why_they_do_not_begin() {
    for agent in both() {
        let named = testing::run(&agent, input()).with(|run| run.session("s-1")).await.unwrap();
        assert_eq!(named.outcome.session().as_str(), "s-1");
        let refused = testing::run(&agent, input()).with(|run| run.session("")).await.unwrap_err();
        assert!(refused.run_error().is_some_and(|it| it.is_invalid_session_id()), "{refused}");
    }
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    secret: u32,
}

#[tokio::test]
async fn runtime_slots_are_made_for_each_run() {
    async fn ask(_: View<Report>, cx: Cx<Ctx>) -> StepResult<Report> {
        let title = cx.ask("title", Title).await?;
        Ok(Report::update().title(format!("{title} {}", cx.secret)))
    }
    let harness = Harness::<Ctx, Report>::dynamic("titles")
        .start("ask")
        .step("ask", |define| define.run(ask).end())
        .build()
        .unwrap();
    let tested = testing::run(&harness.agent("a", ()), Report::update())
        .slots(|| Ctx::runtime().secret(7).build())
        .answer("title", "number")
        .await
        .unwrap();
    assert_eq!(tested.ended().unwrap().state.title.as_deref(), Some("number 7"));
}

// The writer of the log sends again what fails, after waits that a paused runtime skips.
#[tokio::test(start_paused = true)]
async fn a_crash_is_a_store_that_fails() {
    let store = MemoryStore::new();
    let dying = Faulty::new(store.clone());
    dying.faults().before(Call::Append, |call| call > 1);
    let agent = |store: Faulty<MemoryStore>| harness().agent("a", ()).store(store);
    let crashed = agent(dying).run(Report::update(), ()).session("s-1").await.unwrap();
    assert!(matches!(crashed, Outcome::Failed(_)), "{crashed:?}");

    let agent = agent(Faulty::new(store));
    let waiting = agent.resume("s-1", Answers::none(), ()).await.unwrap();
    let Outcome::Interrupted(waiting) = waiting else { panic!("{waiting:?}") };
    assert_eq!(waiting.questions[0].key.as_deref(), Some("title"));
}
