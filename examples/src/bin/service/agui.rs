//! The events of runs, as AG-UI has them.

use std::sync::Arc;

use harness::observe::{End, Event, EventKind, Observer};
use harness::{Interrupt, Sessions};
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// How many events a slow reader may be behind before it misses some.
const BEHIND: usize = 1_024;

/// The events of all runs of this process.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<Arc<Event>>,
}

impl Default for Events {
    fn default() -> Self {
        Self { sender: broadcast::channel(BEHIND).0 }
    }
}

impl Events {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.sender.subscribe()
    }
}

impl Observer for Events {
    fn on_event(&self, event: &Event) {
        // Without readers an event is of no use.
        let _ = self.sender.send(Arc::new(event.clone()));
    }
}

/// The event as AG-UI has it; `None` if that has none for it.
pub(crate) async fn event(event: &Event, sessions: &Sessions) -> Option<Value> {
    let (thread, run) = (event.session.as_str(), event.run.as_str());
    let step = event.step.as_deref();
    let ended = |outcome: Value| json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": outcome});
    Some(match &event.kind {
        EventKind::RunStarted { .. } => {
            json!({"type": "RUN_STARTED", "threadId": thread, "runId": run})
        }
        EventKind::StepStarted => json!({"type": "STEP_STARTED", "stepName": step}),
        EventKind::Committed { .. } | EventKind::Diverted { .. } => {
            json!({"type": "STEP_FINISHED", "stepName": step})
        }
        EventKind::Settled { end, .. } => match end {
            End::Ended { .. } => ended(json!({"type": "success"})),
            End::Interrupted => {
                let status = sessions.status(thread).await.ok()?;
                let open: Vec<_> = status.questions.iter().map(Interrupt::to_ag_ui).collect();
                ended(json!({"type": "interrupt", "interrupts": open}))
            }
            End::Stopped | End::Cancelled => ended(json!({"type": "cancelled"})),
            other => json!({"type": "RUN_ERROR", "message": other.to_string()}),
        },
        _ => return None,
    })
}
