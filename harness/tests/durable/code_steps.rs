//! Programs of code steps as steps of a loop: written, run, diagnosed, patched and reviewed, through
//! crashes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::async_trait;
use harness::code::{self, Bench, Code, LlmPatcher, ReviewCode, Reviewed};
use harness::esg::patcher::{Patcher, Proposing};
use harness::esg::testing::TinyWorker;
use harness::esg::{Blobs, Diagnosis, ExecError, Patch, Program, ProvenanceKind};
use harness::llm::{CallCx, Llm, LlmError, ModelId, Reply, Request, Scripted, StopReason};
use harness::observe::{self, EventKind};
use harness::prelude::*;
use harness::store::{MemoryStore, Phase};
use harness::{Interrupt, RunRequest, Sessions};

use super::rig::{Act, On, Rig, folded, run_or_crash, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Analysis {
    pub(super) task: String,
    #[state(esg)]
    pub(super) code: Code,
}

#[derive(Context, Clone)]
pub(super) struct Ctx {
    #[slot(runtime)]
    pub(super) model: Arc<dyn Llm>,
    #[slot(runtime)]
    pub(super) bench: Bench,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Run,
    Diagnose,
    Repair,
    Review,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Found {
    Works,
    Fails,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Decided {
    Right,
    Wrong,
}

fn found(state: &Analysis) -> Found {
    if state.code.is_ok() { Found::Works } else { Found::Fails }
}

fn decided(state: &Analysis) -> Decided {
    match state.code.reviewed() {
        Some(Reviewed::Approved) => Decided::Right,
        _ => Decided::Wrong,
    }
}

/// Replaces `ys` by `xs`, and proposes the same again and again.
struct Fixed;

impl Patcher for Fixed {
    fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a> {
        let step = &diagnosis.failing.step;
        let source = program.step(step).unwrap().source.replace("ys", "xs");
        let patch = Patch::step(step, &source).agent("fixed");
        Box::pin(async move { Ok(vec![patch]) })
    }
}

fn harness() -> Harness<Ctx, Analysis> {
    patched_by(|_: &Cx<Ctx>| Fixed)
}

pub(super) fn patched_by<P: Patcher + 'static>(
    patcher: impl Fn(&Cx<Ctx>) -> P + Clone + Send + Sync + 'static,
) -> Harness<Ctx, Analysis> {
    Harness::<Ctx, Analysis>::builder("analyst")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define
                .handler(code::generate(
                    |cx: &Ctx| cx.model.clone(),
                    |state: &Analysis| state.task.clone(),
                ))
                .then(Step::Run),
            Step::Run => {
                define.handler(code::execute(|cx: &Ctx| cx.bench.clone())).route(found, |found| {
                    match found {
                        Found::Works => to(Step::Review),
                        Found::Fails => to(Step::Diagnose),
                    }
                })
            }
            Step::Diagnose => {
                define.handler(code::diagnose(|cx: &Ctx| cx.bench.clone())).then(Step::Repair)
            }
            Step::Repair => define.handler(code::patch(patcher.clone())).then(Step::Run),
            Step::Review => {
                define.handler(code::review()).route(decided, |decided| match decided {
                    Decided::Right => end(),
                    Decided::Wrong => to(Step::Write),
                })
            }
        })
        .budget(Budget::steps(30))
        .build()
        .unwrap()
}

/// How often each source ran, in all workers.
pub(super) type Counts = Arc<Mutex<BTreeMap<String, u32>>>;

/// A bench as a new process makes it: the values are those of the processes before.
pub(super) fn bench(blobs: &Blobs, counts: &Counts) -> Bench {
    let counts = Arc::clone(counts);
    let start = move || {
        let counts = Arc::clone(&counts);
        Ok::<_, ExecError>(TinyWorker::new().before_run(move |request| {
            // A diagnosis runs a probe of its own.
            if !request.source.starts_with("exec(") {
                *counts.lock().unwrap().entry(request.source.trim().to_owned()).or_default() += 1;
            }
            Ok(())
        }))
    };
    Bench::new(start, blobs.clone())
}

const SCRIPT: &str = "Here it is.\n```python\n# %% load\nxs = [3, 1]\n# %% more\nxs.append(2)\n# %% total\nn = sum(ys)\n```\n";

