use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::graph::{AtMost, Branch, Budget};
use crate::step::{Policy, Retry};

fn edge(to: usize) -> Edge {
    Edge { to, at: Location::caller() }
}

fn node(name: &str, kind: Kind, exit: Exit) -> Node {
    Node {
        name: Arc::from(name),
        aliases: Vec::new(),
        kind,
        question: None,
        expires: None,
        exit,
        policy: Policy::default(),
        on_error: None,
        at_most: None,
        at: Location::caller(),
    }
}

fn sound() -> Wiring {
    let branches = vec![
        Branch { signal: "Again", dest: Dest::Step(edge(0)) },
        Branch { signal: "Done", dest: Dest::End },
    ];
    Wiring {
        name: Arc::from("loop"),
        nodes: vec![
            node("act", Kind::Run, Exit::Then(edge(1))),
            node("pick", Kind::Decide, Exit::Route { signals: "Next", branches }),
            node("ask", Kind::Gate, Exit::End),
            node("no", Kind::Off("later".into()), Exit::End),
        ],
        start: 0,
        on_error: None,
        finally: None,
        budget: Budget::default(),
        at: Location::caller(),
    }
}

#[test]
fn a_loop_has_the_same_fingerprint_wherever_it_is_declared() {
    let print = Fingerprint::of(&sound());
    assert_eq!(print, Fingerprint::of(&sound()));
    // The digest of a loop is in logs that are kept for years.
    assert_eq!(print.wiring, "cfdf925d66b8ac3235da557f41220b1b11416be5ee365e2b9e432451d121672e");
    assert_eq!(
        serde_json::to_value(&print.steps).unwrap(),
        json!({"act": "run", "ask": "gate", "no": "off", "pick": "decide"})
    );
    // Neither the order of the steps nor how long a policy waits makes another loop.
    let mut turned = sound();
    turned.nodes.swap(2, 3);
    assert_eq!(Fingerprint::of(&turned), print);
    let timed = |limit| {
        let mut wiring = sound();
        wiring.nodes[0].policy.timeout = Some(Duration::from_secs(limit));
        Fingerprint::of(&wiring)
    };
    assert_eq!(timed(1), timed(2));
}

#[test]
fn every_fact_of_the_wiring_counts() {
    type Change = fn(&mut Wiring);
    let changes: &[(&str, Change)] = &[
        ("name", |wiring| wiring.name = "other".into()),
        ("start", |wiring| wiring.start = 1),
        ("on_error", |wiring| wiring.on_error = Some(edge(2))),
        ("finally", |wiring| wiring.finally = Some(edge(2))),
        ("step name", |wiring| wiring.nodes[0].name = "do".into()),
        ("kind", |wiring| wiring.nodes[0].kind = Kind::Decide),
        ("target", |wiring| wiring.nodes[0].exit = Exit::Then(edge(2))),
        ("end", |wiring| wiring.nodes[0].exit = Exit::End),
        ("retry", |wiring| wiring.nodes[0].policy.retry = Some(Retry::exponential())),
        ("timeout", |wiring| wiring.nodes[0].policy.timeout = Some(Duration::ZERO)),
        ("step error", |wiring| wiring.nodes[0].on_error = Some(edge(2))),
        ("at most", |wiring| {
            wiring.nodes[0].at_most = Some(AtMost { times: 1, instead: edge(2) });
        }),
        ("at most more", |wiring| {
            wiring.nodes[0].at_most = Some(AtMost { times: 2, instead: edge(2) });
        }),
        ("step", |wiring| wiring.nodes.push(node("more", Kind::Run, Exit::End))),
        ("signal", |wiring| match &mut wiring.nodes[1].exit {
            Exit::Route { branches, .. } => branches[0].signal = "More",
            _ => unreachable!(),
        }),
        ("branch", |wiring| match &mut wiring.nodes[1].exit {
            Exit::Route { branches, .. } => branches[0].dest = Dest::End,
            _ => unreachable!(),
        }),
        ("signals", |wiring| match &mut wiring.nodes[1].exit {
            Exit::Route { signals, .. } => *signals = "Other",
            _ => unreachable!(),
        }),
    ];
    let mut seen = vec![Fingerprint::of(&sound()).wiring];
    for (name, change) in changes {
        let mut wiring = sound();
        change(&mut wiring);
        let digest = Fingerprint::of(&wiring).wiring;
        assert!(!seen.contains(&digest), "{name}");
        seen.push(digest);
    }
}
