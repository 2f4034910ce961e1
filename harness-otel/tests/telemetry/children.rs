//! The spans of children, wherever these run.

use std::sync::Mutex;

use harness::engine::{Delivery, Engine, EngineError, Invocation, Turn, Work};
use harness::prelude::*;
use harness::store::MemoryStore;

use crate::rig::{Doc, Traced, line, only};

#[tokio::test]
async fn a_child_is_in_the_span_of_the_step_that_calls_it() {
    let traced = Traced::new();
    let child = only("child", |_, _| async move { line("child") });
    let agent = only("parent", move |_, cx: Cx<()>| {
        let child = child.clone();
        async move {
            cx.call(&child, Doc::update(), ()).await?;
            // Not durable, and in a task of its own.
            child.run(Doc::update(), ()).session("started").start().await.unwrap();
            line("parent")
        }
    });
    let agent = agent.store(MemoryStore::new());
    agent.run(Doc::update(), ()).session("s").await.unwrap().ended().unwrap();
    insta::assert_snapshot!(traced.tree());
}

/// Keeps what sessions have for one another.
#[derive(Default)]
struct Post(Mutex<Vec<Delivery>>);

#[harness::async_trait]
impl Engine for Post {
    async fn run(&self, _number: u64, work: Work) -> Result<Vec<u8>, EngineError> {
        Ok(work.await)
    }

    fn delivers(&self) -> bool {
        true
    }

    async fn deliver(&self, delivery: Delivery) -> Result<(), EngineError> {
        self.0.lock().unwrap().push(delivery);
        Ok(())
    }
}

/// On an engine, the parent and the child share nothing but what is delivered.
#[tokio::test]
async fn a_child_that_runs_elsewhere_links_to_the_step_that_calls_it() {
    let traced = Traced::new();
    let post = Post::default();
    let child = only("child", |_, _| async move { line("child") });
    let called = child.clone();
    let parent = only("parent", move |_, cx: Cx<()>| {
        let child = called.clone();
        async move {
            cx.call(&child, Doc::update(), ()).await?;
            line("parent")
        }
    });
    let turn = Invocation::new(&parent, "s").run(&post, "first", Doc::update(), ()).await.unwrap();
    let Turn::Settled { checkpoint, .. } = turn else { panic!("{turn:?}") };
    let Some(Delivery::Start(start)) = post.0.lock().unwrap().pop() else { panic!("it calls") };
    let start: harness::engine::ChildStart =
        serde_json::from_str(&serde_json::to_string(&start).unwrap()).unwrap();
    let session = start.session.to_string();
    Invocation::new(&child, session).child(&post, start, ()).await.unwrap();
    let Some(Delivery::Over(over)) = post.0.lock().unwrap().pop() else { panic!("it ends") };
    let session = harness::SessionId::new("s").unwrap();
    let checkpoint = checkpoint.child_over(&session, over).await.unwrap();
    let again = Invocation::new(&parent, "s").checkpoint(checkpoint);
    let turn = again.work(&post, ()).await.unwrap();
    assert!(matches!(turn, Turn::Settled { outcome: Outcome::Ended(_), .. }), "{turn:?}");
    insta::assert_snapshot!(traced.tree());
}
