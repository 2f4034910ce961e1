//! The list of scripts of one start of the program, saved so that `--resume` finds it.
//!
//! Each script is a session of its own. The list is one more session, of a loop with one step whose
//! input is the list: so the same store keeps it, as durably.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use examples::shown;
use harness::code::Code;
use harness::esg::ProgramError;
use harness::inspect::{Phase, SessionsError};
use harness::prelude::*;
use harness::{BuildError, RunError, SessionId, Sessions, run::NotEnded};
use harness_store::FileStore;

use super::document::{CheckError, Document, add_checks};
use super::source::{LoadError, load, read, shipped};
use super::state::{Repair, RepairUpdate};

/// The agent of the lists.
const AGENT: &str = "repair-batch";

/// The scripts of one start of the program.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    /// The scripts, in order.
    pub(super) jobs: Vec<Job>,
    /// How many faults of each script to repair.
    pub(super) rounds: u32,
    /// How long a part of a script may take.
    pub(super) seconds: u64,
    /// The absolute path of a file of tests.
    pub(super) tests: Option<OsString>,
    /// The absolute path of the Python, if it is not one in PATH.
    pub(super) python: Option<OsString>,
    /// The absolute path of the directory that the programs run in, if they need one.
    pub(super) data: Option<OsString>,
    /// The model, if one is asked.
    pub(super) model: Option<String>,
    /// Whether the scripts may do whatever the user may do.
    pub(super) mine: bool,
}

/// A script to repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    /// Its name on the command line.
    pub(super) name: String,
    /// Its absolute path; `None` if it ships with the program.
    path: Option<OsString>,
}

impl Job {
    /// The scripts that ship with the program.
    pub(super) fn shipped() -> Vec<Self> {
        shipped().into_iter().map(|script| Self { name: script.name, path: None }).collect()
    }

    /// A script of the user.
    pub(super) fn file(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { name: path.display().to_string(), path: Some(absolute.into_os_string()) }
    }

    /// The user's file, if it is one.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.path.as_ref().map(PathBuf::from)
    }

    /// Reads the file and the tests: the input of its session.
    pub(super) fn input(&self, batch: &Batch) -> Result<RepairUpdate, JobError> {
        let script = match &self.path {
            Some(path) => load(Path::new(path)).map_err(|error| error.named(&self.name))?,
            None => shipped()
                .into_iter()
                .find(|script| script.name == self.name)
                .ok_or_else(|| LoadError::Missing(PathBuf::from(&self.name)))?,
        };
        let name = Path::new(&self.name);
        let refused = |why| JobError::Program { name: self.name.clone(), why };
        let (document, mut program) = match name.extension().is_some_and(|it| it == "ipynb") {
            true => Document::notebook(&script.source).map_err(refused)?,
            false => Document::script(&script.source).map_err(refused)?,
        };
        let original = document.view(&program);
        let mut checks = Vec::new();
        if let Some(path) = batch.tests.as_ref().map(Path::new) {
            let module = name.file_stem().unwrap_or_default().to_string_lossy();
            let refused = |why| JobError::Tests { path: path.to_owned(), why };
            checks = add_checks(&mut program, &module, &read(path)?).map_err(refused)?;
        }
        if let Some(data) = &batch.data {
            let enter = enter(&data.to_string_lossy(), self.path().as_deref());
            match document.steps().first() {
                Some(first) => program.insert_before(first, ENTER, &enter).map_err(refused)?,
                None => program.push(ENTER, &enter).map_err(refused)?,
            };
            checks.push(ENTER.to_owned());
        }
        Ok(Repair::update()
            .name(self.name.clone())
            .document(document)
            .original(original)
            .expected(script.expected)
            .tests(checks)
            .proven(program.versions().len())
            .code(Code::added(&program)))
    }
}

/// The code step that enters the directory of the data.
const ENTER: &str = "data";

/// Python that enters a directory, and says which file the program is. It binds no name.
fn enter(data: &str, file: Option<&Path>) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let mut source = format!("__import__('os').chdir({})\n", text(data));
    if let Some(file) = file {
        let file = text(&file.to_string_lossy());
        source.push_str(&format!("__import__('builtins').__file__ = {file}\n"));
    }
    source
}

/// Why a file cannot be repaired at all.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{name}: {why}")]
    Program { name: String, why: ProgramError },
    #[error("{}: {why}", path.display())]
    Tests { path: PathBuf, why: CheckError },
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Save,
}

/// Why a batch could not be saved or found.
#[derive(Debug, thiserror::Error)]
pub(super) enum BatchError {
    #[error("no session `{}` in {} (a finished one is removed)", shown(id), dir.display())]
    Missing { id: String, dir: PathBuf },
    #[error("session `{}` is no batch of this program", shown(.0))]
    Another(String),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    NotSaved(#[from] NotEnded<Batch>),
    #[error(transparent)]
    Sessions(#[from] SessionsError),
}

/// Saves the list before the first script runs.
pub(super) async fn save(store: &FileStore, batch: &Batch) -> Result<SessionId, BatchError> {
    let harness = Harness::<(), Batch>::builder("repair-batch")
        .start(Step::Save)
        .steps(|define, step| match step {
            Step::Save => define.run(|_, _| async move { Ok(Batch::update()) }).end(),
        })
        .build()?;
    let Batch { jobs, rounds, seconds, tests, python, data, model, mine } = batch.clone();
    let input = Batch::update().jobs(jobs).rounds(rounds).seconds(seconds);
    let input = input.tests(tests).python(python).data(data).model(model).mine(mine);
    let agent = harness.agent(AGENT, ()).store(store.clone());
    Ok(agent.run(input, ()).await?.ended()?.session)
}

/// Finds a saved list.
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

/// The session of the script at this index of the list.
pub(super) fn script_session(batch: &SessionId, index: usize) -> String {
    format!("{batch}/{}", index + 1)
}

/// Removes the sessions of a list whose scripts have all ended or never started. If one of them
/// failed, or another process runs it, all stay.
pub(super) async fn forget(sessions: &Sessions, batch: &SessionId, jobs: usize) {
    let scripts: Vec<String> = (0..jobs).map(|index| script_session(batch, index)).collect();
    for session in &scripts {
        match sessions.status(session).await {
            Ok(status) if status.phase == Phase::Ended => {}
            Err(error) if error.is_not_found() => {}
            _ => return,
        }
    }
    // The list goes first: by it, a resume would begin those scripts again whose sessions are gone.
    for session in [batch.to_string()].into_iter().chain(scripts) {
        // A session that cannot be removed only uses space.
        let _ = sessions.delete(session).await;
    }
}
