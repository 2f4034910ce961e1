//! Many sessions at once.

use std::sync::Arc;

use harness::inspect::Phase;
use harness::store::{Filter, SessionStore};
use harness_store::restate::RestateService;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::orders::{Order, World, agent, slots};
use crate::place::{Addresses, name, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_sessions_at_once_come_to_their_question() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path().join("effects"));
    let agent = agent(&name("crowd"));
    let store = Addresses::shared().sessions(&agent);
    let its = world.clone();
    let service = RestateService::new().serve(&agent, move |_| {
        let slots = slots(&its);
        async move { Ok(slots) }
    });
    let _running = run(service, &store).await;
    let (mut tasks, room) = (JoinSet::new(), Arc::new(Semaphore::new(200)));
    for number in 0..1000 {
        let (store, room) = (store.clone(), Arc::clone(&room));
        tasks.spawn(async move {
            let _permit = room.acquire().await.unwrap();
            store.run(&format!("s{number:03}"), "in", &Order::update()).await.unwrap().phase
        });
    }
    while let Some(rests) = tasks.join_next().await {
        assert_eq!(rests.unwrap(), Phase::Interrupted);
    }
    let open = store.list(&Filter::interrupts(), None, 2000).await.unwrap();
    assert_eq!(open.rows.len(), 1000);
    assert_eq!(world.lines().len(), 2000);
}
