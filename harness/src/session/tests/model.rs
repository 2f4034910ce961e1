//! The running loop and the log have one model: what a live session is after each change is what the
//! log replays to.

use std::panic::Location;
use std::sync::Arc;

use proptest::prelude::*;

use crate::graph::{Budget, Exit, Kind, Node, Wiring};
use crate::id::Seq;
use crate::session::{Change, Names as _, Recorded, Replay, Session, fold_change};
use crate::step::Policy;

use super::{bytes, random};

/// A loop with the steps of the random logs, whose places are not in the order of their names.
fn wiring() -> Wiring {
    let node = |name: &str| Node {
        name: Arc::from(name),
        aliases: Vec::new(),
        kind: Kind::Run,
        question: None,
        expires: None,
        exit: Exit::End,
        policy: Policy::default(),
        on_error: None,
        at_most: None,
        at: Location::caller(),
    };
    Wiring {
        name: Arc::from("l"),
        nodes: random::STEPS.map(node).into(),
        start: 1,
        on_error: None,
        finally: None,
        budget: Budget::default(),
        at: Location::caller(),
    }
}

proptest! {
    #[test]
    fn a_live_session_is_what_its_log_replays_to(log in random::logs()) {
        let wiring = wiring();
        let index = |step: &Arc<str>| wiring.index_of(step).unwrap();
        let mut live: Option<(Session<usize>, serde_json::Value)> = None;
        let mut replay = Replay::default();
        for (seq, named) in (1..).map(Seq).zip(log) {
            let entry = match (&mut live, &named.change) {
                (None, _) => {
                    let Recorded { session, state } = Recorded::begin(named.clone()).unwrap();
                    live = Some((session.indexed(&wiring).unwrap(), state));
                    named
                }
                // Another version takes a session over before its steps have indices.
                (Some((session, state)), Change::Adopted(_)) => {
                    let (old, value) = (session.named(&wiring), std::mem::take(state));
                    let mut recorded = Recorded { session: Box::new(old), state: value };
                    recorded.apply(named.clone()).unwrap();
                    *session = recorded.session.indexed(&wiring).unwrap();
                    *state = recorded.state;
                    named
                }
                (Some((session, state)), _) => {
                    let mut entry = named.clone().map_step(&index);
                    session.apply(&entry).unwrap();
                    // The log has it by the names of the steps.
                    let stored = wiring.entry(entry.clone());
                    prop_assert_eq!(&stored, &named);
                    if !matches!(entry.change, Change::Snapshot(_)) {
                        fold_change(state, &mut entry.change).unwrap();
                    }
                    stored
                }
            };
            replay.push(seq, &bytes(&entry)).unwrap();
            let (session, state) = live.as_ref().unwrap();
            let replayed = replay.recorded().unwrap();
            let indexed = replayed.session.clone().indexed(&wiring);
            prop_assert_eq!(&session.named(&wiring), &*replayed.session, "seq {}", seq);
            prop_assert_eq!(state, &replayed.state, "seq {}", seq);
            prop_assert_eq!(indexed.as_ref(), Some(session));
        }
    }
}
