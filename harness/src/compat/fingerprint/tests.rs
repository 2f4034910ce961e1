use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::graph::{AtMost, Branch, Budget, Expiry};
use crate::step::{Policy, QuestionType, Retry};

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
    assert_eq!(print.wiring, "2b5d931b0874c9e1009fda1bb52866186d7b2372c16ec9f24d16b95d05083827");
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
    // An older name of a step is no other step.
    let mut renamed = sound();
    renamed.nodes[0].aliases.push("do".into());
    assert_eq!(Fingerprint::of(&renamed), print);
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
        ("kind with items", |wiring| wiring.nodes[0].kind = Kind::Each),
        ("target", |wiring| wiring.nodes[0].exit = Exit::Then(edge(2))),
        ("end", |wiring| wiring.nodes[0].exit = Exit::End),
        ("retry", |wiring| wiring.nodes[0].policy.retry = Some(Retry::exponential())),
        ("timeout", |wiring| wiring.nodes[0].policy.timeout = Some(Duration::ZERO)),
        ("step error", |wiring| wiring.nodes[0].on_error = Some(edge(2))),
        ("question", |wiring| {
            wiring.nodes[2].question =
                Some(QuestionType { name: "ok", answer_schema: || Value::Null, check: |_| Ok(()) });
        }),
        ("expiry", |wiring| {
            wiring.nodes[2].expires = Some(Expiry { after: Duration::ZERO, to: None });
        }),
        ("expiry's target", |wiring| {
            wiring.nodes[2].expires = Some(Expiry { after: Duration::ZERO, to: Some(edge(0)) });
        }),
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
