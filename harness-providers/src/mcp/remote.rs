//! A server that is connected again when its connection has ended.

use super::content;
use super::error::{McpError, McpErrorKind};
use super::link::{Changed, Failed, Link};
use super::progress::Reports;
use super::server::Server;
use harness::llm::{Content, EffectClass, ToolCallId, ToolError, ToolFailure, ToolOutcome};
use rmcp::model::{JsonObject, Tool};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct Remote {
    pub(super) server: Server,
    reports: Arc<Reports>,
    changed: Changed,
    slot: Mutex<Slot>,
    /// Locked while it is connected, so that this happens once.
    connecting: tokio::sync::Mutex<()>,
}

enum Slot {
    /// It was never connected.
    New,
    Open(Arc<Link>),
    Closed,
}

impl Remote {
    pub(super) fn new(server: Server, changed: Changed) -> Self {
        let reports = Arc::new(Reports::new(server.on_progress.clone()));
        Self {
            server,
            reports,
            changed,
            slot: Mutex::new(Slot::New),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, kind: McpErrorKind) -> McpError {
        McpError::new(&self.server.name, kind)
    }

    /// The connection, if there is one.
    pub(super) fn open(&self) -> Option<Arc<Link>> {
        match &*self.slot() {
            Slot::Open(link) if link.is_open() => Some(Arc::clone(link)),
            _ => None,
        }
    }

    /// The connection. If there is none, it is made: once, and for every call that waits for it.
    pub(super) async fn link(&self) -> Result<Arc<Link>, McpError> {
        if let Some(link) = self.open() {
            return Ok(link);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(link) = self.open() {
            return Ok(link);
        }
        let again = match &*self.slot() {
            Slot::Closed => return Err(self.error(McpErrorKind::Closed)),
            Slot::New => false,
            Slot::Open(_) => true,
        };
        let opened =
            Link::open(&self.server, Arc::clone(&self.reports), Arc::clone(&self.changed)).await;
        let link = Arc::new(opened.map_err(|kind| self.error(kind))?);
        {
            let mut slot = self.slot();
            if matches!(*slot, Slot::Closed) {
                link.end();
                return Err(self.error(McpErrorKind::Closed));
            }
            *slot = Slot::Open(Arc::clone(&link));
        }
        if again {
            // It may be another version of the server, with other tools.
            (self.changed)();
        }
        Ok(link)
    }

    pub(super) async fn list(&self) -> Result<Vec<Tool>, McpError> {
        let link = self.link().await?;
        link.list(self.server.limits).await.map_err(|kind| self.error(kind))
    }

    /// Calls a tool. A call that was provably not sent is sent on a new connection, once, and so is one
    /// that only reads. Any other call whose answer is lost is in doubt.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        effect: EffectClass,
        id: &ToolCallId,
    ) -> Result<Content, ToolError> {
        let reads = effect == EffectClass::Read;
        let mut again = true;
        loop {
            let link = self.link().await?;
            let failed = match link.call(&self.server, tool, arguments.clone(), id).await {
                Ok(result) => return content::read(result, self.server.limits.result_bytes),
                Err(failed) => failed,
            };
            let repeatable = match &failed {
                Failed::NotSent(kind) => *kind == McpErrorKind::Ended,
                Failed::Lost => reads,
                Failed::TimedOut(_) | Failed::Answered(_) => false,
            };
            if repeatable {
                link.end();
                if again {
                    again = false;
                    continue;
                }
            }
            return Err(match failed {
                Failed::NotSent(kind) => self.error(kind).into(),
                Failed::Answered(text) => ToolError::new(text),
                Failed::Lost if reads => self.error(McpErrorKind::Ended).into(),
                Failed::TimedOut(limit) if reads => ToolError::outcome(ToolOutcome::failed(
                    ToolFailure::TimedOut,
                    self.error(McpErrorKind::TimedOut { limit }).to_string(),
                )),
                Failed::Lost | Failed::TimedOut(_) => ToolError::outcome(ToolOutcome::InDoubt),
            });
        }
    }

    /// Ends it, so that it is not connected again.
    pub(super) fn end(&self) -> Option<Arc<Link>> {
        match std::mem::replace(&mut *self.slot(), Slot::Closed) {
            Slot::Open(link) => Some(link),
            Slot::New | Slot::Closed => None,
        }
    }
}
