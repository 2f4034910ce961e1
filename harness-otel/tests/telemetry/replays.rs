//! The spans of code steps.

use harness::code::{self, Bench, Code};
use harness::esg::testing::TinyWorker;
use harness::esg::{Blobs, Program};
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
