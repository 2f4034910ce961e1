use std::process::Command;

use harness::SessionId;
use harness::testing::{Contract, Damage, child_worker};
use harness_store::RedisStore;
use redis::Commands as _;

use crate::place::{Place, URL};
use crate::shared_contract;

const CHILD: &str = "HARNESS_STORE_CONTRACT_PREFIX";

/// Each handle is a store of its own with the same keys, as if in a process of its own.
fn contract(place: &Place) -> Contract {
    let place = place.clone();
    Contract::new(move || {
        let place = place.clone();
        async move { place.open().await }
    })
    .max_batch(RedisStore::MAX_BATCH)
}

/// What the trait of stores does not say how to do.
fn outside(contract: Contract, place: &Place) -> Contract {
    let [damaged, looked_at, shared] = [place.clone(), place.clone(), place.clone()];
    contract
        .damage(move |session, how| {
            let place = damaged.clone();
            async move { damage(&place, &session, how) }
        })
        .stored(move |session| {
            let place = looked_at.clone();
            async move { stored(&place, &session) }
        })
        .child(move |_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "contract::child", "--nocapture", "--test-threads=1"]);
            command.env(CHILD, &shared.prefix).env(URL, &shared.url);
            command
        })
}

/// A byte of the second entry. A tail cannot be taken away: the server drops what of its log is not
/// whole. A newer format is one of the whole store.
fn damage(place: &Place, session: &SessionId, how: Damage) -> bool {
    if !matches!(how, Damage::Flip) {
        return false;
    }
    let mut raw = place.raw();
    let key = place.key("log", session);
    let mut batch: Vec<u8> = raw.hget(&key, 2).unwrap();
    let text = b"second entry";
    let Some(at) = batch.windows(text.len()).position(|found| found == text) else { return false };
    batch[at] = b't';
    let _: () = raw.hset(&key, 2, batch).unwrap();
    true
}

/// What is stored of a session, its lease left out.
fn stored(place: &Place, session: &SessionId) -> Vec<u8> {
    let mut raw = place.raw();
    let mut text = String::new();
    for key in place.keys() {
        if !key.ends_with(format!(":{}", session.as_str()).as_bytes()) {
            continue;
        }
        // Whatever is in it, in an order of its own.
        let kind: String = redis::cmd("TYPE").arg(&key).query(&mut raw).unwrap();
        let mut parts: Vec<Vec<u8>> = match &*kind {
            "hash" => {
                let pairs: Vec<(Vec<u8>, Vec<u8>)> = raw.hgetall(&key).unwrap();
                let pairs = pairs.into_iter();
                pairs
                    .filter(|(field, _)| field != b"token" && field != b"until")
                    .map(|(field, value)| [field, value].concat())
                    .collect()
            }
            "list" => raw.lrange(&key, 0, -1).unwrap(),
            "zset" => raw.zrange(&key, 0, -1).unwrap(),
            other => panic!("{other}"),
        };
        if kind == "hash" {
            parts.sort_unstable();
        }
        text += &format!("{key:?} {parts:?}\n");
    }
    text.into()
}

/// What another process does that the suite has started; nothing if this is not one.
#[tokio::test]
async fn child() {
    if let (Ok(prefix), Ok(url)) = (std::env::var(CHILD), std::env::var(URL)) {
        child_worker(Place { url, prefix }.open().await).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept() {
    let place = Place::new("contract");
    let report = outside(contract(&place), &place).run().await;
    shared_contract::is_kept_by_a_database(&report);
}

#[tokio::test]
async fn every_clause_is_kept_by_clones_with_one_connection_on_one_thread() {
    let place = Place::new("contract_clones");
    let store = place.options().max_connections(1).connect(&place.url).await.unwrap();
    shared_contract::by_clones(store).await;
}

#[tokio::test]
async fn every_clause_is_kept_inside_a_store_whose_calls_may_fail() {
    let place = Place::new("contract_faulty");
    let open = move || {
        let place = place.clone();
        async move { place.open().await }
    };
    shared_contract::where_calls_may_fail(open).await;
}
