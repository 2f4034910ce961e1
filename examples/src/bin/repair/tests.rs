//! The loop without Python: the fake runner returns prepared endings.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use harness::prelude::*;
use harness::{Ended, Interrupted};

use crate::engine::{Ending, Facts, Fault, Frame, Limits, PythonError, Ran};

use super::state::{Approve, Decision, Fate, Repair, Why};
use super::{Ctx, End, Runner, repairer};

/// Returns prepared endings, and records the sources it gets.
#[derive(Default)]
struct Fake {
    endings: Mutex<VecDeque<Result<Ending, PythonError>>>,
    seen: Mutex<Vec<String>>,
}

impl Fake {
    fn of(endings: impl IntoIterator<Item = Ending>) -> Arc<Self> {
        let endings = Mutex::new(endings.into_iter().map(Ok).collect());
        Arc::new(Self { endings, ..Self::default() })
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait]
impl Runner for Fake {
    async fn run(&self, source: &str, _: &str, _: &Limits) -> Result<Ran, PythonError> {
        self.seen.lock().unwrap().push(source.to_owned());
        let next = self.endings.lock().unwrap().pop_front();
        let ending = next.unwrap_or_else(|| Ok(fault("E", 0, "no ending left", &[])))?;
        Ok(Ran { ending, stdout: "1\n".into(), stderr: String::new(), elapsed: Default::default() })
    }
}

fn fault(kind: &str, line: u32, name: &str, globals: &[&str]) -> Ending {
    let facts = Facts {
        name: Some(name.into()),
        globals: globals.iter().map(ToString::to_string).collect(),
        ..Facts::default()
    };
    let message = format!("name '{name}' is not defined");
    let frames = vec![Frame { line, ..Frame::default() }];
    Ending::Raised(Box::new(Fault { kind: kind.into(), message, frames, facts }))
}

/// `print(itmes)` among two names that are near.
const SOURCE: &str = "items = 1\ntimes = 1\nprint(itmes)\n";

fn misspelt() -> Ending {
    fault("NameError", 3, "itmes", &["items", "times"])
}

fn agent(fake: &Arc<Fake>, rounds: u32) -> Agent<Ctx, Repair> {
    let runner: Arc<dyn Runner> = fake.clone();
    repairer(runner, Limits::default(), rounds).unwrap().agent("test", ())
}

async fn start(agent: &Agent<Ctx, Repair>) -> Outcome<Repair> {
    let input =
        Repair::update().name("a.py").original(SOURCE).copy(SOURCE).expected(Some("1\n".into()));
    agent.run(input, ()).await.unwrap()
}

fn waiting(outcome: Outcome<Repair>) -> Interrupted<Repair> {
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    waiting
}

async fn answer(
    agent: &Agent<Ctx, Repair>,
    outcome: Outcome<Repair>,
    decision: Decision,
) -> Outcome<Repair> {
    let waiting = waiting(outcome);
    let question = waiting.pending::<Approve>().unwrap();
    agent.resume(&waiting, question.answer(decision).by("sam"), ()).await.unwrap()
}

fn ended(outcome: Outcome<Repair>, how: End) -> Ended<Repair> {
    let ended = outcome.ended().unwrap();
    assert_eq!(ended.by::<End>(), Some(how), "{:?}", ended.state.why);
    ended
}

#[tokio::test]
async fn an_approved_repair_is_applied_to_the_copy_and_run() {
    let fake = Fake::of([misspelt(), Ending::Ok]);
    let agent = agent(&fake, 10);
    let asked = start(&agent).await;
    assert_eq!(fake.seen(), [SOURCE], "nothing is applied before the answer");
    let ended = ended(answer(&agent, asked, Decision::Apply).await, End::Runs);
    assert_eq!(fake.seen(), [SOURCE, &ended.state.copy]);
    assert_eq!(ended.state.copy, SOURCE.replace("itmes", "items"));
    assert_eq!(ended.state.original, SOURCE);
    assert_eq!(ended.state.tried[0].fate, Fate::Applied { by: Some("sam".into()) });
}

#[tokio::test]
async fn the_question_contains_what_a_person_needs() {
    let fake = Fake::of([misspelt()]);
    let waiting = waiting(start(&agent(&fake, 10)).await);
    let question = waiting.pending::<Approve>().unwrap().question;
    assert_eq!(question.file, "a.py");
    assert_eq!(question.fault, "NameError on line 3: name 'itmes' is not defined");
    assert!(question.diff.contains("\n-print(itmes)\n+print(items)\n"), "{}", question.diff);
}

#[tokio::test]
async fn after_a_declined_repair_comes_the_next() {
    let fake = Fake::of([misspelt(), Ending::Ok]);
    let agent = agent(&fake, 10);
    let asked = start(&agent).await;
    let asked = answer(&agent, asked, Decision::Next).await;
    assert_eq!(fake.seen().len(), 1);
    let ended = ended(answer(&agent, asked, Decision::Apply).await, End::Runs);
    assert_eq!(ended.state.copy, SOURCE.replace("itmes", "times"));
    let accepted: Vec<bool> = ended.state.tried.iter().map(|it| it.fate.is_accepted()).collect();
    assert_eq!(accepted, [false, true]);
}

#[tokio::test]
async fn declining_all_of_them_changes_nothing() {
    let fake = Fake::of([misspelt()]);
    let agent = agent(&fake, 10);
    let mut outcome = start(&agent).await;
    while matches!(outcome, Outcome::Interrupted(_)) {
        outcome = answer(&agent, outcome, Decision::Next).await;
    }
    let ended = ended(outcome, End::Fails);
    assert_eq!(ended.state.why, Some(Why::Declined));
    assert_eq!(ended.state.copy, SOURCE);
}

#[tokio::test]
async fn quitting_asks_no_more() {
    let fake = Fake::of([misspelt()]);
    let agent = agent(&fake, 10);
    let outcome = start(&agent).await;
    let ended = ended(answer(&agent, outcome, Decision::Quit).await, End::Fails);
    assert!(ended.state.has_quit());
    assert_eq!(ended.state.copy, SOURCE);
}

#[tokio::test]
async fn a_repair_that_does_not_help_is_taken_back() {
    let fake = Fake::of([misspelt(), misspelt(), Ending::Ok]);
    let agent = agent(&fake, 10);
    let asked = start(&agent).await;
    let asked = waiting(answer(&agent, asked, Decision::Apply).await);
    assert_eq!(asked.state.copy, SOURCE);
    assert!(matches!(&asked.state.tried[0].fate, Fate::TakenBack { by: Some(_), .. }));
    let outcome = answer(&agent, Outcome::Interrupted(asked), Decision::Apply).await;
    let ended = ended(outcome, End::Runs);
    assert_eq!(ended.state.copy, SOURCE.replace("itmes", "times"));
    assert_eq!(ended.state.tried.len(), 2);
    assert_eq!(ended.state.rounds, 1);
}

#[tokio::test]
async fn when_none_helps_the_copy_is_unchanged() {
    let fake = Fake::of(vec![misspelt(); 8]);
    let agent = agent(&fake, 10);
    let mut outcome = start(&agent).await;
    while matches!(outcome, Outcome::Interrupted(_)) {
        outcome = answer(&agent, outcome, Decision::Apply).await;
    }
    let ended = ended(outcome, End::Fails);
    assert!(matches!(ended.state.why, Some(Why::NoneHelped { .. })), "{:?}", ended.state.why);
    assert_eq!(ended.state.copy, SOURCE);
}

#[tokio::test]
async fn after_a_repair_that_hangs_comes_the_next() {
    let fake = Fake::of([misspelt(), Ending::TimedOut, Ending::Ok]);
    let agent = agent(&fake, 10);
    let asked = start(&agent).await;
    let asked = answer(&agent, asked, Decision::Apply).await;
    ended(answer(&agent, asked, Decision::Apply).await, End::Runs);
}

#[tokio::test]
async fn the_rounds_are_bounded() {
    let next = fault("NameError", 2, "itmes", &["items", "times"]);
    let fake = Fake::of([misspelt(), next]);
    let agent = agent(&fake, 1);
    let asked = start(&agent).await;
    let ended = ended(answer(&agent, asked, Decision::Apply).await, End::Fails);
    assert_eq!(ended.state.why, Some(Why::Rounds { rounds: 1 }));
}

#[tokio::test]
async fn a_failed_step_is_reported() {
    let fake = Arc::new(Fake::default());
    fake.endings.lock().unwrap().push_back(Ok(misspelt()));
    let broken = || Err(PythonError::Broken("it is gone".into()));
    fake.endings.lock().unwrap().extend([broken(), broken(), broken()]);
    let agent = agent(&fake, 10);
    let asked = start(&agent).await;
    let ended = ended(answer(&agent, asked, Decision::Apply).await, End::Fails);
    let Some(Why::Broken { error }) = ended.state.why else { panic!() };
    assert!(error.contains("it is gone") && error.contains("Run"), "{error}");
    assert_eq!(fake.seen().len(), 4, "a failed start is tried again");
}

#[tokio::test]
async fn the_state_survives_a_round_trip() {
    let fake = Fake::of([misspelt(), misspelt(), misspelt()]);
    let agent = agent(&fake, 10);
    let outcome = start(&agent).await;
    let asked = waiting(answer(&agent, outcome, Decision::Apply).await);
    let saved = serde_json::to_value(&*asked.state).unwrap();
    let again: Repair = serde_json::from_value(saved.clone()).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), saved);
}

