//! The auto traits and sizes of public types.
#![allow(missing_docs, clippy::unwrap_used)]

use harness::observe::{Event, Events, Recorder, Scope};
use harness::prelude::*;
use harness::{
    Ended, Exhausted, Failed, Failure, Interrupted, Run, RunError, RunRequest, Stopped,
    graph::Graph, run::RunControl,
};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Doc {
    text: String,
}

/// A slot that is `Send` but not `Sync`.
struct OneThread(std::cell::Cell<u8>);

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    sender: std::sync::Mutex<OneThread>,
}

fn send<T: Send>() {}
fn send_sync<T: Send + Sync>() {}

#[test]
fn public_types_are_send_or_sync() {
    send_sync::<Harness<Ctx, Doc>>();
    send_sync::<Agent<Ctx, Doc>>();
    send_sync::<Graph>();
    send_sync::<Outcome<Doc>>();
    send_sync::<Ended<Doc>>();
    send_sync::<Interrupted<Doc>>();
    send_sync::<Stopped<Doc>>();
    send_sync::<Exhausted<Doc>>();
    send_sync::<Failed<Doc>>();
    send_sync::<Failure>();
    send_sync::<RunError>();
    send_sync::<RunControl>();
    send_sync::<Run<Doc>>();
    send_sync::<Event>();
    send_sync::<Scope>();
    send_sync::<Recorder>();
    send_sync::<Answers>();
    send_sync::<View<Doc>>();
    send_sync::<Cx<Ctx>>();
    send::<Events>();
    send::<RunRequest<Doc>>();
    send::<StepError>();
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
}

fn agent() -> Agent<Ctx, Doc> {
    Harness::<Ctx, Doc>::builder("types")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define
                .run(async |_, cx| {
                    let n = cx.sender.lock().map_or(0, |it| it.0.get());
                    tokio::task::yield_now().await;
                    Ok(Doc::update().text(n.to_string()))
                })
                .end(),
        })
        .build()
        .unwrap()
        .agent("a", ())
}

fn slots() -> <Ctx as Context>::Runtime {
    Ctx::runtime().sender(std::sync::Mutex::new(OneThread(std::cell::Cell::new(7)))).build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_future_of_a_run_is_send_and_its_outcome_is_inferred() {
    let agent = agent();
    let whole = async move {
        // The type of the state is inferred.
        let ended = agent.run(Doc::update(), slots()).await?.ended()?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(ended.state.text)
    };
    assert_eq!(tokio::spawn(whole).await.unwrap().unwrap(), "7");
}

#[test]
fn an_error_is_one_pointer() {
    assert_eq!(size_of::<RunError>(), size_of::<usize>());
    assert_eq!(size_of::<Result<(), RunError>>(), size_of::<usize>());
}
