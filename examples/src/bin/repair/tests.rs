//! The loop, with real Python and without the command line.

use std::path::Path;
use std::sync::Arc;

use harness::code::{Bench, Code};
use harness::esg::{Blobs, CPython, Trust};
use harness::llm::{CallCx, LlmError, ModelId, Reply, Request, Scripted, StopReason};
use harness::prelude::*;
use harness::{Ended, Interrupted};

use super::document::{Document, add_checks};
use super::source::load;
use super::state::{Approve, Decision, Fate, Repair, RepairUpdate, Why};
use super::{Ctx, End, repairer};

/// `print(itmes)` among two names that are near.
const SOURCE: &str = "items = 1\ntimes = 2\n\nprint(itmes)\n";

fn agent_with(model: Option<Arc<dyn Llm>>, rounds: u32) -> Agent<Ctx, Repair> {
    let bench = Bench::new(|| CPython::find().trust(Trust::Mine).start(), Blobs::memory());
    repairer(bench, model, rounds).unwrap().agent("test", ())
}

fn agent(rounds: u32) -> Agent<Ctx, Repair> {
    agent_with(None, rounds)
}

fn input(source: &str, expected: Option<&str>, tests: Option<&str>) -> RepairUpdate {
    let (document, mut program) = Document::script(source).unwrap();
    let checks = tests.map(|tests| add_checks(&mut program, "a", tests).unwrap());
    Repair::update()
        .name("a.py")
        .document(document)
        .original(source)
        .expected(expected.map(str::to_owned))
        .tests(checks.unwrap_or_default())
        .proven(program.versions().len())
        .code(Code::added(&program))
}