pub(super) fn slots(replies: &[&str], bench: Bench) -> CtxRuntime {
    let model = Scripted::new(replies.iter().copied().map(str::to_owned));
    Ctx::runtime().model(Arc::new(model)).bench(bench).build()
}

/// The changes of the program with where they come from, and the end of each execution.
pub(super) fn story(state: &Analysis) -> (Vec<String>, Vec<String>) {
    let program = state.code.program();
    let versions = program.versions().iter();
    let said = versions.map(|version| {
        let provenance = &version.provenance;
        format!("{} {:?} {}", version.step, provenance.kind, version.source.trim())
    });
    let executions = state.code.ledger().executions().iter();
    (said.collect(), executions.map(|one| format!("{} {}", one.step, one.ending)).collect())
}

struct Ending {
    state: Analysis,
    counts: BTreeMap<String, u32>,
    crashes: u32,
}

/// The next run of a session: what it waits for is approved.
fn next_run(
    memory: &MemoryStore,
    agent: &Agent<Ctx, Analysis>,
    slots: CtxRuntime,
) -> RunRequest<Analysis> {
    match runtime().block_on(Sessions::new(memory.clone()).status("s")) {
        Ok(status) => {
            let approve =
                |asked: &Interrupt| Answers::json(asked.id.clone(), serde_json::json!("approved"));
            agent.resume("s", status.questions.first().map_or(Answers::none(), approve), slots)
        }
        Err(_) => agent.run(Analysis::update().task("add up"), slots).session("s"),
    }
}

/// Brings a session to its end, through a crash. A model that is asked again replies the same.
fn in_the_end(plan: impl FnMut() -> Option<(u64, Act)>) -> Ending {
    end_of(&harness(), || Arc::new(Scripted::new([SCRIPT.to_owned()])), plan)
}

fn end_of(
    harness: &Harness<Ctx, Analysis>,
    model: impl Fn() -> Arc<dyn Llm>,
    mut plan: impl FnMut() -> Option<(u64, Act)>,
) -> Ending {
    let (memory, counts, blobs) = (MemoryStore::new(), Counts::default(), Blobs::memory());
    let mut crashes = 0;
    for _ in 0..20 {
        let rig = match plan() {
            Some((nth, act)) => Rig::nth(&memory, On::Append, nth, act),
            None => Rig::new(memory.clone()),
        };
        let agent = harness.clone().agent("a", ()).store(rig.clone());
        let slots = Ctx::runtime().model(model()).bench(bench(&blobs, &counts)).build();
        let request = next_run(&memory, &agent, slots);
        match run_or_crash(&rig, |_| request) {
            None => crashes += 1,
            Some(Outcome::Interrupted(_)) => {}
            Some(Outcome::Ended(ended)) => {
                let counts = counts.lock().unwrap().clone();
                return Ending { state: ended.state, counts, crashes };
            }
            Some(other) => panic!("{other:?}"),
        }
        if let Some(state) = over(&memory) {
            let counts = counts.lock().unwrap().clone();
            return Ending { state, counts, crashes };
        }
    }
    panic!("no end after 20 runs");
}

/// The state of a session that has ended just before its process died.
fn over(memory: &MemoryStore) -> Option<Analysis> {
    let status = runtime().block_on(Sessions::new(memory.clone()).status("s")).ok()?;
    let state = runtime().block_on(folded(memory, "s"));
    (status.phase == Phase::Ended).then(|| serde_json::from_value(state).unwrap())
}

#[test]
fn a_crash_at_any_append_runs_no_finished_code_step_again() {
    let plain = in_the_end(|| None);
    let (versions, executions) = story(&plain.state);
    assert_eq!(
        versions,
        [
            "load Generated xs = [3, 1]",
            "more Generated xs.append(2)",
            "total Generated n = sum(ys)",
            "total Patched n = sum(xs)",
        ]
    );
    assert_eq!(executions.len(), 4, "{executions:?}");
    assert!(plain.counts.values().all(|count| *count == 1), "{:?}", plain.counts);
    assert_eq!(plain.state.code.reviewed(), Some(&Reviewed::Approved));

    let (mut crashed, mut again) = (0, 0);
    for act in [Act::HangBefore, Act::HangAfter] {
        for nth in 1..40 {
            let mut first = Some((nth, act.clone()));
            let after = matches!(act, Act::HangAfter);
            let got = in_the_end(|| first.take());
            let what = format!("append {nth}, after {after}: {:?}", got.counts);
            assert_eq!(story(&got.state), story(&plain.state), "{what}");
            assert_eq!(got.state.code.reviewed(), Some(&Reviewed::Approved), "{what}");
            // At most what was under way when the process died ran a second time; what the next worker
            // lacks is loaded.
            let runs: u32 = got.counts.values().sum();
            assert!(runs <= 4 + u32::from(!after), "{what}");
            (crashed, again) = (crashed + got.crashes, again + runs - 4);
        }
    }
    assert!(crashed >= 20 && again >= 3, "{crashed} crashes, {again} repeated");
}

