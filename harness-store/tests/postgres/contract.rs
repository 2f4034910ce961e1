use std::process::Command;

use harness::SessionId;
use harness::testing::{Contract, Damage, child_worker};
use harness_store::PostgresStore;

use crate::place::{Place, URL};
use crate::shared_contract;

const CHILD: &str = "HARNESS_STORE_CONTRACT_SCHEMA";

/// Each handle is a store of its own on the same schema, as if in a process of its own.
fn contract(place: &Place) -> Contract {
    let place = place.clone();
    Contract::new(move || {
        let place = place.clone();
        async move { place.open().await }
    })
    .max_batch(PostgresStore::MAX_BATCH)
}

/// What the trait of stores does not say how to do.
fn outside(contract: Contract, place: &Place) -> Contract {
    let [damaged, looked_at, shared] = [place.clone(), place.clone(), place.clone()];
    contract
        .damage(move |session, how| {
            let place = damaged.clone();
            async move { damage(&place, &session, how).await }
        })
        .stored(move |session| {
            let place = looked_at.clone();
            async move { stored(&place, &session).await }
        })
        .child(move |_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "contract::child", "--nocapture", "--test-threads=1"]);
            command.env(CHILD, &shared.schema).env(URL, &shared.url);
            command
        })
}

/// A byte of the second entry. A tail cannot be taken away: the server drops what of its log is not
/// whole. A newer format is one of the whole schema.
async fn damage(place: &Place, session: &SessionId, how: Damage) -> bool {
    if !matches!(how, Damage::Flip) {
        return false;
    }
    let text = "UPDATE batch SET entries = overlay(entries PLACING 'tecond entry'::bytea
                FROM position('second entry'::bytea IN entries))
                WHERE position('second entry'::bytea IN entries) > 0
                AND session = (SELECT key FROM session WHERE id = $1)";
    let id = session.as_str().as_bytes();
    place.raw().await.execute(text, &[&id]).await.unwrap() == 1
}

/// The rows of a session as text, its lease left out.
async fn stored(place: &Place, session: &SessionId) -> Vec<u8> {
    let client = place.raw().await;
    let id = session.as_str().as_bytes();
    let mut text = String::new();
    for select in [
        "SELECT concat_ws('|', key, fence, head, inbox, updated, summary) FROM session WHERE id = $1",
        "SELECT b::text FROM batch b
         WHERE session = (SELECT key FROM session WHERE id = $1) ORDER BY first",
        "SELECT m::text FROM message m
         WHERE session = (SELECT key FROM session WHERE id = $1) ORDER BY seq",
    ] {
        for row in client.query(select, &[&id]).await.unwrap() {
            text += row.get::<_, &str>(0);
            text.push('\n');
        }
    }
    text.into()
}

/// What another process does that the suite has started; nothing if this is not one.
#[tokio::test]
async fn child() {
    if let (Ok(schema), Ok(url)) = (std::env::var(CHILD), std::env::var(URL)) {
        child_worker(Place { url, schema }.open().await).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept() {
    let place = Place::new("contract").await;
    let report = outside(contract(&place), &place).run().await;
    shared_contract::is_kept_by_a_database(&report);
}

#[tokio::test]
async fn every_clause_is_kept_by_clones_with_one_connection_on_one_thread() {
    let place = Place::new("contract_clones").await;
    let store = place.options().max_connections(1).connect(&place.url).await.unwrap();
    shared_contract::by_clones(store).await;
}

#[tokio::test]
async fn every_clause_is_kept_inside_a_store_whose_calls_may_fail() {
    let place = Place::new("contract_faulty").await;
    let open = move || {
        let place = place.clone();
        async move { place.open().await }
    };
    shared_contract::where_calls_may_fail(open).await;
}