async fn start(agent: &Agent<Ctx, Repair>, expected: &str) -> Outcome<Repair> {
    agent.run(input(SOURCE, Some(expected), None), ()).await.unwrap()
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

/// Gives the same answer to every question.
async fn always(
    agent: &Agent<Ctx, Repair>,
    mut outcome: Outcome<Repair>,
    decision: Decision,
) -> Outcome<Repair> {
    while matches!(outcome, Outcome::Interrupted(_)) {
        outcome = answer(agent, outcome, decision).await;
    }
    outcome
}

fn ended(outcome: Outcome<Repair>, how: End) -> Ended<Repair> {
    let ended = outcome.ended().unwrap();
    assert_eq!(ended.by::<End>(), Some(how), "{:?}", ended.state.why);
    ended
}

#[tokio::test]
async fn a_patch_runs_after_the_approval_and_only_what_it_affects() {
    let agent = agent(10);
    let asked = waiting(start(&agent, "1\n").await);
    let question = asked.pending::<Approve>().unwrap().question;
    assert_eq!((question.file.as_str(), question.by.as_str(), question.line), ("a.py", "rules", 4));
    assert_eq!(question.fault, "NameError on line 4: name 'itmes' is not defined");
    assert!(question.explanation.starts_with("misspelt name: `itmes`"), "{question:?}");
    assert!(question.diff.contains("\n-print(itmes)\n+print(items)\n"), "{}", question.diff);
    assert_eq!(asked.state.code.ledger().executions().len(), 2, "the patch has not run");
    assert_eq!(asked.state.copy(), SOURCE, "nor is it a part of the copy");
    let ended =
        ended(answer(&agent, Outcome::Interrupted(asked), Decision::Apply).await, End::Runs);
    assert_eq!(ended.state.copy(), SOURCE.replace("itmes", "items"));
    assert_eq!(ended.state.original, SOURCE);
    assert_eq!(ended.state.tried[0].fate, Fate::Applied { by: Some("sam".into()) });
    let ran: Vec<_> = ended.state.code.ledger().executions().iter().map(|it| &*it.step).collect();
    assert_eq!(ran, ["part1", "part2", "part2"]);
}

#[tokio::test]
async fn after_a_declined_patch_comes_the_next() {
    let agent = agent(10);
    let asked = answer(&agent, start(&agent, "2\n").await, Decision::Next).await;
    let ended = ended(answer(&agent, asked, Decision::Apply).await, End::Runs);
    assert_eq!(ended.state.copy(), SOURCE.replace("itmes", "times"));
    let accepted: Vec<bool> = ended.state.tried.iter().map(|it| it.fate.is_accepted()).collect();
    assert_eq!((accepted, ended.state.rounds), (vec![false, true], 1));
}

#[tokio::test]
async fn declining_all_of_them_changes_nothing() {
    let agent = agent(10);
    let outcome = start(&agent, "1\n").await;
    let ended = ended(always(&agent, outcome, Decision::Next).await, End::Fails);
    assert_eq!(ended.state.why, Some(Why::Declined));
    assert_eq!(ended.state.copy(), SOURCE);
}

#[tokio::test]
async fn quitting_asks_no_more() {
    let agent = agent(10);
    let outcome = start(&agent, "1\n").await;
    let ended = ended(answer(&agent, outcome, Decision::Quit).await, End::Fails);
    assert!(ended.state.has_quit());
    assert_eq!(ended.state.copy(), SOURCE);
}

#[tokio::test]
async fn a_patch_that_does_not_help_is_taken_back() {
    let agent = agent(10);
    // The first one prints 1.
    let asked = answer(&agent, start(&agent, "2\n").await, Decision::Apply).await;
    let asked = waiting(asked);
    assert_eq!(asked.state.copy(), SOURCE);
    assert!(matches!(&asked.state.tried[0].fate, Fate::TakenBack { by: Some(_), .. }));
    let outcome = answer(&agent, Outcome::Interrupted(asked), Decision::Apply).await;
    let ended = ended(outcome, End::Runs);
    assert_eq!(ended.state.copy(), SOURCE.replace("itmes", "times"));
    assert_eq!((ended.state.tried.len(), ended.state.rounds), (2, 1));
}

#[tokio::test]
async fn a_patch_after_which_the_same_expression_fails_in_another_way_is_taken_back() {
    let agent = agent(10);
    // `item` is near, and has no `append` either.
    let source = "def push(item):\n    items.append(item)\n\npush(1)\n";
    let outcome = agent.run(input(source, None, None), ()).await.unwrap();
    let ended = ended(always(&agent, outcome, Decision::Apply).await, End::Fails);
    assert!(matches!(ended.state.why, Some(Why::NoneHelped { .. })), "{:?}", ended.state.why);
    assert!(matches!(&ended.state.tried[0].fate, Fate::TakenBack { .. }));
    assert_eq!(ended.state.copy(), source);

    // Two mistakes in one expression are repaired one after the other.
    let source = "items = [1]\nitmes.appnd(2)\nprint(items)\n";
    let outcome = agent.run(input(source, None, None), ()).await.unwrap();
    let ended = runs(always(&agent, outcome, Decision::Apply).await);
    assert_eq!(ended.state.copy(), source.replace("itmes.appnd", "items.append"));

    // So are two equal ones, of which each is the same mistake at another place of the line.
    let source = "items = [1]\nprint(items.appnd(2), items.appnd(3))\n";
    let outcome = agent.run(input(source, None, None), ()).await.unwrap();
    let ended = runs(always(&agent, outcome, Decision::Apply).await);
    assert_eq!(ended.state.copy(), source.replace("appnd", "append"));
}

fn runs(outcome: Outcome<Repair>) -> Ended<Repair> {
    ended(outcome, End::Runs)
}

#[tokio::test]
async fn when_none_helps_the_copy_is_unchanged() {
    let agent = agent(10);
    let outcome = start(&agent, "3\n").await;
    let ended = ended(always(&agent, outcome, Decision::Apply).await, End::Fails);
    assert!(matches!(ended.state.why, Some(Why::NoneHelped { .. })), "{:?}", ended.state.why);
    assert_eq!(ended.state.copy(), SOURCE);
}

#[tokio::test]
async fn the_rounds_are_bounded() {
    let agent = agent(1);
    let source = "items = 1\nprint(itmes)\n\nprint(itms)\n";
    let outcome = agent.run(input(source, None, None), ()).await.unwrap();
    let ended = ended(always(&agent, outcome, Decision::Apply).await, End::Fails);
    assert_eq!(ended.state.why, Some(Why::Rounds { rounds: 1 }));
    assert_eq!(ended.state.copy(), source.replace("itmes", "items"), "the first one has helped");
}

#[tokio::test]
async fn tests_must_pass_are_run_where_a_patch_reaches_them_and_are_never_patched() {
    let source = "def total(items):\n    return sum(itmes)\n\ndef most(xs):\n    return max(xs)\n";
    let tests = "from a import total, most\n\ndef test_total():\n    assert total([1, 2]) == 3\n\n\
                 def test_most():\n    assert most([1, 2]) == 2\n";
    let agent = agent(10);
    let outcome = agent.run(input(source, None, Some(tests)), ()).await.unwrap();
    let asked = waiting(outcome);
    let question = asked.pending::<Approve>().unwrap().question;
    assert_eq!(
        question.fault,
        "test `test_total`: NameError on line 2: name 'itmes' is not defined"
    );
    let outcome = always(&agent, Outcome::Interrupted(asked), Decision::Apply).await;
    let ended = ended(outcome, End::Runs);
    assert_eq!(ended.state.copy(), source.replace("itmes", "items"));
    let ledger = ended.state.code.ledger();
    let ran = |step: &str| ledger.executions().iter().filter(|it| *it.step == *step).count();
    assert_eq!((ran("test_total"), ran("test_most"), ran("part2")), (2, 1, 1));

    // A test that uses a name which is nearly right is no fault of the test.
    let tests = "def test_total():\n    assert totl([1]) == 1\n";
    let source = source.replace("itmes", "items");
    let outcome = agent.run(input(&source, None, Some(tests)), ()).await.unwrap();
    let Why::NoPatch { fault } = ended_with(outcome) else { panic!() };
    assert!(fault.starts_with("test `test_total`: NameError"), "{fault}");
}

fn ended_with(outcome: Outcome<Repair>) -> Why {
    ended(outcome, End::Fails).state.why.clone().unwrap()
}

#[tokio::test]
async fn a_model_is_asked_where_no_rule_knows_a_patch() {
    let reply = "The sum is not divided by zero.\n\nSTEP part2\n<<<<<<< SEARCH\nprint(sum(rows) / 0)\n\
                 =======\nprint(sum(rows) / len(rows))\n>>>>>>> REPLACE\n";
    let model = Scripted::new([reply]);
    let agent = agent_with(Some(Arc::new(model.clone())), 10);
    let source = "rows = [3, 1]\nprint(rosw)\n\nprint(sum(rows) / 0)\n";
    let outcome = agent.run(input(source, Some("[3, 1]\n2.0\n"), None), ()).await.unwrap();
    let outcome = answer(&agent, outcome, Decision::Apply).await;
    assert_eq!(model.seen().len(), 1, "the first fault is one for the rules");
    let ended = ended(answer(&agent, outcome, Decision::Apply).await, End::Runs);
    let by: Vec<_> = ended.state.tried.iter().map(|tried| tried.by.as_str()).collect();
    assert_eq!(by, ["rules", "model"]);
    assert_eq!(ended.state.tried[1].explanation, "The sum is not divided by zero.");
}

#[tokio::test]
async fn a_model_that_fails_is_reported() {
    let agent = agent_with(Some(Arc::new(Scripted::new(["no", "never", "nothing"]))), 10);
    let outcome = agent.run(input("print(1 / 0)\n", None, None), ()).await.unwrap();
    let Why::Broken { error } = ended_with(outcome) else { panic!() };
    assert!(error.contains("no usable patch") && error.contains("Patch"), "{error}");
}

/// Always has another patch, and none helps.
struct Wandering(std::sync::atomic::AtomicU32);

#[harness::async_trait]
impl Llm for Wandering {
    fn id(&self) -> ModelId {
        ModelId::new("test", "wandering")
    }

    async fn complete(&self, _: Request<'_>, _: &CallCx) -> Result<Reply, LlmError> {
        let nth = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = format!(
            "STEP part1\n<<<<<<< SEARCH\nprint(1 / 0)\n=======\nprint({nth} + 1 / 0)\n>>>>>>> REPLACE\n"
        );
        Ok(Reply::new(text, StopReason::End, self.id()))
    }
}

#[tokio::test]
async fn a_model_without_end_is_asked_a_bounded_number_of_times() {
    let model = Arc::new(Wandering(0.into()));
    let agent = agent_with(Some(Arc::clone(&model) as Arc<dyn Llm>), 10);
    let outcome = agent.run(input("print(1 / 0)\n", None, None), ()).await.unwrap();
    let ended = ended(always(&agent, outcome, Decision::Apply).await, End::Fails);
    assert!(matches!(ended.state.why, Some(Why::NoneHelped { .. })), "{:?}", ended.state.why);
    assert_eq!(
        (ended.state.tried.len(), model.0.load(std::sync::atomic::Ordering::Relaxed)),
        (12, 12)
    );
    assert_eq!(ended.state.copy(), "print(1 / 0)\n");
}

#[tokio::test]
async fn a_bench_that_breaks_is_reported() {
    let bench = Bench::new(|| CPython::at("/nowhere").trust(Trust::Mine).start(), Blobs::memory());
    let agent = repairer(bench, None, 10).unwrap().agent("test", ());
    let Why::Broken { error } = ended_with(start(&agent, "1\n").await) else { panic!() };
    assert!(error.contains("Run") && error.contains("/nowhere"), "{error}");
}

#[tokio::test]
async fn the_state_survives_a_round_trip() {
    let agent = agent(10);
    let asked = waiting(start(&agent, "1\n").await);
    let saved = serde_json::to_value(&*asked.state).unwrap();
    let again: Repair = serde_json::from_value(saved.clone()).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), saved);
    assert_eq!(again.copy(), SOURCE);
}

