//! What opening a session costs: with an answer, and after many steps.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use harness::prelude::*;
use harness::store::{MemoryStore, SessionStore};
use harness::{BuildError, Sessions};
use harness_store::{FileStore, FileStoreOptions, Sync};

use super::disk::dir;
use super::{Figure, block_on, compare_waiting, failed, is_once, ours, scaled};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Notice {
    sent: bool,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send {
    to: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Ask,
}

fn asker() -> Result<Agent<(), Notice>, BuildError> {
    let harness = Harness::<(), Notice>::builder("asker")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define
                .ask(|_, _| async move { Ok(Send { to: "all".to_owned() }) })
                .answer(|_, _, said| async move { Ok(Notice::update().sent(said.answer)) })
                .end(),
        })
        .build()?;
    Ok(harness.agent("asker", ()))
}

/// Asks, is dropped, and resumes with a new handle of the store, which knows nothing of the first one:
/// as in another process.
async fn ask_and_answer(agent: &Agent<(), Notice>, dir: &Path, id: &str) -> Option<bool> {
    let first = agent.clone().store(FileStore::open(dir).await.ok()?);
    let asked = first.run(Notice::update(), ()).session(id).await.ok()?;
    drop(first);
    let Outcome::Interrupted(waiting) = asked else { return None };
    let answer = Answers::json(waiting.questions.first()?.id.clone(), true.into());
    let second = agent.clone().store(FileStore::open(dir).await.ok()?);
    let ended = second.resume(id, answer, ()).await.ok()?;
    Some(ended.state()?.sent)
}

fn durably(path: &Path, line: &str) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(line.as_bytes())?;
    file.sync_data()?;
    Ok(file)
}

/// The same by hand: the question, the answer and the result, each flushed, each read back from the
/// file. The file is in the store's own directories, since the cost of a new file depends on the
/// directory.
fn by_hand(parts: &[PathBuf], id: u64) -> io::Result<()> {
    let dir = &parts[id as usize % parts.len()];
    let path = dir.join(format!("by-hand-{id}"));
    durably(&path, "{\"ask\":{\"to\":\"all\"}}\n")?;
    File::open(dir)?.sync_all()?;
    let asked = std::fs::read_to_string(&path)?;
    assert_eq!(asked.lines().count(), 1);
    durably(&path, "{\"answer\":true}\n")?;
    let said = std::fs::read_to_string(&path)?;
    assert_eq!(said.lines().count(), 2);
    durably(&path, "{\"sent\":true}\n")?;
    Ok(())
}

/// A question, its answer through another handle, and the end, all on disk.
pub(super) fn resume() -> Vec<Figure> {
    const EACH: u64 = 10;
    const USED: usize = 1_000;
    let (Ok(dir), Ok(agent)) = (dir(), asker()) else { return vec![failed("resume-file")] };
    let count = Cell::new(0);
    let next = || {
        count.set(count.get() + 1);
        count.get()
    };
    // The hand-written program has its directory already. So has a store in use.
    for _ in 0..scaled(USED) {
        let id = format!("notice-{}", next());
        assert_eq!(block_on(ask_and_answer(&agent, dir.path(), &id)), Some(true));
    }
    let Ok(parts) = std::fs::read_dir(dir.path().join("sessions")) else {
        return vec![failed("resume-file")];
    };
    let parts: Vec<PathBuf> = parts.flatten().map(|part| part.path()).collect();
    let mut figure = compare_waiting(
        "resume-file".to_owned(),
        EACH,
        || {
            for _ in 0..EACH {
                let id = format!("notice-{}", next());
                assert_eq!(block_on(ask_and_answer(&agent, dir.path(), &id)), Some(true));
            }
        },
        || (0..EACH).for_each(|_| assert!(by_hand(&parts, next()).is_ok())),
    );
    figure.unit = "ns/session";
    vec![figure]
}

/// Sessions of a few and of many steps, whose state does not grow. Some end right after a snapshot,
/// which is written about every 800 steps, others a while after one.
const FEW: [u64; 3] = [1_000, 1_260, 1_520];
const MANY: [u64; 3] = [100_000, 100_260, 100_520];

/// A tenth of them in a test.
fn many() -> [u64; 3] {
    if is_once() { MANY.map(|steps| steps / 10) } else { MANY }
}

fn fill(store: &(impl SessionStore + Clone)) -> Option<()> {
    for steps in FEW.into_iter().chain(many()) {
        let agent = ours::agent(steps).ok()?.store(store.clone());
        block_on(ours::request(&agent, steps).session(steps.to_string()).into_future()).ok()?;
    }
    Some(())
}

async fn status(store: impl SessionStore, steps: u64) {
    let found = Sessions::new(store).status(steps.to_string()).await;
    assert!(found.is_ok());
}

/// Many steps beside few.
fn many_beside_few(case: &str, open: impl Fn(u64)) -> Figure {
    let mut figure = compare_waiting(
        case.to_owned(),
        3,
        || many().into_iter().for_each(&open),
        || FEW.into_iter().for_each(&open),
    );
    figure.unit = "ns, 100000 : 1000 steps";
    figure
}

/// Reading the status of a session: the cost is that of the last snapshot and the entries after it,
/// however many came before.
pub(super) fn memory() -> Vec<Figure> {
    let store = MemoryStore::new();
    if fill(&store).is_none() {
        return vec![failed("open-memory")];
    }
    vec![many_beside_few("open-memory", |steps| block_on(status(store.clone(), steps)))]
}

/// The same in files: with a store that is open, and with one that is opened for each read.
pub(super) fn file() -> Vec<Figure> {
    let prepare = || {
        let dir = dir().ok()?;
        let store = block_on(FileStoreOptions::new().sync(Sync::Never).open(dir.path())).ok()?;
        fill(&store).map(|()| (dir, store))
    };
    let Some((dir, store)) = prepare() else { return vec![failed("open-file")] };
    let reopened = |steps| {
        block_on(async {
            let opened = FileStoreOptions::new().sync(Sync::Never).open(dir.path()).await;
            match opened {
                Ok(store) => status(store, steps).await,
                Err(error) => eprintln!("measure: open-file: {error}"),
            }
        });
    };
    vec![
        many_beside_few("open-file", |steps| block_on(status(store.clone(), steps))),
        many_beside_few("open-file-cold", reopened),
    ]
}
