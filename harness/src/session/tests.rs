//! What holds for every log.

mod live;
mod model;
mod random;

use proptest::prelude::*;

use super::{Change, Entry, Recorded, Replay, Snapshot};
use crate::clock::UtcMillis;
use crate::id::Seq;

fn bytes(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::new();
    entry.encode(&mut out).unwrap();
    out
}

/// The snapshot of a session.
fn snapshot(Recorded { session, state }: &Recorded) -> Change {
    Change::Snapshot(Box::new(Snapshot { session: *session.clone(), state: state.clone() }))
}

fn replay(lines: &[Vec<u8>], from: usize) -> (Recorded, Replay) {
    let mut replay = Replay::default();
    for (at, line) in lines.iter().enumerate().skip(from) {
        replay.push(Seq(at as u64 + 1), line).unwrap();
    }
    assert_eq!(replay.head(), Seq(lines.len() as u64));
    let mut again = Replay::default();
    for (at, line) in lines.iter().enumerate().skip(from) {
        again.push(Seq(at as u64 + 1), line).unwrap();
    }
    (replay.finish().unwrap(), again)
}

proptest! {
    #[test]
    fn a_log_says_the_same_from_the_start_and_from_every_snapshot(log in random::logs()) {
        let mut live: Option<Recorded> = None;
        let (mut lines, mut snapshots) = (Vec::new(), Vec::new());
        for entry in log {
            let line = bytes(&entry);
            let read = Entry::decode(&line).unwrap();
            prop_assert_eq!(&read, &entry);
            prop_assert_eq!(bytes(&read), &line[..]);
            if matches!(entry.change, Change::Snapshot(_)) {
                snapshots.push(lines.len());
            }
            match &mut live {
                Some(recorded) => recorded.apply(entry).unwrap(),
                None => live = Some(Recorded::begin(entry).unwrap()),
            }
            lines.push(line);
        }
        let live = live.unwrap();
        let last = snapshots.last().copied().unwrap_or(0);
        for from in [0].into_iter().chain(snapshots) {
            let (recorded, again) = replay(&lines, from);
            prop_assert_eq!(&recorded, &live, "from {}", from);
            let since: usize = lines[last + 1..].iter().map(Vec::len).sum();
            prop_assert_eq!(again.since().bytes, since as u64);
            prop_assert_eq!(again.since().entries, (lines.len() - last - 1) as u64);
        }
        // What it replays to is stored as one entry, and read again.
        let change = snapshot(&live);
        let snapshot = Entry { at: UtcMillis(1), spent: None, change };
        let read = Entry::decode(&bytes(&snapshot)).unwrap();
        prop_assert_eq!(Recorded::begin(read).unwrap(), live);
    }
}

#[test]
fn a_log_is_read_in_order() {
    let line = |text: &str| text.as_bytes().to_vec();
    let open = line(super::codec::tests::LINES[0]);
    let run = line(r#"{"t":3,"run":{"run":"r1","start":"act"}}"#);
    let mut log = Replay::default();
    assert_eq!((log.head(), log.state()), (Seq(0), None));
    assert!(Replay::default().finish().is_err_and(|error| error.seq().is_none()));
    log.push(Seq(5), &open).unwrap();
    let error = log.push(Seq(7), &run).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to replay the log at seq 7: expected the entry 6 next (read the log in order)"
    );
    log.push(Seq(6), &run).unwrap();
    let error = log.push(Seq(7), b"{}").unwrap_err();
    assert_eq!((error.seq(), error.is_newer()), (Some(Seq(7)), false));
    assert!(std::error::Error::source(&error).is_some());
    let error = log.push(Seq(7), br#"{"t":1,"unheard":{}}"#).unwrap_err();
    assert!(error.is_newer());
    let error = log.push(Seq(7), br#"{"t":1,"notified":{}}"#).unwrap_err();
    assert!(error.is_newer() && error.to_string().contains("`notified`"), "{error}");
}
