//! Older and newer tables, and what a server must promise.

use harness::Seq;
use harness::id::AgentId;
use harness::store::{DueRequest, Filter, Phase, SessionStore as _, StoreError};

use crate::place::{Place, append, claim, page};
use crate::support::{LONG, id, summary};

const FIRST: &str = include_str!("../../src/postgres/schema/1.sql");
const SECOND: &str = include_str!("../../src/postgres/schema/2.sql");

async fn refused(place: &Place) -> StoreError {
    place.options().connect(&place.url).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_processes_that_open_a_new_schema_at_once_one_makes_it() {
    let place = Place::new("versions_race").await;
    let open = |_| {
        tokio::spawn({
            let place = place.clone();
            async move { place.open().await }
        })
    };
    let stores: Vec<_> = (0..8).map(open).collect();
    for (store, number) in stores.into_iter().zip(0..) {
        let store = store.await.unwrap();
        let lease = claim(&store, &id(&format!("s{number}"))).await;
        append(&store, &lease, 0, b"one").await.unwrap();
    }
    let listed = place.open().await.list(&Filter::sessions(), None, 100).await.unwrap();
    assert_eq!(listed.rows.len(), 8);
}

#[tokio::test]
async fn the_tables_of_an_older_version_become_those_of_this_one() {
    for (version, tables) in [(1, FIRST.into()), (2, format!("{FIRST} {SECOND}"))] {
        let place = Place::new(&format!("versions_older_{version}")).await;
        place.run(&format!("CREATE SCHEMA {}", place.schema)).await;
        place.run(&format!("CREATE TABLE store (version integer NOT NULL); {tables}")).await;
        let client = place.raw().await;
        let summary = serde_json::to_vec(&summary(Phase::Running)).unwrap();
        let insert = "WITH s AS (
                INSERT INTO session (id, written, agent, phase, summary, head)
                VALUES ('kept', true, 'a', 1, $1, 1) RETURNING key, id
            ), b AS (
                SELECT decode(repeat('07', 16), 'hex') AS token,
                    '\\x06000000'::bytea || 'one' AS entries
            )
            INSERT INTO batch SELECT key, 1, 1, 3, token, NULL, entries,
                substr(sha256(int8send(1) || int8send(1) || token || int8send(octet_length(id))
                    || id || entries), 1, 16) FROM s, b";
        client.execute(insert, &[&summary]).await.unwrap();
        let others = format!(
            "INSERT INTO store VALUES ({version});
             CREATE FUNCTION claim_{version}(bytea) RETURNS void LANGUAGE sql AS 'SELECT';
             CREATE FUNCTION own_1(bytea) RETURNS void LANGUAGE sql AS 'SELECT'"
        );
        client.batch_execute(&others).await.unwrap();
        let store = place.open().await;
        let listed = store.list(&Filter::sessions(), None, 10).await.unwrap();
        assert_eq!(listed.rows.len(), 1);
        let due = DueRequest::new([AgentId::new("a")]);
        let mut due = store.claim_due(&due, LONG).await.unwrap().claimed;
        let lease = due.pop().unwrap().lease;
        append(&store, &lease, 1, b"two").await.unwrap();
        let kept = page(&store, &id("kept")).await;
        assert_eq!((kept.head, &*kept.entries[0].bytes), (Seq(2), &b"one"[..]));
        let left = "SELECT proname::text FROM pg_proc WHERE pronamespace = $1::text::regnamespace
                    AND proname LIKE '%\\__' AND proname NOT LIKE '%\\_3'";
        let left = client.query(left, &[&place.schema]).await.unwrap();
        let left: Vec<&str> = left.iter().map(|row| row.get(0)).collect();
        assert_eq!(left, ["own_1"], "only functions of the store are replaced");
    }
}

#[tokio::test]
async fn a_newer_version_is_refused_by_stores_that_open_and_that_are_open() {
    let place = Place::new("versions_newer").await;
    let store = place.open().await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    place.run("UPDATE store SET version = 4").await;
    let newer = refused(&place).await;
    assert!(matches!(newer, StoreError::NewerFormat { found: 4, known: 3 }), "{newer}");
    // The newer version has replaced the functions.
    for name in ["append", "takes", "claim"] {
        place.run(&format!("ALTER FUNCTION {name}_3 RENAME TO {name}_4")).await;
    }
    for error in [
        append(&store, &lease, 1, b"two").await.unwrap_err(),
        store.claim(&id("y"), LONG).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::NewerFormat { found: 4, known: 3 }), "{error}");
    }
    let listed = store.list(&Filter::sessions(), None, 10).await.unwrap();
    assert_eq!(listed.rows.len(), 1, "the connection is still of use");
}

#[tokio::test]
async fn a_name_of_a_schema_may_have_any_characters() {
    let place = Place::new("versions_name").await;
    let odd = Place { schema: "test \"; drop".into(), ..place };
    let text = format!("DROP SCHEMA IF EXISTS {} CASCADE", "\"test \"\"; drop\"");
    let (client, connection) =
        tokio_postgres::connect(&odd.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&text).await.unwrap();
    for entry in 0..2 {
        let store = odd.open().await;
        let claimed = store.claim(&id(&format!("x{entry}")), LONG).await.unwrap();
        append(&store, &claimed.lease, 0, b"one").await.unwrap();
    }
}

#[tokio::test]
async fn a_user_that_the_server_refuses_is_unsuitable() {
    let place = Place::new("versions_user").await;
    let mut config: tokio_postgres::Config = place.url.parse().unwrap();
    config.user("no_such_user").password("tiger");
    let tokio_postgres::config::Host::Tcp(host) = &config.get_hosts()[0] else { panic!() };
    let url = format!(
        "postgres://no_such_user:tiger@{host}:{}/{}",
        config.get_ports()[0],
        config.get_dbname().unwrap()
    );
    let error = place.options().connect(&url).await.unwrap_err();
    assert!(matches!(error, StoreError::Unsuitable(_)), "{error}");
    assert!(!format!("{error} {error:?}").contains("tiger"));
    let store = place.open().await;
    assert!(!format!("{store:?}").contains("harness@"), "{store:?}");
}
