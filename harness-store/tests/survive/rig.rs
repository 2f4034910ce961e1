//! A small loop, and what the tests have in common.

use std::path::{Path, PathBuf};

use harness::prelude::*;
use harness::sessions::SessionsError;
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

pub fn harness() -> Harness<(), Doc> {
    let write = |doc: View<Doc>, _: Cx<()>| async move {
        let line = format!("{:x<1$}", doc.lines.len(), doc.size);
        Ok(Doc::update().lines([line]))
    };
    let enough = |doc: &Doc| match doc.lines.len() < doc.rounds {
        true => Next::More,
        false => Next::Enough,
    };
    Harness::<(), Doc>::builder("doc")
        .start(Step::Write)
        .steps(move |define, step| match step {
            Step::Write => define.run(write).route(enough, |next| match next {
                Next::More => to(Step::Write),
                Next::Enough => to(Step::Ask),
            }),
            Step::Ask => define
                .ask(|doc: View<Doc>, _| async move { Ok(Send { lines: doc.lines.len() }) })
                .answer(|_, _, said| async move { Ok(Doc::update().sent(Some(said.answer))) })
                .then(Step::Close),
            Step::Close => define
                .run(|_, _| async move { Ok(Doc::update().lines(["closed".to_owned()])) })
                .end(),
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

/// Goes on with a session until it has ended, whatever it takes.
pub async fn to_the_end(
    agent: &Agent<(), Doc>,
    session: &str,
    input: <Doc as State>::Update,
) -> Doc {
    let mut outcome = agent.resume(session, Answers::none(), ()).await;
    if outcome.as_ref().is_err_and(RunError::is_not_found) {
        outcome = agent.run(input, ()).session(session).await;
    }
    if outcome.as_ref().is_err_and(RunError::is_not_waiting) {
        let head = agent.history(session, Seq(0), usize::MAX).await.unwrap().moments.pop().unwrap();
        return agent.state_at(session, head.seq).await.unwrap();
    }
    match outcome.unwrap() {
        Outcome::Interrupted(waiting) => {
            let yes = waiting.pending::<Send>().unwrap().answer(true);
            agent.resume(session, yes, ()).await.unwrap().ended().unwrap().state
        }
        other => other.ended().unwrap().state,
    }
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