/// Writes the program, and repairs it when it is asked for a patch the second time.
struct Author(Arc<AtomicU32>);

#[async_trait]
impl Llm for Author {
    fn id(&self) -> ModelId {
        ModelId::new("test", "author")
    }

    async fn complete(&self, request: Request<'_>, _: &CallCx) -> Result<Reply, LlmError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let asked = format!("{request:?}");
        let text = match asked {
            _ if asked.contains("You write a Python program") => SCRIPT,
            _ if asked.contains("This reply cannot be used") => {
                "STEP total\n<<<<<<< SEARCH\nn = sum(ys)\n=======\nn = sum(xs)\n>>>>>>> REPLACE\n"
            }
            _ => "I would look at the name of the list.",
        };
        Ok(Reply::new(text, StopReason::End, self.id()))
    }
}

#[test]
fn a_crash_at_any_append_asks_no_model_again_whose_reply_is_recorded() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let harness = patched_by(|cx: &Cx<Ctx>| LlmPatcher::of_step(cx, &cx.model)).observe(
        observe::from_fn(move |event| {
            if let EventKind::CallEnded { call, .. } = &event.kind {
                seen.lock().unwrap().push(call.to_string());
            }
        }),
    );
    let asked = Arc::new(AtomicU32::new(0));
    let model = || Arc::new(Author(Arc::clone(&asked))) as Arc<dyn Llm>;
    let plain = end_of(&harness, model, || None);
    assert_eq!(asked.swap(0, Ordering::Relaxed), 3);
    let version = plain.state.code.program().versions().last().unwrap();
    assert_eq!(&*version.source, "n = sum(xs)");
    let call = version.provenance.call.as_deref().unwrap_or_default();
    assert_eq!(calls.lock().unwrap().last().map(String::as_str), Some(call));
    assert_eq!(version.provenance.agent.as_deref(), Some("a"));

    let mut again = 0;
    for act in [Act::HangBefore, Act::HangAfter] {
        for nth in 1..25 {
            let mut first = Some((nth, act.clone()));
            let after = matches!(act, Act::HangAfter);
            let got = end_of(&harness, model, || first.take());
            let asked = asked.swap(0, Ordering::Relaxed);
            assert_eq!(story(&got.state), story(&plain.state), "append {nth}, after {after}");
            // At most the reply that was about to be recorded is lost.
            assert!(asked <= 3 + u32::from(!after), "append {nth}, after {after}: {asked} calls");
            again += asked - 3;
        }
    }
    assert!(again >= 3, "{again} asked again");
}

