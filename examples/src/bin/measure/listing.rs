//! Lists of 100,000 sessions that wait for an answer: a page at the beginning, in the middle and at the
//! end, beside a page of 1,000. A page takes as long, however many sessions there are. After them, the
//! call with which an idle worker looks for one that is due.
//!
//! The sessions on a server stay there, for the next time, in a schema or under a prefix of their own.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use harness::id::AgentId;
use harness::store::{
    Batch, DueRequest, Filter, InboxSeq, NewEntry, OpenInterrupt, Phase, SessionStore,
    SessionSummary, StoreError, rules,
};
use harness::{Seq, SessionId, UtcMillis};
use harness_store::{
    FileStoreOptions, PostgresStoreOptions, RedisStoreOptions, SqliteStoreOptions, Sync,
};

use super::disk::dir;
use super::{Figure, block_on, compare_waiting, failed, is_once};

const PAGE: u32 = 100;
const AT_ONCE: usize = 64;
const LEASE: Duration = Duration::from_secs(60);

/// How many sessions there are in the smaller and in the larger store.
fn sizes() -> [u32; 2] {
    if is_once() { [400, 1_000] } else { [1_000, 100_000] }
}

fn id(nth: u32) -> Result<SessionId, StoreError> {
    SessionId::new(format!("s-{nth:06}")).map_err(|error| StoreError::Unsuitable(error.to_string()))
}

/// A session that waits for an answer; one of an earlier time is left as it is.
async fn waiting(store: &dyn SessionStore, nth: u32) -> Result<(), StoreError> {
    let claimed = store.claim(&id(nth)?, LEASE).await?;
    if claimed.head == Seq(0) {
        let summary = SessionSummary::new(AgentId::new("list"), Phase::Interrupted, "ask");
        let open = [OpenInterrupt::new("question", UtcMillis::now())];
        let entries = [NewEntry { bytes: b"{}", snapshot: false }];
        let (summary, at) = (Some(&summary), UtcMillis::now());
        let batch = Batch { at, entries: &entries, summary, open: &open, ..Batch::default() };
        store.append(&claimed.lease, batch).await?;
    }
    store.release(&claimed.lease, InboxSeq(0)).await?;
    Ok(())
}

pub(super) async fn fill(store: &dyn SessionStore, sessions: u32) -> Result<(), StoreError> {
    let all = (0..sessions).map(|nth| waiting(store, nth));
    futures_util::stream::iter(all).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

/// A page of the sessions that wait, and a page of what they ask.
async fn page(store: &dyn SessionStore, after: Option<&[u8]>) -> Result<(), StoreError> {
    for filter in [Filter::sessions().phase(Phase::Interrupted), Filter::interrupts()] {
        let listing = store.list(&filter, after, PAGE).await?;
        assert_eq!(listing.rows.len(), PAGE as usize, "a page is full");
    }
    Ok(())
}

/// What a worker asks that has nothing to do, once a second.
async fn none_due(store: &dyn SessionStore) -> Result<(), StoreError> {
    let due = store.claim_due(&DueRequest::new([AgentId::new("list")]), LEASE).await?;
    assert!(due.claimed.is_empty(), "they wait for answers");
    Ok(())
}

fn figures(
    name: &str,
    [small, large]: [&dyn SessionStore; 2],
) -> Result<Vec<Figure>, Box<dyn std::error::Error>> {
    let [few, many] = sizes();
    block_on(fill(small, few))?;
    block_on(fill(large, many))?;
    let begun = Instant::now();
    block_on(page(large, None))?;
    eprintln!("measure: {name}: the first list of {many} sessions takes {:.1?}", begun.elapsed());
    let key = |nth: u32| id(nth).map(|id| rules::list_key(&id, None));
    let middle = key(few / 2)?;
    let places = [("first", None), ("middle", Some(many / 2)), ("last", Some(many - PAGE - 1))];
    let mut figures = Vec::new();
    for (place, after) in places {
        let after = after.map(key).transpose()?;
        let listed = |store, after| assert!(block_on(page(store, after)).is_ok(), "it is listed");
        let figure = compare_waiting(
            format!("list-{name}/{place}"),
            1,
            || listed(large, after.as_deref()),
            || listed(small, Some(&middle)),
        );
        figures.push(Figure { unit: "ns/page", ..figure });
    }
    let none = |store| assert!(block_on(none_due(store)).is_ok(), "none is due");
    let figure = compare_waiting(format!("idle-{name}"), 1, || none(large), || none(small));
    figures.push(Figure { unit: "ns/call", ..figure });
    Ok(figures)
}

fn measured<S: SessionStore>(
    name: &str,
    open: impl Fn(&str) -> Result<S, StoreError>,
) -> Vec<Figure> {
    let measure = || -> Result<Vec<Figure>, Box<dyn std::error::Error>> {
        let (small, large) = (open("list_few")?, open("list_many")?);
        figures(name, [&small, &large])
    };
    measure().unwrap_or_else(|error| {
        eprintln!("measure: list-{name}: {error}");
        vec![failed(&format!("list-{name}"))]
    })
}

pub(super) fn file() -> Vec<Figure> {
    let Ok(dir) = dir() else { return vec![failed("list-file")] };
    // How durable they are says nothing about lists.
    measured("file", |name| {
        block_on(FileStoreOptions::new().sync(Sync::Never).open(dir.path().join(name)))
    })
}

pub(super) fn sqlite() -> Vec<Figure> {
    let Ok(dir) = dir() else { return vec![failed("list-sqlite")] };
    measured("sqlite", |name| {
        block_on(SqliteStoreOptions::new().sync(Sync::Never).open(dir.path().join(name)))
    })
}

pub(super) fn postgres() -> Vec<Figure> {
    let Some(url) = server("HARNESS_POSTGRES_URL") else { return Vec::new() };
    measured("postgres", |name| {
        block_on(PostgresStoreOptions::new().schema(format!("harness_{name}")).connect(&url))
    })
}

pub(super) fn redis() -> Vec<Figure> {
    let Some(url) = server("HARNESS_REDIS_URL") else { return Vec::new() };
    measured("redis", |name| {
        block_on(RedisStoreOptions::new().prefix(format!("harness_{name}")).connect(&url))
    })
}

fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        eprintln!("measure: `{variable}` is not set: lists of that server are not measured");
    }
    url
}
