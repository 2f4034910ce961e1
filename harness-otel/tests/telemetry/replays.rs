//! The spans of code steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::code::{self, Bench, Code};
use harness::esg::testing::TinyWorker;
use harness::esg::{Blobs, ExecError, Program};
use harness::prelude::*;

use crate::rig::Traced;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Analysis {
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
}

/// The sources and the values are not exported.
#[tokio::test]
async fn a_replay_has_a_span_with_the_code_steps_that_ran() {
    for (sampled, spans) in [(1.0, 3), (0.0, 0)] {
        let traced = Traced::of(|builder| builder.sample(sampled));
        let harness = Harness::<Ctx, Analysis>::builder("analyst")
            .start(Step::Run)
            .steps(|define, Step::Run| {
                define.handler(code::execute(|cx: &Ctx| cx.bench.clone())).end()
            })
            .build()
            .unwrap();
        let bench = Bench::new(|| Ok::<_, std::io::Error>(TinyWorker::new()), Blobs::memory());
        let agent = harness.agent("bot", Ctx::required().bench(bench).build());
        let script = "# %% load\nsecret = [3, 1]\n# %% sum\nn = sum(secret)\n# %% fail\nm = ys";
        let program = Program::from_script(script).unwrap();
        let input = Analysis::update().code(Code::added(&program));
        agent.run(input, ()).session("s").await.unwrap().ended().unwrap();
        assert_eq!(traced.spans().len(), spans);
        if spans > 0 {
            insta::assert_snapshot!(traced.tree());
        }
    }
}

#[tokio::test]
async fn a_replay_says_which_code_steps_an_earlier_attempt_has_run() {
    let traced = Traced::new();
    let harness = Harness::<Ctx, Analysis>::builder("analyst")
        .start(Step::Run)
        .steps(|define, Step::Run| {
            let run = define.handler(code::execute(|cx: &Ctx| cx.bench.clone()));
            run.retry(Retry::every(Duration::from_millis(1)).times(1)).end()
        })
        .build()
        .unwrap();
    let broke = Arc::new(AtomicBool::new(false));
    let start = move || {
        let broke = Arc::clone(&broke);
        Ok::<_, ExecError>(TinyWorker::new().before_run(move |request| {
            match request.source.contains("sum(xs)") && !broke.swap(true, Ordering::SeqCst) {
                true => Err(ExecError::new("it broke down")),
                false => Ok(()),
            }
        }))
    };
    let bench = Bench::new(start, Blobs::memory());
    let agent = harness.agent("bot", Ctx::required().bench(bench).build());
    let script = "# %% load\nxs = [3, 1]\n# %% more\nxs.append(2)\n# %% sum\nn = sum(xs)";
    let program = Program::from_script(script).unwrap();
    let input = Analysis::update().code(Code::added(&program));
    agent.run(input, ()).session("s").await.unwrap().ended().unwrap();
    insta::assert_snapshot!(traced.tree());
}
