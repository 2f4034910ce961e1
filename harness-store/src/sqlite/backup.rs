//! Copies of a store in use.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::store::StoreError;
use tokio::sync::oneshot;

use crate::local::error::{failed, unsure};

use super::error::{Fault, ended};
use super::open::connect;
use super::readers::spawn;
use super::store::SqliteStore;

impl SqliteStore {
    /// Copies all sessions into a new database, which is a store of its own, while this and other
    /// processes continue to use them.
    ///
    /// The copy is the store as it was at one moment of the call, with everything that was acknowledged
    /// before, and without free space. No leases are copied, so that the copied sessions can be
    /// claimed at once. On return the copy survives a loss of power. One that was interrupted leaves a
    /// file whose name ends in `-unfinished`, which the next one replaces.
    ///
    /// ```
    /// # async fn example() -> Result<(), harness::store::StoreError> {
    /// use harness_store::SqliteStore;
    ///
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let (sessions, backup) = (dir.path().join("sessions.db"), dir.path().join("backup.db"));
    /// let store = SqliteStore::open(sessions).await?;
    /// store.backup(&backup).await?;
    ///
    /// let restored = SqliteStore::open(backup).await?;
    /// # drop(restored);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] if there is a file of this name already; [`StoreError::Full`] and
    /// [`StoreError::Unavailable`] if it cannot be written, or if the database is damaged.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<(), StoreError> {
        let to = std::path::absolute(to.as_ref());
        let to = to.map_err(|error| failed("find", Path::new("."), error))?;
        let from = self.shared.path.clone();
        let (done, answer) = oneshot::channel();
        spawn("sqlite-backup", move || drop(done.send(back_up(&from, &to))))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// How long a backup waits for the database, which readers of it rarely do.
const PATIENCE: Duration = Duration::from_secs(10);

fn back_up(from: &Path, to: &Path) -> Result<(), StoreError> {
    let exists = || {
        let to = to.display();
        StoreError::Unsuitable(format!("there is a file `{to}` already (choose a new name)"))
    };
    if to.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let mut name = to.as_os_str().to_owned();
    name.push("-unfinished");
    let unfinished = PathBuf::from(name);
    let wrong = |what: &'static str| {
        let path = unfinished.clone();
        move |error| failed(what, &path, error)
    };
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", &unfinished, error));
        }
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
    drop(file.map_err(wrong("make"))?);
    let copied = copy(from, &unfinished).map_err(|fault| fault.into_error(None));
    let done = copied.and_then(|()| {
        let file = File::open(&unfinished).map_err(wrong("open"))?;
        file.sync_all().map_err(wrong("sync"))?;
        // Unlike a rename, this replaces no file that has come since.
        std::fs::hard_link(&unfinished, to).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(),
            _ => failed("make", to, error),
        })
    });
    let removed = std::fs::remove_file(&unfinished);
    done?;
    removed.map_err(wrong("remove"))?;
    let dir = to.parent().unwrap_or(to);
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| unsure(format!("failed to sync `{}`", dir.display()), Some(error)))
}

fn copy(from: &Path, to: &Path) -> Result<(), Fault> {
    let name = to.to_str().ok_or_else(|| {
        StoreError::Unsuitable("the path of a backup must be UTF-8 (choose another)".into())
    })?;
    let conn = connect(from, PATIENCE)?;
    conn.execute("VACUUM INTO ?", [name])?;
    drop(conn);
    // The holders are those of the other store.
    let copy = connect(to, PATIENCE)?;
    copy.execute_batch(
        "BEGIN; UPDATE session SET token = NULL; DELETE FROM session WHERE head = 0; COMMIT",
    )?;
    Ok(())
}
