//! What one start of the program is to do, kept so that another start can go on with it.
//!
//! Each script is a session of its own. The list of them is one more: a loop of one step, whose
//! input is the list. So it is kept where the others are, and as safely.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use harness::inspect::{Phase, SessionsError};
use harness::prelude::*;
use harness::{BuildError, NotEnded, RunError, SessionId, Sessions};
use harness_store::FileStore;

use crate::repair::{LoadError, load, shipped, shown};

use super::state::Repair;

/// The agent that keeps lists.
const AGENT: &str = "repair-batch";

/// The scripts of one start of the program.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    /// The scripts, in order.
    pub(super) jobs: Vec<Job>,
    /// How many faults of each to take on.
    pub(super) rounds: u32,
}

/// A script that is to be repaired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    /// As it was named.
    pub(super) name: String,
    /// Where it is, wherever the program is started; `None` if it ships with the program.
    path: Option<OsString>,
}

impl Job {
    /// The scripts that ship.
    pub(super) fn shipped() -> Vec<Self> {
        shipped().into_iter().map(|script| Self { name: script.name, path: None }).collect()
    }

    /// A script of the user's.
    pub(super) fn file(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { name: path.display().to_string(), path: Some(absolute.into_os_string()) }
    }

    /// The user's file.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.path.as_ref().map(PathBuf::from)
    }

    /// Reads the script.
    pub(super) fn script(&self) -> Result<Repair, LoadError> {
        let script = match &self.path {
            Some(path) => load(Path::new(path)).map_err(|error| error.named(&self.name))?,
            None => shipped()
                .into_iter()
                .find(|script| script.name == self.name)
                .ok_or_else(|| LoadError::Missing(PathBuf::from(&self.name)))?,
        };
        Ok(Repair {
            name: self.name.clone(),
            original: script.source.clone(),
            copy: script.source,
            expected: script.expected,
            ..Repair::default()
        })
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Keep,
}

/// Why a batch could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub(super) enum BatchError {
    #[error("there is no session `{}` in {} (one that is finished is removed)", shown(id), dir.display())]
    Missing { id: String, dir: PathBuf },
    #[error("session `{}` is no start of this program", shown(.0))]
    Another(String),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    NotKept(#[from] NotEnded<Batch>),
    #[error(transparent)]
    Sessions(#[from] SessionsError),
}

/// Keeps the list before anything on it begins.
pub(super) async fn keep(store: &FileStore, batch: &Batch) -> Result<SessionId, BatchError> {
    let harness = Harness::<(), Batch>::builder("repair-batch")
        .start(Step::Keep)
        .steps(|define, step| match step {
            Step::Keep => define.run(|_, _| async move { Ok(Batch::update()) }).end(),
        })
        .build()?;
    let input = Batch::update().jobs(batch.jobs.clone()).rounds(batch.rounds);
    let agent = harness.agent(AGENT, ()).store(store.clone());
    Ok(agent.run(input, ()).await?.ended()?.session)
}

/// Finds a list that was kept.
pub(super) async fn find(
    sessions: &Sessions,
    dir: &Path,
    id: &str,
) -> Result<(SessionId, Batch), BatchError> {
    let status = sessions.status(id).await.map_err(|error| match error.is_not_found() {
        true => BatchError::Missing { id: id.to_owned(), dir: dir.to_owned() },
        false => error.into(),
    })?;
    if status.agent.as_str() != AGENT {
        return Err(BatchError::Another(id.to_owned()));
    }
    let state = sessions.state(id).await?;
    let batch = Batch::deserialize(state).map_err(|_| BatchError::Another(id.to_owned()))?;
    Ok((status.session, batch))
}

/// The session of the script that is at this place of the list.
pub(super) fn script_session(batch: &SessionId, place: usize) -> String {
    format!("{batch}/{}", place + 1)
}

/// Removes what nobody will go on with: a list whose scripts have all come to
/// their end, or were never begun. What failed, or is another process's work,
/// stays.
pub(super) async fn forget(sessions: &Sessions, batch: &SessionId, jobs: usize) {
    let scripts: Vec<String> = (0..jobs).map(|place| script_session(batch, place)).collect();
    for session in &scripts {
        match sessions.status(session).await {
            Ok(status) if status.phase == Phase::Ended => {}
            Err(error) if error.is_not_found() => {}
            _ => return,
        }
    }
    for session in scripts.into_iter().chain([batch.to_string()]) {
        // What cannot be removed only takes up room.
        let _ = sessions.delete(session).await;
    }
}
