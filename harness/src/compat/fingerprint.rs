//! The fingerprint of a loop.

use serde_json::{Value, json};

use crate::graph::{Dest, Edge, Exit, Kind, Node, Wiring};

use crate::session::{Digest, Fingerprint, StepKind};

impl Fingerprint {
    /// The fingerprint of a loop. The same loop has the same fingerprint in every process.
    pub(crate) fn of(wiring: &Wiring) -> Self {
        let steps = wiring
            .nodes
            .iter()
            .map(|node| (node.name.to_string(), step_kind(&node.kind)))
            .collect();
        Self { name: wiring.name.to_string(), wiring: digest(wiring).to_string(), steps }
    }
}

fn step_kind(kind: &Kind) -> StepKind {
    match kind {
        Kind::Run => StepKind::Run,
        Kind::Decide => StepKind::Decide,
        Kind::Gate => StepKind::Gate,
        Kind::Each => StepKind::Each,
        Kind::Off(_) => StepKind::Off,
    }
}

/// The hash covers the steps by name, in the order of their names, so that the order of declaration
/// does not matter. It covers whether a policy is set, not its durations.
fn digest(wiring: &Wiring) -> Digest {
    let step = |to: usize| wiring.nodes.get(to).map(|node| Value::from(&*node.name));
    let edge = |edge: Option<Edge>| edge.and_then(|edge| step(edge.to));
    let dest = |dest: Dest| match dest {
        Dest::Step(edge) => step(edge.to),
        Dest::End => None,
    };
    let node = |node: &Node| {
        let exit = match &node.exit {
            Exit::Then(to) => json!(["then", step(to.to)]),
            Exit::End => json!(["end"]),
            Exit::Route { signals, branches } => {
                let branches: Vec<Value> = branches
                    .iter()
                    .map(|branch| json!([branch.signal, dest(branch.dest)]))
                    .collect();
                json!(["route", signals, branches])
            }
        };
        let at_most = node.at_most.map(|limit| json!([limit.times, step(limit.instead.to)]));
        let mut parts = json!({
            "kind": step_kind(&node.kind),
            "question": node.question.map(|question| question.name),
            "expires": node.expires.map(|expiry| json!([edge(expiry.to)])),
            "exit": exit,
            "retry": node.policy.retry.is_some(),
            "timeout": node.policy.timeout.is_some(),
            "on_error": edge(node.on_error),
            "at_most": at_most,
        });
        // Left out where it is not set, so that loops from before it was known keep their hash.
        if node.policy.after.is_some() {
            parts["after"] = Value::from(true);
        }
        parts
    };
    let nodes: serde_json::Map<String, Value> =
        wiring.nodes.iter().map(|here| (here.name.to_string(), node(here))).collect();
    Digest::of(&json!({
        "name": &*wiring.name,
        "start": step(wiring.start),
        "on_error": edge(wiring.on_error),
        "finally": edge(wiring.finally),
        "steps": nodes,
    }))
}

#[cfg(test)]
mod tests;