/// The least that the rules repair.
const REPAIRED: usize = 20;

/// Whether a program does less than before: prints less, or does not even compile any more.
fn is_worse(before: &Repair, after: &Repair) -> bool {
    use harness::esg::Ending;
    let compiles =
        |repair: &Repair| !matches!(repair.failure(), Some(Ending::Raised { syntax: true, .. }));
    !after.output().0.starts_with(&before.output().0) || (compiles(before) && !compiles(after))
}

#[tokio::test]
async fn the_rules_repair_most_of_the_corpus_and_make_nothing_worse() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/corpus");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    assert_eq!(paths.len(), 30);
    let agent = agent(10);
    let (mut fixed, mut rest) = (Vec::new(), Vec::new());
    for path in paths {
        let script = load(&path).unwrap();
        let expected = script.expected.as_deref();
        assert!(expected.is_some(), "{}: without an expected output", script.name);
        let first = agent.run(input(&script.source, expected, None), ()).await.unwrap();
        let before = first.state().cloned().unwrap();
        let outcome = always(&agent, first, Decision::Apply).await;
        let ended = outcome.ended().unwrap();
        let after = &ended.state;
        assert!(!is_worse(&before, after), "{}: worse\n{}", script.name, after.copy());
        match &after.why {
            None => {
                assert_ne!(after.copy(), script.source, "{}: not broken", script.name);
                assert_eq!(Some(&*after.output().0), expected);
                fixed.push(script.name);
            }
            Some(why) => rest.push(format!("{}: {why}", script.name)),
        }
    }
    println!("repaired {}: {fixed:?}\nnot repaired: {rest:#?}", fixed.len());
    assert!(fixed.len() >= REPAIRED, "repaired {}; not repaired: {rest:#?}", fixed.len());
}

