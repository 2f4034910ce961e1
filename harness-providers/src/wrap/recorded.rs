//! Replies that are recorded once and replayed offline.

mod difference;
mod file;

use super::canonical::{canonical, digest};
use super::locked;
use super::observe::metered;
use difference::{Nearest, nearest};
use file::Recording;
use harness::async_trait;
use harness::llm::{
    Advice, CallCx, Caps, Llm, LlmError, LlmErrorKind, ModelId, Reply, Request, Spend,
};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Records the replies of a model in a file, and replays them without one.
///
/// The file has a line of JSON for each request, with its reply and what it has spent. An equal request
/// gets the recorded reply, also while recording, so each request is made once. Of equal requests at the
/// same time, the first reply counts for all. Errors are not recorded. In a test, [`replay`](Self::replay) needs no model, no key and no network:
///
/// ```
/// use harness::llm::{CallCx, Llm, Request, Scripted, Transcript, user};
/// use harness_providers::wrap::Recorded;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("greeting.jsonl");
/// let talk = Transcript::from_iter([user("hi")]);
/// let request = Request::new(talk.sealed()?);
/// let model = Recorded::record(Scripted::new(["hello"]), &path)?;
/// model.complete(request, &CallCx::detached()).await?;
/// drop(model);
///
/// let model = Recorded::replay(&path)?;
/// let reply = model.complete(request, &CallCx::detached()).await?;
/// assert_eq!(reply.text().as_deref(), Some("hello"));
///
/// let error = model.complete(request.system("be brief"), &CallCx::detached()).await.unwrap_err();
/// assert!(error.to_string().contains("`/request/system` is not in it"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The file has the prompts and replies in full, and no key and no header. A last line that was not
/// completed, because its process was killed, is left out, and replaced by the next one.
pub struct Recorded {
    model: Option<Arc<dyn Llm>>,
    id: ModelId,
    caps: Caps,
    path: PathBuf,
    recording: Mutex<Recording>,
}

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedError {
    /// The file cannot be read or written.
    #[error("the recording `{path}` cannot be used: {cause} (check the path)", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
    /// Another process, or another value in this one, records into the file.
    #[error("something else records into `{path}` (wait for it, or use another file)", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A line that is not the last one cannot be read.
    #[error("line {line} of the recording `{path}` cannot be read (remove it, and record again)", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The cause.
        #[source]
        cause: serde_json::Error,
    },
    /// The recording is of another model.
    #[error("the recording `{path}` is of `{recorded}`, not of `{model}` (use a file for each model)", path = path.display())]
    OtherModel {
        /// The file.
        path: PathBuf,
        /// The model that is recorded.
        recorded: ModelId,
        /// The model to record.
        model: ModelId,
    },
}

/// A request that a recording does not have. It is the cause of the error of the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is not in the recording `{path}`{} (record it again)", difference.as_deref().map(|what| format!("; {what}")).unwrap_or_default(), path = path.display())]
#[non_exhaustive]
pub struct UnknownRequest {
    /// The file.
    pub path: PathBuf,
    /// How the request differs from the recorded one that is most like it. It names places, not values.
    pub difference: Option<String>,
}

impl Recorded {
    /// Opens a recording, or creates it, for the replies of a model.
    ///
    /// # Errors
    ///
    /// The file cannot be used, has a line that cannot be read, or is of another model; or something
    /// else records into it.
    pub fn record(model: impl Llm, path: impl AsRef<Path>) -> Result<Self, RecordedError> {
        let path = path.as_ref().to_owned();
        let (id, caps) = (model.id(), model.caps());
        let recording = Recording::to_write(&path, &id, caps)?;
        let model: Option<Arc<dyn Llm>> = Some(Arc::new(model));
        Ok(Self { model, id, caps, path, recording: Mutex::new(recording) })
    }

    /// Opens a recording, to reply with what is in it and nothing else. The model has the id and the caps
    /// of the recorded one.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has a line that cannot be read.
    pub fn replay(path: impl AsRef<Path>) -> Result<Self, RecordedError> {
        let path = path.as_ref().to_owned();
        let (recording, id, caps) = Recording::to_read(&path)?;
        Ok(Self { model: None, id, caps, path, recording: Mutex::new(recording) })
    }

    fn unknown(&self, nearest: Option<Nearest>) -> LlmError {
        let difference = nearest.map(|Nearest { line, difference }| {
            format!("line {line} is most like it, but {difference}")
        });
        let unknown = UnknownRequest { path: self.path.clone(), difference };
        LlmError::new(LlmErrorKind::Unavailable)
            .with_model(self.id.clone())
            .with_detail(match &unknown.difference {
                None => "the recording is empty".to_owned(),
                Some(what) => format!("the request is not in the recording; {what}"),
            })
            .with_remedy("record it again with `Recorded::record`")
            .with_advice(Advice::give_up().because(unknown))
    }
}

#[async_trait]
impl Llm for Recorded {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    /// # Errors
    ///
    /// In a replay, [`UnknownRequest`] is the cause if the recording does not have the request. While
    /// recording, those of the model, and [`LlmErrorKind::Unavailable`] if the file cannot be written.
    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        let canonical = canonical(&self.id, &request)?;
        let key = digest(&canonical);
        let known = locked(&self.recording).find(&key);
        if let Some((reply, spend)) = known {
            // A budget has the same effect as it had.
            cx.charge(&spend);
            return Ok(reply);
        }
        let Some(model) = &self.model else {
            let nearest = nearest(&canonical, locked(&self.recording).requests());
            return Err(self.unknown(nearest));
        };
        let spent = Arc::new(Mutex::new(Spend::default()));
        let count = {
            let spent = Arc::clone(&spent);
            move |spend: &Spend| *locked(&spent) += *spend
        };
        let reply = metered(model, request, cx, count).await?;
        let spend = *locked(&spent);
        locked(&self.recording).keep(key, canonical, reply, spend).map_err(|error| {
            LlmError::new(LlmErrorKind::Unavailable)
                .with_model(self.id.clone())
                .with_detail("the reply cannot be recorded")
                .with_advice(Advice::give_up().because(error))
        })
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("model", &self.id)
            .field("path", &self.path)
            .field("records", &self.model.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
