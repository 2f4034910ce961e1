//! Earlier states of a program, and other ways from there.

use std::sync::{Arc, Mutex};

use harness::code::Reviewed;
use harness::esg::patcher::{Patcher, Proposing};
use harness::esg::{Blobs, Diagnosis, Patch, Program};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Interrupt, Seq};

use super::code_steps::{Analysis, Counts, Ctx, bench, patched_by, slots, story};

const SCRIPT: &str =
    "```python\n# %% load\nxs = [3, 1]\n# %% total\nn = sum(ys)\n# %% show\nprint(n)\n```\n";

/// Replaces `sum(ys)` by what is said at present.
#[derive(Clone)]
struct Says(Arc<Mutex<&'static str>>);

impl Patcher for Says {
    fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a> {
        let step = &diagnosis.failing.step;
        let source = program.step(step).unwrap().source.replace("sum(ys)", *self.0.lock().unwrap());
        let patch = Patch::step(step, &source);
        Box::pin(async move { Ok(vec![patch]) })
    }
}

/// What approves the program that a run asks about.
fn approved(outcome: &Outcome<Analysis>) -> Answers {
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let approve =
        |asked: &Interrupt| Answers::json(asked.id.clone(), serde_json::json!(Reviewed::Approved));
    approve(&waiting.questions[0])
}

fn output(state: &Analysis) -> String {
    let show = state.code.ledger().execution("show").unwrap();
    String::from_utf8_lossy(&show.stdout.bytes).into_owned()
}

#[tokio::test]
async fn a_fork_patches_a_program_of_its_own_and_runs_only_what_differs() {
    let says = Says(Arc::new(Mutex::new("sum(xs)")));
    let patcher = says.clone();
    let (blobs, counts) = (Blobs::memory(), Counts::default());
    let agent =
        patched_by(move |_: &Cx<Ctx>| patcher.clone()).agent("a", ()).store(MemoryStore::new());
    // Every run has a bench of its own, as in another process.
    let slots = || slots(&[SCRIPT], bench(&blobs, &counts));
    let run = agent.run(Analysis::update().task("add up"), slots()).session("s").await.unwrap();
    let yes = approved(&run);
    let ended = agent.resume("s", yes, slots()).await.unwrap().ended().unwrap();
    assert_eq!(output(&ended.state), "4\n");

    // Each earlier state has the program as it was then.
    let past = agent.history("s", Seq(0), 100).await.unwrap().moments;
    let total = |state: &Analysis| {
        let step = state.code.program().step("total").ok()?;
        Some(step.source.trim().to_owned())
    };
    let mut sources: Vec<_> = past.iter().map(|moment| total(&moment.state)).collect();
    sources.dedup();
    assert_eq!(sources, [None, Some("n = sum(ys)".into()), Some("n = sum(xs)".into())]);
    let failing = past.iter().find(|moment| moment.step == "Repair").unwrap();
    assert!(failing.state.code.diagnosis().is_some() && !failing.state.code.is_ok());

    // From where it was about to be patched, another patch.
    *says.0.lock().unwrap() = "len(xs)";
    agent.fork("s", failing.seq, "t").await.unwrap();
    let run = agent.resume("t", Answers::none(), slots()).await.unwrap();
    let yes = approved(&run);
    let other = agent.resume("t", yes, slots()).await.unwrap().ended().unwrap();
    assert_eq!(total(&other.state).as_deref(), Some("n = len(xs)"));
    assert_eq!(output(&other.state), "2\n");

    // What both have in common ran once, and the first session is as it was.
    let counts = counts.lock().unwrap().clone();
    assert_eq!((counts["xs = [3, 1]"], counts["n = sum(ys)"]), (1, 1), "{counts:?}");
    assert_eq!((counts["n = sum(xs)"], counts["n = len(xs)"]), (1, 1), "{counts:?}");
    let now = agent.history("s", Seq(0), 100).await.unwrap().moments.pop().unwrap().state;
    assert_eq!(story(&now), story(&ended.state));
}