#[tokio::test]
async fn line_ends_tabs_and_the_last_line_stay_as_they_are() {
    let source = "def f(items):\r\n\tfor item in itmes:\r\n\t\tprint( item )   \r\n\r\nf([1])";
    let agent = agent(10);
    let outcome = agent.run(input(source, Some("1\n"), None), ()).await.unwrap();
    let ended = ended(always(&agent, outcome, Decision::Apply).await, End::Runs);
    assert_eq!(ended.state.copy(), source.replace("itmes", "items"));
}

#[test]
fn the_drawing_shows_the_way_through() {
    let bench = Bench::new(|| CPython::find().start(), Blobs::memory());
    let harness = repairer(bench, None, 10).unwrap();
    let drawing = harness.graph().to_mermaid();
    let lines: Vec<&str> = drawing.lines().map(str::trim).collect();
    for edge in [
        r#"start(["repair"]) --> s0"#,
        r#"s0 -- "Fails" --> s1"#,
        r#"s0 -- "NoBetter" --> s5"#,
        r#"s2 -- "Fault" --> s3"#,
        r#"s4 -- "Apply" --> s0"#,
        r#"s4 -- "Decline" --> s5"#,
        r#"s5 -- "More" --> s0"#,
        "failed[/any error/] -.-> s7",
        r#"s8 -- "Runs" --> finish"#,
    ] {
        assert!(lines.contains(&edge), "{edge} is missing in\n{drawing}");
    }
}
