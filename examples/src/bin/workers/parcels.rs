//! The parcels that have left, in a file that no store knows of.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use harness::SessionId;
use tokio::fs::{self, OpenOptions};
use tokio::io::AsyncWriteExt as _;

/// The file, and the worker that adds to it.
#[derive(Clone, Debug)]
pub(super) struct Parcels {
    path: PathBuf,
    worker: String,
}

impl Parcels {
    pub(super) fn new(path: impl Into<PathBuf>, worker: impl Into<String>) -> Self {
        Self { path: path.into(), worker: worker.into() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Ships the parcel of an order; returns who did.
    pub(super) async fn ship(&self, order: &SessionId) -> io::Result<String> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).await?;
        // One write: lines of several processes do not mix.
        file.write_all(format!("{order} {}\n", self.worker).as_bytes()).await?;
        file.flush().await?;
        Ok(self.worker.clone())
    }

    /// Who has shipped the parcel of an order.
    pub(super) async fn find(&self, order: &SessionId) -> io::Result<Option<String>> {
        let of_order =
            |(found, worker): (String, String)| (found == order.as_str()).then_some(worker);
        Ok(self.all().await?.into_iter().find_map(of_order))
    }

    /// Fails unless each order was shipped exactly once.
    pub(super) async fn check<'a>(
        &self,
        orders: impl IntoIterator<Item = &'a SessionId>,
    ) -> io::Result<()> {
        let mut counts = BTreeMap::<String, usize>::new();
        for (order, _) in self.all().await? {
            *counts.entry(order).or_default() += 1;
        }
        for order in orders {
            let count = counts.get(order.as_str()).copied().unwrap_or_default();
            if count != 1 {
                return Err(io::Error::other(format!("`{order}` was shipped {count} times")));
            }
        }
        Ok(())
    }

    async fn all(&self) -> io::Result<Vec<(String, String)>> {
        let text = match fs::read_to_string(&self.path).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs.map(|(order, worker)| (order.to_owned(), worker.to_owned())).collect())
    }
}
