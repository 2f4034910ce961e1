//! Which agents the steps of a service can call.

use harness::id::AgentId;

/// The agents that steps can call.
#[derive(Debug, Default)]
pub(super) struct Callable {
    /// Those that this process serves.
    pub(super) served: Vec<AgentId>,
    /// Those that a service serves, with slots of its own.
    pub(super) declared: Vec<AgentId>,
}

impl Callable {
    /// Why a step cannot call an agent, if it cannot.
    pub(super) fn refuses(&self, agent: &AgentId, slots: bool) -> Option<String> {
        if self.declared.contains(agent) {
            return None;
        }
        let why = if !self.served.contains(agent) {
            "this service does not serve it (add `.serve(&agent, ..)`, or `.calls(agent.id())` if \
             another service of the server serves it)"
        } else if slots {
            "it has runtime slots, and those of a call do not reach another invocation (add \
             `.calls(agent.id())`: it gets the slots that its service makes)"
        } else {
            return None;
        };
        Some(why.to_owned())
    }
}
