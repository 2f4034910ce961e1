//! A small loop, and what the tests have in common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::inspect::SessionsError;
use harness::prelude::*;
use harness::{RunError, Seq, Sessions};
use harness_store::{FileStore, FileStoreOptions, Sync};
use serde_json::Value;

/// Writes `rounds` lines of `size` bytes each, asks whether it may go, and ends.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doc {
    #[state(reduce = append)]
    pub lines: Vec<String>,
    pub rounds: usize,
    pub size: usize,
    pub sent: Option<bool>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
pub struct Send {
    pub lines: usize,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Write,
    Ask,
    Close,
}

#[derive(Signal, Clone, Copy, Debug)]
pub enum Next {
    More,
    Enough,
}

/// Called whenever a step is at work, with how many lines there are.
pub type Hook = Arc<dyn Fn(usize) + std::marker::Send + std::marker::Sync>;

pub fn harness() -> Harness<(), Doc> {
    hooked(Arc::new(|_| {}))
}

pub fn hooked(hook: Hook) -> Harness<(), Doc> {
    let closed = Arc::clone(&hook);
    let write = move |doc: View<Doc>, _: Cx<()>| {
        hook(doc.lines.len());
        async move {
            let line = format!("{:x<1$}", doc.lines.len(), doc.size);
            Ok(Doc::update().lines([line]))
        }
    };
    let close = move |doc: View<Doc>, _: Cx<()>| {
        closed(doc.lines.len());
        async move { Ok(Doc::update().lines(["closed".to_owned()])) }
    };
    let enough = |doc: &Doc| match doc.lines.len() < doc.rounds {
        true => Next::More,
        false => Next::Enough,
    };
    Harness::<(), Doc>::builder("doc")
        .start(Step::Write)
        .steps(move |define, step| match step {
            Step::Write => define.run(write.clone()).route(enough, |next| match next {
                Next::More => to(Step::Write),
                Next::Enough => to(Step::Ask),
            }),
            Step::Ask => define
                .ask(|doc: View<Doc>, _| async move { Ok(Send { lines: doc.lines.len() }) })
                .answer(|_, _, said| async move { Ok(Doc::update().sent(Some(said.answer))) })
                .then(Step::Close),
            Step::Close => define.run(close.clone()).end(),
        })
        .build()
        .unwrap()
}

pub fn agent(store: &FileStore) -> Agent<(), Doc> {
    harness().agent("writer", ()).store(store.clone())
}

pub fn input(rounds: usize, size: usize) -> <Doc as State>::Update {
    Doc::update().rounds(rounds).size(size)
}

/// What the loop ends with.
pub fn whole(rounds: usize, size: usize) -> Doc {
    let line = |number: usize| match number == rounds {
        true => "closed".to_owned(),
        false => format!("{number:x<size$}"),
    };
    Doc { lines: (0..=rounds).map(line).collect(), rounds, size, sent: Some(true) }
}

/// Without syncs: what is tested does not depend on them.
pub async fn open(dir: impl AsRef<Path>) -> FileStore {
    FileStoreOptions::new().sync(Sync::Never).open(dir).await.unwrap()
}

pub fn sessions(store: &FileStore) -> Sessions {
    Sessions::new(store.clone())
}

/// Runs a session up to its question.
pub async fn ask(store: &FileStore, session: &str, rounds: usize, size: usize) {
    let outcome = agent(store).run(input(rounds, size), ()).session(session).await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted(_)), "{outcome:?}");
}

/// Answers the question of a session, which then ends.
pub async fn answer(store: &FileStore, session: &str) -> Doc {
    let outcome = agent(store).resume(session, Answers::none(), ()).await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let yes = waiting.pending::<Send>().unwrap().answer(true);
    agent(store).resume(session, yes, ()).await.unwrap().ended().unwrap().state
}

/// Continues a session until it has ended, whatever it takes.
pub async fn to_the_end(
    agent: &Agent<(), Doc>,
    session: &str,
    input: impl Fn() -> <Doc as State>::Update,
) -> Doc {
    let mut answers = Answers::none();
    for _ in 0..20 {
        let mut outcome = agent.resume(session, std::mem::take(&mut answers), ()).await;
        if outcome.as_ref().is_err_and(RunError::is_not_found) {
            outcome = agent.run(input(), ()).session(session).await;
        }
        match outcome {
            Ok(Outcome::Ended(ended)) => return ended.state,
            Ok(Outcome::Interrupted(waiting)) => {
                answers = waiting.pending::<Send>().unwrap().answer(true);
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) if error.is_not_waiting() => {
                let moments = agent.history(session, Seq(0), usize::MAX).await.unwrap().moments;
                let last = moments.last().unwrap().seq;
                return agent.state_at(session, last).await.unwrap();
            }
            // The last record of its log lacked but its newline, which the claim has added.
            Err(error) if error.is_unsettled() => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("session `{session}` does not end");
}

/// The state behind every entry, as far as there is one.
pub async fn states(sessions: &Sessions, session: &str) -> Result<Vec<Value>, SessionsError> {
    let head = sessions.status(session).await?.head;
    let mut states = Vec::new();
    for seq in 1..=head.0 {
        states.push(sessions.state_at(session, Seq(seq)).await?);
    }
    Ok(states)
}

/// The files of a directory and below with this ending.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|kind| kind == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Copies what a store has on the disk, as it is found after the end of its process.
pub fn copy_store(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_name() == "place" {
            // It would show that this is a copy, which may lack what was acknowledged.
            continue;
        } else if entry.file_type().unwrap().is_dir() {
            copy_store(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
