//! What the other processes do.

use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::child::{say, setting};
use crate::drive::Driver;
use crate::outside::{Outside, WORKERS, Watched};
use crate::store::Store;

pub async fn open(dir: &Path, sync: bool) -> Store {
    Store::open(dir, sync).await
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub fn play(role: &str, dir: &Path) {
    match role {
        "" => {}
        "kill" => runtime().block_on(sessions(dir)),
        "racer" => runtime().block_on(crate::races::racer(dir)),
        "holder" => runtime().block_on(crate::stops::holder(dir)),
        "coder" => runtime().block_on(crate::code::coder(dir)),
        "crasher" => runtime().block_on(crate::crashes::crasher(dir)),
        "answerer" => runtime().block_on(crate::crowd::answerer(dir)),
        "item-answerer" => runtime().block_on(crate::crowd::item_answerer(dir)),
        "approver" => runtime().block_on(crate::approvals::approver(dir)),
        "family" => runtime().block_on(crate::children::worker(dir)),
        "signer" => runtime().block_on(crate::children_apart::signer(dir)),
        "sleeper" => runtime().block_on(crate::timers::sleeper(dir)),
        "walker" => runtime().block_on(crate::long::walker(dir)),
        "worker" => runtime().block_on(crate::workers::worker(dir)),
        other => panic!("no such role: {other}"),
    }
}

/// Brings sessions to their end, one after the other, until it is killed; or until all are done
/// up to a last one.
async fn sessions(dir: &Path) {
    let first: u64 = setting("FIRST").parse().unwrap();
    let last: Option<u64> = setting("LAST").parse().ok();
    let sync = setting("SYNC") == "1";
    let outside = || Outside::new(&dir.join("effects")).reporting_to(&dir.join("phases"));
    let driver = |store, outside: Outside| {
        Driver::new(
            Watched { store, syncs: sync, outside: outside.clone() },
            outside,
            |line| say(&line),
            // Where it counts, the sessions of a process that was killed are free soon.
            Some(Duration::from_secs(2)),
        )
    };
    // A store of its own: for the other, it is another process.
    let (send, jobs) = tokio::sync::mpsc::unbounded_channel();
    let clerk = driver(open(dir, sync).await, outside().at(WORKERS));
    tokio::spawn(clerk.clerk(jobs));
    let worker = driver(open(dir, sync).await, outside());
    say("ready");
    let workers = (0..WORKERS as u64).map(|slot| {
        let (worker, send) = (worker.clone(), send.clone());
        tokio::spawn(async move {
            let mut number = first + slot;
            while last.is_none_or(|last| number <= last) {
                worker.drive(number, Some(&send)).await;
                say(&format!("d {number}"));
                number += WORKERS as u64;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
}