#[tokio::test]
async fn a_program_that_is_rejected_is_written_again_with_the_comment() {
    let good = SCRIPT.replace("ys", "xs");
    let better = good.replace("n = sum(xs)", "n = sum(xs) + 1");
    let model = Scripted::new([good, better]);
    let (blobs, counts) = (Blobs::memory(), Counts::default());
    let slots =
        || Ctx::runtime().model(Arc::new(model.clone())).bench(bench(&blobs, &counts)).build();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let agent = harness().agent("a", ()).store(MemoryStore::new()).observe(observe::from_fn(
        move |event| {
            if let EventKind::CallEnded { call, .. } = &event.kind {
                seen.lock().unwrap().push(call.to_string());
            }
        },
    ));
    let run = agent.run(Analysis::update().task("add up"), slots()).session("s");
    let Outcome::Interrupted(waiting) = run.await.unwrap() else { panic!("it asks a person") };
    let asked = waiting.pending::<ReviewCode>().unwrap();
    assert!(asked.question.script.contains("n = sum(xs)"), "{:?}", asked.question);
    assert_eq!(asked.question.failure, None);

    let no = Reviewed::Rejected { comment: "one more".into() };
    let Outcome::Interrupted(waiting) =
        agent.resume(&waiting, asked.answer(no), slots()).await.unwrap()
    else {
        panic!("it asks again")
    };
    let request = format!("{:?}", model.seen().last().unwrap());
    assert!(request.contains("A person rejected it: one more"), "{request}");
    let asked = waiting.pending::<ReviewCode>().unwrap();
    let ended = agent.resume(&waiting, asked.answer(Reviewed::Approved), slots()).await.unwrap();
    let state = ended.ended().unwrap().state;
    // Of the second version only the step that differs ran.
    assert!(counts.lock().unwrap().values().all(|count| *count == 1), "{counts:?}");
    let last = state.code.program().versions().last().unwrap();
    assert_eq!(last.provenance.kind, ProvenanceKind::Generated);
    assert!(last.provenance.run.is_some());
    assert_eq!(last.provenance.agent.as_deref(), Some("a"));
    let call = last.provenance.call.as_deref().unwrap_or_default();
    let calls = calls.lock().unwrap();
    assert!(calls.iter().any(|id| id == call), "{call} of {calls:?}");
}

#[tokio::test]
async fn a_model_that_returns_no_program_ends_the_turn() {
    let (blobs, counts) = (Blobs::memory(), Counts::default());
    for reply in [
        "I would rather not.",
        "```python
# %% a
x = (
```
",
        "```rust
fn f() {}
```
",
    ] {
        let slots = slots(&[reply, reply, reply, SCRIPT], bench(&blobs, &counts));
        let run = harness().agent("a", ()).run(Analysis::update().task("add up"), slots);
        let Outcome::Failed(failed) = run.await.unwrap() else { panic!("{reply}") };
        let said = &failed.failure.message;
        assert!(said.contains("no program in 3 rounds"), "{said}");
    }
    assert!(counts.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_patcher_that_repeats_itself_ends_the_turn() {
    let (blobs, counts) = (Blobs::memory(), Counts::default());
    let script = SCRIPT.replace("sum(ys)", "sum(zs)");
    let slots = slots(&[&script], bench(&blobs, &counts));
    let run = harness().agent("a", ()).run(Analysis::update().task("add up"), slots);
    let Outcome::Failed(failed) = run.await.unwrap() else { panic!("it cannot be patched") };
    assert!(failed.failure.message.contains("none of 1 proposed patches is new"), "{failed:?}");
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Run,
}

#[tokio::test]
async fn a_cancel_and_a_timeout_end_the_code_step_that_runs() {
    let program =
        Program::from_script("# %% first\nx = 1\n# %% endless\nwhile True: pass").unwrap();
    for timeout in [None, Some(Duration::from_millis(100))] {
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let start = move || {
            let begun = begun.clone();
            Ok::<_, ExecError>(TinyWorker::new().before_run(move |request| {
                let _ = begun.send(request.step.to_string());
                Ok(())
            }))
        };
        let bench = Bench::new(start, Blobs::memory());
        let agent = Harness::<Ctx, Analysis>::builder("endless")
            .start(Only::Run)
            .steps(|define, Only::Run| {
                let step = define.handler(code::execute(|cx: &Ctx| cx.bench.clone()));
                match timeout {
                    Some(limit) => step.timeout(limit).end(),
                    None => step.end(),
                }
            })
            .build()
            .unwrap()
            .agent("a", ())
            .store(MemoryStore::new());
        let input = Analysis::update().code(Code::added(&program));
        let run = agent.run(input, slots(&[], bench)).session("s").start();
        while begins.recv().await.as_deref() != Some("endless") {}
        if timeout.is_none() {
            run.cancel();
        }
        let outcome = tokio::time::timeout(Duration::from_secs(60), run).await;
        let outcome = outcome.expect("the code step ends with the run").unwrap();
        let code = outcome.state().unwrap().code.clone();
        assert!(matches!(outcome, Outcome::Stopped(_) | Outcome::Failed(_)), "{outcome:?}");
        assert!(!code.is_ok());
    }
}