#[test]
fn the_drawing_shows_every_step_and_the_way_through() {
    let runner: Arc<dyn Runner> = Arc::new(Fake::default());
    let harness = repairer(runner, Limits::default(), 10).unwrap();
    let drawing = harness.graph().to_mermaid();
    println!("{drawing}");
    let lines: Vec<&str> = drawing.lines().map(str::trim).collect();
    assert_eq!(lines[0], "flowchart TD");
    let names: Vec<&str> = harness.graph().steps().collect();
    assert_eq!(
        names,
        ["Run", "Propose", "Approve", "Apply", "TakeBack", "Enough", "Break", "Report"]
    );
    for (at, name) in names.iter().enumerate() {
        let (open, close) = if *name == "Approve" { ("{{", "}}") } else { ("[", "]") };
        let node = format!("s{at}{open}\"{name}\"{close}");
        assert!(lines.contains(&node.as_str()), "{name} is missing in\n{drawing}");
    }
    for edge in [
        r#"start(["repair"]) --> s0"#,
        r#"s0 -- "Fault" --> s1"#,
        r#"s0 -- "NoBetter" --> s4"#,
        r#"s1 -- "Some" --> s2"#,
        r#"s1 -- "after 10" --> s5"#,
        r#"s2 -- "Next" --> s2"#,
        r#"s2 -- "Apply" --> s3"#,
        "s3 --> s0",
        "failed[/any error/] -.-> s6",
        r#"s7 -- "Runs" --> finish"#,
    ] {
        assert!(lines.contains(&edge), "{edge} is missing in\n{drawing}");
    }
    // Every other line draws a node or an edge between nodes.
    for line in &lines[1..] {
        let node = line.starts_with('s') || line.starts_with("fi") || line.starts_with("fa");
        assert!(node, "{line}");
        assert_eq!(line.matches('"').count() % 2, 0, "{line}");
    }
}
