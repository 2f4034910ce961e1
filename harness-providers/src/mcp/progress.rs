//! The progress of calls.

use super::server::OnProgress;
use harness::llm::ToolCallId;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// A server reports how far a call is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The name of the server.
    pub server: String,
    /// The name of the tool at the server.
    pub tool: String,
    /// The call.
    pub call: ToolCallId,
    /// How far it is. It grows with each report.
    pub progress: f64,
    /// What it grows to, if the server knows.
    pub total: Option<f64>,
    /// What the server is at.
    pub message: Option<String>,
}

/// The calls that may report progress, by their tokens.
pub(super) struct Reports {
    listener: Option<OnProgress>,
    calls: Mutex<HashMap<ProgressToken, Call>>,
    /// Locked while a call is sent, because its token is known only afterwards, when its server may
    /// already have reported.
    pub(super) sending: tokio::sync::Mutex<()>,
}

pub(super) struct Call {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) id: ToolCallId,
}

impl Reports {
    pub(super) fn new(listener: Option<OnProgress>) -> Self {
        Self { listener, calls: Mutex::default(), sending: tokio::sync::Mutex::default() }
    }

    pub(super) fn begin(&self, token: ProgressToken, call: Call) {
        if self.listener.is_some() {
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(token, call);
        }
    }

    pub(super) fn end(&self, token: &ProgressToken) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    pub(super) async fn report(&self, report: ProgressNotificationParam) {
        let Some(listener) = &self.listener else {
            return;
        };
        drop(self.sending.lock().await);
        let progress = {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            // A late report of a call that has ended is dropped.
            let Some(call) = calls.get(&report.progress_token) else {
                return;
            };
            Progress {
                server: call.server.clone(),
                tool: call.tool.clone(),
                call: call.id.clone(),
                progress: report.progress,
                total: report.total,
                message: report.message,
            }
        };
        listener(&progress);
    }
}
