//! A client of several servers.

use super::error::{McpError, McpErrorKind};
use super::name::is_legal_server;
use super::remote::Remote;
use super::server::Server;
use super::tool::{Listing, RemoteTool, Skipped};
use futures_util::future::{join_all, try_join_all};
use harness::llm::{Tool, ToolName, ToolSet};
use rmcp::model::Tool as Listed;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// A client of MCP servers, with their tools. Clones share the connections, which end when the last
/// clone is dropped; tools that are called later fail.
///
/// ```no_run
/// use harness_providers::mcp::{Client, Http, Server, Stdio};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::connect([
///     Server::stdio("files", Stdio::new("files-server").arg("/srv/data")),
///     Server::http("search", Http::new("https://mcp.example.com/mcp")),
/// ])
/// .await?;
/// for spec in client.tools().specs() {
///     println!("{}: {}", spec.name, spec.description);
/// }
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// Dropped with the last clone.
    _end: Arc<End>,
}

struct Shared {
    remotes: Vec<Arc<Remote>>,
    /// What each server lists.
    listed: Mutex<Vec<Vec<Listed>>>,
    current: watch::Sender<Arc<Listing>>,
    /// Which lists have changed.
    changed: Arc<Changed>,
}

struct Changed {
    servers: Vec<AtomicBool>,
    wake: Notify,
}

/// Ends the connections.
struct End {
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for End {
    fn drop(&mut self) {
        self.task.abort();
        for link in self.shared.remotes.iter().filter_map(|remote| remote.end()) {
            link.end();
        }
    }
}

impl Client {
    /// Connects to servers, at the same time, and lists their tools.
    ///
    /// # Errors
    ///
    /// Fails if a name is not legal or used twice, or if a server cannot be connected to. The others
    /// are then ended.
    pub async fn connect(servers: impl IntoIterator<Item = Server>) -> Result<Self, McpError> {
        let servers: Vec<_> = servers.into_iter().collect();
        let mut names = HashSet::new();
        for Server { name, .. } in &servers {
            if !is_legal_server(name) {
                return Err(McpError::new(name, McpErrorKind::BadName));
            }
            if !names.insert(name) {
                return Err(McpError::new(name, McpErrorKind::SameName));
            }
        }
        let changed = Arc::new(Changed {
            servers: servers.iter().map(|_| AtomicBool::new(false)).collect(),
            wake: Notify::new(),
        });
        let remote = |(at, server)| {
            let changed = Arc::clone(&changed);
            let mark = move || changed.mark(at);
            Arc::new(Remote::new(server, Arc::new(mark)))
        };
        let remotes: Vec<_> = servers.into_iter().enumerate().map(remote).collect();
        let shared = Arc::new(Shared {
            listed: Mutex::new(vec![Vec::new(); remotes.len()]),
            remotes,
            current: watch::Sender::new(Arc::default()),
            changed,
        });
        let task = tokio::spawn(keep_current(Arc::downgrade(&shared))).abort_handle();
        let client = Self { _end: Arc::new(End { shared: Arc::clone(&shared), task }), shared };
        client.refresh().await?;
        Ok(client)
    }

    /// The tools of all servers, as they are now.
    ///
    /// The set does not change. When a server reports other tools, this returns another set, so a step
    /// that asks for it each time gives its model the current tools. Tools of an older set can still be
    /// called; the server rejects those that it no longer has.
    pub fn tools(&self) -> ToolSet {
        self.shared.current.borrow().set.clone()
    }

    /// The tools one by one, for a set together with tools of your own:
    /// `ToolSet::builder().with(mine).with_all(client.list())`.
    pub fn list(&self) -> Vec<RemoteTool> {
        self.shared.current.borrow().tools.clone()
    }

    /// The tool that models know by this name.
    pub fn find(&self, name: &ToolName) -> Option<RemoteTool> {
        let current = self.shared.current.borrow();
        current.tools.iter().find(|tool| tool.spec().name == *name).cloned()
    }

    /// The tools that servers list and no model can be given.
    pub fn skipped(&self) -> Vec<Skipped> {
        self.shared.current.borrow().skipped.clone()
    }

    /// The changes of [`tools`](Self::tools) from now on.
    pub fn changes(&self) -> Changes {
        Changes(self.shared.current.subscribe())
    }

    /// Lists the tools of all servers again, and connects to those whose connection has ended.
    ///
    /// # Errors
    ///
    /// Fails if a server cannot be connected to or does not list its tools. Nothing has changed then.
    pub async fn refresh(&self) -> Result<(), McpError> {
        let listed = try_join_all(self.shared.remotes.iter().map(|remote| remote.list())).await?;
        self.shared.publish(|all| *all = listed);
        Ok(())
    }

    /// Ends all connections, and waits until their processes have ended. Without it they are ended when
    /// the client is dropped, as far as the runtime still runs.
    pub async fn close(&self) {
        let links = self.shared.remotes.iter().filter_map(|remote| remote.end());
        join_all(links.map(|link| async move { link.close().await })).await;
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.shared.remotes.iter().map(|remote| &remote.server);
        f.debug_list().entries(servers).finish()
    }
}

/// The changes of a client's tools. [`Client::changes`] creates it.
#[derive(Clone)]
pub struct Changes(watch::Receiver<Arc<Listing>>);

impl Changes {
    /// Waits until the tools have changed, and returns them. Changes that were not waited for are one.
    /// `None` if the client was dropped.
    pub async fn next(&mut self) -> Option<ToolSet> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().set.clone())
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

impl Changed {
    fn mark(&self, server: usize) {
        self.servers[server].store(true, Ordering::Release);
        self.wake.notify_one();
    }
}

impl Shared {
    fn publish(&self, change: impl FnOnce(&mut Vec<Vec<Listed>>)) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = listed.clone();
        change(&mut listed);
        if *listed != before {
            let servers = self.remotes.iter().zip(listed.iter().map(Vec::as_slice));
            self.current.send_replace(Arc::new(Listing::of(servers)));
        }
    }

    /// Lists again what has changed. A server that cannot be asked keeps its list: it is asked again
    /// when it is connected again or reports another change.
    async fn list_changed(&self) {
        for (at, remote) in self.remotes.iter().enumerate() {
            if !self.changed.servers[at].swap(false, Ordering::AcqRel) {
                continue;
            }
            let Some(link) = remote.open() else {
                continue;
            };
            if let Ok(tools) = link.list(remote.server.limits).await {
                self.publish(|all| all[at] = tools);
            }
        }
    }
}

/// Lists again whenever a server reports a change.
async fn keep_current(shared: Weak<Shared>) {
    loop {
        let Some(changed) = shared.upgrade().map(|shared| Arc::clone(&shared.changed)) else {
            return;
        };
        changed.wake.notified().await;
        match shared.upgrade() {
            Some(shared) => shared.list_changed().await,
            None => return,
        }
    }
}
