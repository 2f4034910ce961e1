//! The inspector over 100,000 sessions in an SQLite database: its first page, beside the list that it
//! shows; and how long after a commit the page of a session has its event, beside the commit.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::id::AgentId;
use harness::store::{
    Batch, Filter, InboxSeq, NewEntry, Phase, SessionStore, SessionSummary, StoreError,
};
use harness::{Seq, SessionId, UtcMillis};
use harness_inspector::Inspector;
use harness_store::{SqliteStore, SqliteStoreOptions, Sync};

use super::disk::dir;
use super::{Figure, block_on, compare_waiting, failed, is_once, listing, median};

/// The rows of a page.
const ROWS: u32 = 50;
const LEASE: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error>;

/// An inspector on a thread of its own, as it is in another process.
fn serve(store: Arc<dyn SessionStore>) -> Result<SocketAddr, Failure> {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        block_on(async {
            let Ok(serving) = Inspector::new(store).bind(([127, 0, 0, 1], 0).into()).await else {
                return;
            };
            if send.send(serving.local_addr()).is_ok() {
                let _ = serving.serve().await;
            }
        });
    });
    Ok(receive.recv()??)
}

fn get(address: SocketAddr, path: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n")?;
    Ok(stream)
}

fn page(address: SocketAddr) -> std::io::Result<bool> {
    let mut text = String::new();
    get(address, "/")?.read_to_string(&mut text)?;
    Ok(text.starts_with("HTTP/1.0 200") && text.matches("/session?id=").count() == ROWS as usize)
}

fn first_page() -> Result<Figure, Failure> {
    let dir = dir()?;
    let options = SqliteStoreOptions::new().sync(Sync::Never);
    let store: Arc<SqliteStore> = Arc::new(block_on(options.open(dir.path().join("many")))?);
    let sessions = if is_once() { 1_000 } else { 100_000 };
    block_on(listing::fill(&*store, sessions))?;
    let address = serve(store.clone())?;
    let listed = || block_on(store.list(&Filter::sessions(), None, ROWS)).is_ok();
    let figure = compare_waiting(
        format!("inspector-list/{sessions}"),
        1,
        || assert!(page(address).is_ok_and(|it| it), "the page has its rows"),
        || assert!(listed(), "it is listed"),
    );
    Ok(Figure { unit: "ns/page", ..figure })
}

/// Appends an entry to a session at work.
async fn commit(
    store: &dyn SessionStore,
    lease: &harness::store::Lease,
    after: Seq,
) -> Result<(), StoreError> {
    let summary = SessionSummary::new(AgentId::new("live"), Phase::Running, "step");
    let entries = [NewEntry { bytes: b"{}", snapshot: false }];
    let (summary, at) = (Some(&summary), UtcMillis::now());
    let batch = Batch { after, at, entries: &entries, summary, ..Batch::default() };
    store.append(lease, batch).await.map(|_| ())
}

fn live_event() -> Result<Figure, Failure> {
    let dir = dir()?;
    let options = SqliteStoreOptions::new();
    let store: Arc<SqliteStore> = Arc::new(block_on(options.open(dir.path().join("live")))?);
    let session = SessionId::new("s-1")?;
    let lease = block_on(store.claim(&session, LEASE))?.lease;
    block_on(commit(&*store, &lease, Seq(0)))?;
    let address = serve(store.clone())?;
    let mut lines = BufReader::new(get(address, "/session/events?id=s-1")?).lines();
    let mut head = || -> Result<u64, Failure> {
        loop {
            let line = lines.next().ok_or("the events have ended")??;
            if let Some(head) = line.strip_prefix("data: ") {
                return Ok(head.parse()?);
            }
        }
    };
    head()?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for nth in 1..=(if is_once() { 2 } else { 40 }) {
        let begun = Instant::now();
        block_on(commit(&*store, &lease, Seq(nth)))?;
        floor.push(begun.elapsed().as_nanos() as f64);
        let committed = Instant::now();
        while head()? <= nth {}
        ours.push(committed.elapsed().as_nanos() as f64);
    }
    block_on(store.release(&lease, InboxSeq(0)))?;
    let (ours, floor) = (median(ours.into_iter()), median(floor.into_iter()));
    let (case, unit) = ("inspector-live".to_owned(), "ns/event");
    Ok(Figure { case, ours, floor, unit, ratio: ours / floor })
}

pub(super) fn inspector() -> Vec<Figure> {
    [first_page, live_event]
        .into_iter()
        .map(|measure| {
            measure().unwrap_or_else(|error| {
                eprintln!("measure: inspector: {error}");
                failed("inspector")
            })
        })
        .collect()
}
