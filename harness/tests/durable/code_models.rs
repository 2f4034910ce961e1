//! Steps that ask a model for a program or a patch, and get no reply.

use std::sync::Arc;
use std::time::Duration;

use harness::async_trait;
use harness::code::{self, Code, CodeChange, LlmPatcher};
use harness::esg::{Blobs, Program};
use harness::llm::{CallCx, Llm, LlmError, ModelId, Reply, Request};
use harness::prelude::*;
use harness::store::MemoryStore;
use tokio::sync::Notify;

use super::code_steps::{Analysis, Counts, Ctx, bench};

/// Says that it was asked, and never replies.
struct Silent(Arc<Notify>);

#[async_trait]
impl Llm for Silent {
    fn id(&self) -> ModelId {
        ModelId::new("test", "silent")
    }

    async fn complete(&self, _: Request<'_>, _: &CallCx) -> Result<Reply, LlmError> {
        self.0.notify_one();
        std::future::pending().await
    }
}

#[derive(Clone, Copy, Debug)]
enum Asks {
    Program,
    Patch,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Ask,
}

/// A program whose only code step fails, with the reason.
fn failing() -> Vec<CodeChange> {
    let mut changes = Code::added(&Program::from_script("# %% total\nn = sum(ys)").unwrap());
    let diagnosis = serde_json::json!({
        "kind": "missing_name",
        "failing": {"step": "total", "version": 1, "line": 1, "text": "n = sum(ys)"},
        "ending": {"kind": "raised", "type": "NameError", "message": "name 'ys' is not defined", "line": 1},
        "root": null, "evidence": [], "affected": [],
        "fault": {"kind": "NameError", "message": "name 'ys' is not defined", "frames": [{"line": 1}], "name": "ys"},
    });
    changes.push(CodeChange::Diagnosed(Some(Box::new(serde_json::from_value(diagnosis).unwrap()))));
    changes
}

#[tokio::test]
async fn a_cancel_and_a_timeout_end_a_step_whose_model_does_not_reply() {
    for asks in [Asks::Program, Asks::Patch] {
        for timeout in [None, Some(Duration::from_millis(100))] {
            let harness = Harness::<Ctx, Analysis>::builder("silent")
                .start(Only::Ask)
                .steps(|define, Only::Ask| {
                    let step = match asks {
                        Asks::Program => define.handler(code::generate(
                            |cx: &Ctx| cx.model.clone(),
                            |state: &Analysis| state.task.clone(),
                        )),
                        Asks::Patch => define.handler(code::patch(|cx: &Cx<Ctx>| {
                            LlmPatcher::of_step(cx, &cx.model)
                        })),
                    };
                    match timeout {
                        Some(limit) => step.timeout(limit).end(),
                        None => step.end(),
                    }
                })
                .build()
                .unwrap();
            let asked = Arc::new(Notify::new());
            let slots = Ctx::runtime()
                .model(Arc::new(Silent(Arc::clone(&asked))))
                .bench(bench(&Blobs::memory(), &Counts::default()))
                .build();
            let agent = harness.agent("a", ()).store(MemoryStore::new());
            let input = Analysis::update().task("add up").code(failing());
            let run = agent.run(input, slots).session("s").start();
            asked.notified().await;
            if timeout.is_none() {
                run.cancel();
            }
            let outcome = tokio::time::timeout(Duration::from_secs(20), run).await;
            let outcome = outcome.unwrap_or_else(|_| panic!("{asks:?} ends with the run")).unwrap();
            assert!(matches!(outcome, Outcome::Stopped(_) | Outcome::Failed(_)), "{outcome:?}");
        }
    }
}
