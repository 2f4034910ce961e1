//! What a report says of code steps.

use harness::code::{self, Bench, Code, CodeChange};
use harness::esg::patcher::{Patcher, Proposing};
use harness::esg::testing::TinyWorker;
use harness::esg::{Blobs, Diagnosis, Patch, Program, Record};
use harness::inspect::report::{Report, describe, programs};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Seq, Sessions};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Analysis {
    repairs: bool,
    #[state(esg)]
    code: Code,
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    bench: Bench,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Run,
    Diagnose,
    Repair,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Found {
    Works,
    Fails,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Then {
    Repair,
    Rest,
}

/// Replaces `ys` by `xs`.
struct Fixed;

impl Patcher for Fixed {
    fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a> {
        let step = &diagnosis.failing.step;
        let source = program.step(step).unwrap().source.replace("ys", "xs");
        let mut patch = Patch::step(step, &source).agent("fixer");
        patch.why = "the list is called xs".to_owned();
        Box::pin(async move { Ok(vec![patch]) })
    }
}

fn harness() -> Harness<Ctx, Analysis> {
    let bench = |cx: &Ctx| cx.bench.clone();
    Harness::<Ctx, Analysis>::builder("analyst")
        .start(Step::Run)
        .steps(move |define, step| match step {
            Step::Run => define.handler(code::execute(bench)).route(
                |state: &Analysis| if state.code.is_ok() { Found::Works } else { Found::Fails },
                |found| match found {
                    Found::Works => end(),
                    Found::Fails => to(Step::Diagnose),
                },
            ),
            Step::Diagnose => define.handler(code::diagnose(bench)).route(
                |state: &Analysis| if state.repairs { Then::Repair } else { Then::Rest },
                |then| match then {
                    Then::Repair => to(Step::Repair),
                    Then::Rest => end(),
                },
            ),
            Step::Repair => define.handler(code::patch(|_: &Cx<Ctx>| Fixed)).then(Step::Run),
        })
        .budget(Budget::steps(30))
        .build()
        .unwrap()
}

/// What the effects of a report say, without the time that they took.
fn effects(report: &Report) -> Vec<String> {
    let effects = report.timeline.iter().filter(|entry| entry.kind == "effect");
    let words = effects.map(|entry| {
        let untimed = |part: &str| match part.split_once(" in ") {
            Some((before, after)) => {
                format!("{before}:{}", after.split_once(':').map_or("", |(_, rest)| rest))
            }
            None => part.to_owned(),
        };
        untimed(&entry.words)
    });
    words.collect()
}

fn bot(store: &MemoryStore) -> Agent<Ctx, Analysis> {
    let bench = Bench::new(|| Ok::<_, std::io::Error>(TinyWorker::new()), Blobs::memory());
    harness().agent("bot", Ctx::required().bench(bench).build()).store(store.clone())
}

/// A turn that begins with another source of the last step, and repairs nothing.
async fn edit(agent: &Agent<Ctx, Analysis>, sessions: &Sessions, source: &str) {
    let state = sessions.state("s").await.unwrap();
    let mut program = programs(&state)[0].ledger().program().clone();
    let mark = program.mark();
    program.patch(&Patch::step("sum", source)).unwrap();
    let edits = program.operations(mark).iter().cloned().map(Record::Edited);
    let edits: Vec<_> = edits.map(CodeChange::from).collect();
    let input = Analysis::update().repairs(false).code(edits);
    agent.run(input, ()).session("s").await.unwrap().ended().unwrap();
}

async fn session() -> (Sessions, Vec<String>) {
    session_in(MemoryStore::new()).await
}

/// The first turn is repaired. The second one fails, and is not.
async fn session_in(store: MemoryStore) -> (Sessions, Vec<String>) {
    let agent = bot(&store);
    let first = Program::from_script("# %% load\nxs = [3, 1]\n# %% sum\nn = sum(ys)").unwrap();
    let input = Analysis::update().repairs(true).code(Code::added(&first));
    agent.run(input, ()).session("s").await.unwrap().ended().unwrap();
    let sessions = Sessions::new(store);
    let said = effects(&sessions.report("s").await.unwrap());

    edit(&agent, &sessions, "n = sum(zs)").await;
    (sessions, said)
}

#[tokio::test]
async fn what_a_replay_records_is_written_in_words() {
    let (sessions, said) = session().await;
    insta::assert_debug_snapshot!(said);
    // An entry alone knows nothing of the program.
    let history = sessions.history("s", Seq(1), 100).await.unwrap();
    let effects = history.entries.iter().filter(|(_, it)| it.change.name() == "effect");
    let words: Vec<String> = effects.map(|(_, entry)| describe(entry)).collect();
    assert!(words[0].starts_with("replay 1 ran load in "), "{words:?}");
    assert_eq!(words[2], "replay 1 settled");
    assert!(words.iter().all(|words| !words.contains('{')), "{words:?}");
}

#[tokio::test]
async fn a_rollback_takes_back_why_the_program_failed() {
    let (sessions, _) = session().await;
    let head = sessions.status("s").await.unwrap().head;
    let failing = &programs(&sessions.state("s").await.unwrap())[0];
    assert!(failing.diagnosis.is_some());
    sessions.roll_back_code("s", head, "code", 2, "ada", "it worked").await.unwrap();
    let state = sessions.state("s").await.unwrap();
    assert!(programs(&state)[0].diagnosis.is_none(), "{state}");
    assert_eq!(state["code"]["diagnosis"], serde_json::Value::Null);
}

/// The loop ends as soon as the program works: no step diagnoses it again.
#[tokio::test]
async fn a_diagnosis_of_an_earlier_program_is_not_shown_as_one_of_the_present_one() {
    let store = MemoryStore::new();
    let (sessions, _) = session_in(store.clone()).await;
    let report = sessions.report("s").await.unwrap();
    assert_eq!(programs(&report.state)[0].outdated(), None);
    let (page, text) = (report.to_html(), report.to_markdown());
    assert!(
        page.contains("open><summary>Diagnosis: ") && text.contains("\nDiagnosis:\n"),
        "{page}"
    );

    edit(&bot(&store), &sessions, "n = sum(xs)\nm = n").await;
    let said = "does not fail so any more";
    let mut seen = Vec::new();
    let history = sessions.history("s", Seq(1), 200).await.unwrap();
    for (seq, _) in history.entries {
        let Ok(state) = sessions.state_at("s", seq).await else { continue };
        let program = programs(&state).into_iter().next();
        seen.extend(program.and_then(|program| program.outdated()));
    }
    seen.dedup();
    assert_eq!(seen, ["`sum` is to run again, or may", &format!("`sum` {said}")]);
    let report = sessions.report("s").await.unwrap();
    let (page, text) = (report.to_html(), report.to_markdown());
    assert!(!page.contains("<summary>Diagnosis: "), "{page}");
    let earlier = format!("Earlier diagnosis (`sum` {said}): NameError");
    assert!(page.contains(&earlier), "{page}");
    assert!(text.contains("Earlier diagnosis (") && !text.contains("\nDiagnosis:"), "{text}");
}

#[tokio::test]
async fn a_rollback_under_a_running_session_is_refused_and_works_once_it_rests() {
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let start = move || {
        let begun = begun.clone();
        Ok::<_, std::io::Error>(TinyWorker::new().before_run(move |request| {
            let _ = begun.send(request.step.to_string());
            Ok(())
        }))
    };
    let bench = Bench::new(start, Blobs::memory());
    let store = MemoryStore::new();
    let agent = harness().agent("bot", Ctx::required().bench(bench).build()).store(store.clone());
    let script = "# %% load\nxs = [3, 1]\n# %% wait\nx = 1\n# %% sum\nn = sum(xs)";
    let mut program = Program::from_script(script).unwrap();
    assert_eq!(program.step("wait").unwrap().version.to_string(), "v1");
    program.patch(&Patch::step("wait", "while True: pass")).unwrap();
    let input = Analysis::update().code(Code::added(&program));

    let run = agent.run(input, ()).session("s").start();
    while begins.recv().await.as_deref() != Some("wait") {}
    let sessions = Sessions::new(store);
    let back = async |why: &str| {
        let head = sessions.status("s").await.unwrap().head;
        sessions.roll_back_code("s", head, "code", 1, "ada", why).await
    };
    let refused = back("it never ends").await.unwrap_err();
    assert!(refused.is_busy(), "{refused}");
    run.cancel();
    let stopped = run.await.unwrap();
    assert!(matches!(stopped, Outcome::Stopped(_)), "{stopped:?}");

    back("it never ends").await.unwrap();
    while begins.try_recv().is_ok() {}
    let resumed = agent.resume("s", Answers::none(), ()).await.unwrap();
    let state = resumed.state().unwrap();
    assert!(state.code.is_ok(), "{resumed:?}");
    let mut ran = Vec::new();
    while let Ok(step) = begins.try_recv() {
        ran.push(step);
    }
    assert!(!ran.contains(&"load".to_owned()), "its execution was recorded: {ran:?}");
}
