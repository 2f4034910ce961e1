//! A session with a program of code steps.

use std::path::Path;
use std::sync::Arc;

use harness::code::{self, Bench, Code, CodeChange};
use harness::esg::{Blobs, CPython, Patch, Program, Record, Trust};
use harness::prelude::*;

use super::rig::Rig;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Work {
    #[state(esg)]
    code: Code,
    note: String,
}

#[derive(Context)]
pub(crate) struct Ctx {
    #[slot(runtime)]
    bench: Bench,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Run,
}

pub(crate) fn bench() -> Bench {
    Bench::new(|| CPython::find().trust(Trust::Mine).start(), Blobs::memory())
}

/// A program that reads a file of the machine it runs on.
fn program(file: &Path) -> Program {
    let script = format!(
        "# %% load\nrows = [int(x) for x in open({:?}).read().split()]  # <script>alert(1)</script>\n\
         # %% total\ntotal = sum(row)\n# %% show\nprint('<img src=x>', total)\n",
        file.to_str().unwrap()
    );
    Program::from_script(&script).unwrap()
}

/// The changes that a patch makes.
fn patched(program: &Program, patch: &Patch) -> (Program, Vec<CodeChange>) {
    let mut after = program.clone();
    let mark = after.mark();
    after.patch(patch).unwrap();
    let records = after.operations(mark).iter().cloned().map(Record::Edited);
    let changes = records.map(CodeChange::from).collect();
    (after, changes)
}

/// An agent that runs the program of its state.
pub(crate) fn agent(rig: &Rig) -> Agent<Ctx, Work> {
    let harness = Harness::<Ctx, Work>::builder("analyst")
        .start(Step::Run)
        .steps(|define, step| match step {
            Step::Run => define.handler(code::execute(|cx: &Ctx| cx.bench.clone())).end(),
        })
        .build()
        .unwrap();
    harness.agent("analyst", ()).shared_store(Arc::clone(&rig.store))
}

/// A session whose program failed, was patched, and had an edit after it.
pub(crate) async fn session(rig: &Rig, bench: &Bench, file: &Path) -> Agent<Ctx, Work> {
    let agent = agent(rig);
    let first = program(file);
    let fix = Patch::search_replace("total", "sum(row)", "sum(rows)").agent("<b>fixer</b>");
    let (second, fixed) = patched(&first, &fix);
    // The first of two edits never runs.
    let edit = Patch::search_replace("total", "sum(rows)", "sum(rows) + 1");
    let (third, mut edited) = patched(&second, &edit);
    let edit = Patch::search_replace("total", "sum(rows) + 1", "sum(rows) + 2");
    edited.extend(patched(&third, &edit).1);
    for changes in [Code::added(&first), fixed, edited] {
        turn(&agent, bench, Work::update().code(changes)).await;
    }
    agent
}

pub(crate) async fn turn(
    agent: &Agent<Ctx, Work>,
    bench: &Bench,
    input: <Work as harness::state::State>::Update,
) {
    let slots = Ctx::runtime().bench(bench.clone()).build();
    agent.run(input, slots).session("s").await.unwrap().ended().unwrap();
}
