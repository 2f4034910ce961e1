//! A run that a step of another run has started.

use std::sync::{Arc, Weak};

use tracing::Span;

use crate::id::{RunId, SessionId};
use crate::llm::Spend;
use crate::observe::{ChildRun, End, EventKind, ParentStep};
use crate::step::{Ids, Place, Scope};

/// What a run does for the runs that its steps start.
pub(super) trait ParentRun: Send + Sync {
    /// Adds to the spend of the run, without an event. What a `child` session spends is in its own log:
    /// it counts here, and is recorded when the child rests.
    fn spend(&self, child: Option<&SessionId>, spend: &Spend);
    /// Publishes an event of a step, unless the run has settled: that event is its last.
    fn report(&self, place: Place, kind: EventKind);
}

/// The step that has started a run. It may be over before that run is.
#[derive(Clone)]
pub(crate) struct Parent {
    parent: Weak<dyn ParentRun>,
    place: Place,
    run: RunId,
    step: Arc<ParentStep>,
    /// The session that it started, which its session knows.
    child: Option<SessionId>,
    /// How many runs are above the run that it starts.
    depth: u32,
    /// The span of the step.
    span: Span,
}

impl Parent {
    /// The step of this scope, whose run is `parent`.
    pub(super) fn new(scope: &Scope, parent: Weak<dyn ParentRun>, depth: u32, span: Span) -> Self {
        let step = ParentStep {
            agent: scope.agent_id().clone(),
            session: scope.session_id().clone(),
            step: scope.step().into(),
            position: scope.place.position,
            item: scope.place.item,
            attempt: scope.place.attempt,
        };
        let (place, run, step) = (scope.place, scope.run_id().clone(), Arc::new(step));
        Self { parent, place, run, step, child: None, depth, span }
    }

    /// The same, of a session that the parent's session knows.
    pub(super) fn of_child(self, child: SessionId) -> Self {
        Self { child: Some(child), ..self }
    }

    /// Whether the parent's session knows the session, and has a run that waits for it.
    pub(super) fn awaits(&self) -> bool {
        self.child.is_some()
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    pub(super) fn step(&self) -> &Arc<ParentStep> {
        &self.step
    }

    /// What the run spends, its parent spends. The event is the run's alone, so that nothing that
    /// observes both counts it twice.
    pub(super) fn charge(&self, spend: &Spend) {
        if let Some(parent) = self.parent.upgrade() {
            parent.spend(self.child.as_ref(), spend);
        }
    }

    fn report(&self, kind: EventKind) {
        if let Some(parent) = self.parent.upgrade() {
            parent.report(self.place, kind);
        }
    }

    /// The run begins.
    pub(crate) fn begin(self, ids: &Ids) -> Child {
        let Ids { agent, session, run, .. } = ids.clone();
        let child = ChildRun { agent, session, run };
        self.report(EventKind::ChildStarted { child: child.clone() });
        Child { parent: Some(self), child }
    }
}

/// A run at work that has a parent. Dropped, it is cancelled.
pub(crate) struct Child {
    parent: Option<Parent>,
    child: ChildRun,
}

impl Child {
    /// The run has settled.
    pub(crate) fn settle(mut self, end: &End, spent: Spend) {
        self.end(end.clone(), spent);
    }

    fn end(&mut self, end: End, spent: Spend) {
        if let Some(parent) = self.parent.take() {
            let child = self.child.clone();
            parent.report(EventKind::ChildSettled { child, end, spent });
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end(End::Cancelled, Spend::default());
    }
}
