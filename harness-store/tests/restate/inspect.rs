//! The engine's sessions through `Sessions`, as those of any store.

use harness::inspect::Phase;
use harness::prelude::*;
use harness::store::{DueRequest, Filter, SessionStore, StoreError};
use harness::{SessionId, Sessions};
use harness_store::restate::{RestateError, RestateService, RestateStore, ServiceError};

use crate::orders::{Order, World, agent, slots};
use crate::place::{Addresses, Running, name, run};

async fn orders() -> (tempfile::TempDir, RestateStore, Running) {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path().join("effects"));
    let agent = agent(&name("shop"));
    let store = Addresses::shared().sessions(&agent);
    let service = RestateService::new().serve(&agent, move |_| {
        let slots = slots(&world);
        async move { Ok(slots) }
    });
    let running = run(service, &store).await;
    (dir, store, running)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_lists_inspects_and_answers_them() {
    let (_dir, store, _running) = orders().await;
    let ids = ["a", "b'; drop table state", "c/d ?#%", "é"];
    for id in ids {
        store.run(id, "in", &Order::update()).await.unwrap();
    }
    // As a program does that takes the place of its sessions from its configuration.
    let Addresses { ingress, admin } = Addresses::shared();
    let at = ingress.replace("http://", "restate://");
    let url = format!("{at}/{}?admin={admin}", store.agent());
    let sessions = Sessions::shared(harness_store::open(&url).await.unwrap());
    let open = sessions.pending_interrupts().await.unwrap();
    let found: Vec<_> = open.rows.iter().map(|row| row.session.as_str()).collect();
    assert_eq!(found, ids);
    for waiting in &open.rows {
        assert_eq!(
            (&*waiting.interrupt.name, waiting.interrupt.question["to"].as_str()),
            ("send", Some("sam"))
        );
        let answer = Answers::json(waiting.interrupt.id.clone(), true.into()).by("kim");
        let recorded = sessions.answer_json(&waiting.session, answer).await.unwrap();
        assert!(recorded.open.is_empty());
    }
    // The engine applies the answers, and no process waits for it.
    for id in ids {
        while sessions.status(id).await.unwrap().phase != Phase::Ended {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let second = Answers::json(open.rows[0].interrupt.id.clone(), false.into());
        assert!(sessions.answer_json(id, second).await.is_err());
    }
    assert!(sessions.pending_interrupts().await.unwrap().rows.is_empty());
    let missing = sessions.status("none").await.unwrap_err();
    assert!(missing.is_not_found(), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_read_page_by_page() {
    let (_dir, store, _running) = orders().await;
    for number in 0..7 {
        store.run(&format!("s{number}"), "in", &Order::update()).await.unwrap();
    }
    for filter in
        [Filter::sessions(), Filter::interrupts(), Filter::sessions().phase(Phase::Interrupted)]
    {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.list(&filter, after.as_deref(), 3).await.unwrap();
            assert!(page.rows.len() <= 3);
            found.extend(page.rows.into_iter().map(|row| row.session.to_string()));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(found, (0..7).map(|number| format!("s{number}")).collect::<Vec<_>>());
    }
    let none = Filter::sessions().phase(Phase::Failed);
    assert!(store.list(&none, None, 10).await.unwrap().rows.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_process_but_the_service_runs_a_session() {
    let (_dir, store, _running) = orders().await;
    store.run("o", "in", &Order::update()).await.unwrap();
    let session = SessionId::new("o").unwrap();
    let ttl = std::time::Duration::from_secs(1);
    let claimed = store.claim(&session, ttl).await.unwrap_err();
    assert!(matches!(claimed, StoreError::Unsuitable(_)), "{claimed}");
    let due = store.claim_due(&DueRequest::new(Vec::new()), ttl).await.unwrap_err();
    assert!(due.to_string().contains("RestateService"), "{due}");
    let deleted = Sessions::new(store).delete("o").await.unwrap_err();
    assert!(deleted.to_string().contains("run by its service"), "{deleted}");
}

#[tokio::test]
async fn a_service_that_cannot_be_one_does_not_start() {
    let here = "127.0.0.1:0".parse().unwrap();
    let none = RestateService::new().listen(here).await.unwrap_err();
    assert!(matches!(none, ServiceError::NoAgent));
    let named = |name: &str| {
        let world = World::new("unused");
        RestateService::new().serve(&agent(name), move |_| {
            let slots = slots(&world);
            async move { Ok(slots) }
        })
    };
    let invalid = named("1 shop").listen(here).await.unwrap_err();
    assert!(matches!(invalid, ServiceError::InvalidName { .. }), "{invalid}");
    let key = named("shop").identity_key("not one").listen(here).await.unwrap_err();
    assert!(matches!(key, ServiceError::InvalidKey), "{key}");
    let address = RestateStore::new(agent("shop").id(), "nowhere", "http://127.0.0.1").unwrap_err();
    assert!(matches!(address, RestateError::Address { .. }), "{address}");
    // Nothing listens there.
    let closed = "http://127.0.0.1:1";
    let store = RestateStore::new(agent("shop").id(), closed, closed).unwrap();
    let down = store.resume("o").await.unwrap_err();
    assert!(matches!(down, RestateError::Unreachable { ambiguous: false, .. }), "{down}");
}
