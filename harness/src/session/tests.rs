//! What holds for every log.

mod live;
mod random;

use proptest::prelude::*;

use super::saved::Saved;
use super::{Entry, EntryKind, Replay, Snapshot};
use crate::clock::UtcMillis;
use crate::id::Seq;

fn bytes(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::new();
    entry.encode(&mut out).unwrap();
    out
}

fn replay(lines: &[Vec<u8>], from: usize) -> (Saved, Replay) {
    let mut replay = Replay::default();
    for (at, line) in lines.iter().enumerate().skip(from) {
        replay.take(Seq(at as u64 + 1), line).unwrap();
    }
    assert_eq!(replay.head(), Seq(lines.len() as u64));
    let mut again = Replay::default();
    for (at, line) in lines.iter().enumerate().skip(from) {
        again.take(Seq(at as u64 + 1), line).unwrap();
    }
    (replay.finish().unwrap(), again)
}

proptest! {
    #[test]
    fn a_log_says_the_same_from_the_start_and_from_every_snapshot(log in random::logs()) {
        let mut live: Option<Saved> = None;
        let (mut lines, mut snapshots) = (Vec::new(), Vec::new());
        for entry in log {
            let line = bytes(&entry);
            let read = Entry::decode(&line).unwrap();
            prop_assert_eq!(&read, &entry);
            prop_assert_eq!(bytes(&read), &line[..]);
            if matches!(entry.kind, EntryKind::Snapshot(_)) {
                snapshots.push(lines.len());
            }
            match &mut live {
                Some(saved) => saved.apply(entry).unwrap(),
                None => live = Some(Saved::begin(entry).unwrap()),
            }
            lines.push(line);
        }
        let live = live.unwrap();
        let last = snapshots.last().copied().unwrap_or(0);
        for from in [0].into_iter().chain(snapshots) {
            let (saved, again) = replay(&lines, from);
            prop_assert_eq!(&saved, &live, "from {}", from);
            let since: usize = lines[last + 1..].iter().map(Vec::len).sum();
            prop_assert_eq!(again.since().bytes, since as u64);
            prop_assert_eq!(again.since().entries, (lines.len() - last - 1) as u64);
        }
        // What it adds up to can be told in one entry, and read again.
        let kind = EntryKind::Snapshot(Snapshot(Box::new(live.clone())));
        let snapshot = Entry { at: UtcMillis(1), spent: None, kind };
        let read = Entry::decode(&bytes(&snapshot)).unwrap();
        prop_assert_eq!(Saved::begin(read).unwrap(), live);
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
    log.take(Seq(5), &open).unwrap();
    let error = log.take(Seq(7), &run).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the log cannot be followed at seq 7: expected the entry 6 next (read the log in order)"
    );
    log.take(Seq(6), &run).unwrap();
    let error = log.take(Seq(7), b"{}").unwrap_err();
    assert_eq!((error.seq(), error.is_newer()), (Some(Seq(7)), false));
    assert!(std::error::Error::source(&error).is_some());
    let error = log.take(Seq(7), br#"{"t":1,"unheard":{}}"#).unwrap_err();
    assert!(error.is_newer());
    let error = log.take(Seq(7), br#"{"t":1,"child":{}}"#).unwrap_err();
    assert!(error.is_newer() && error.to_string().contains("`child`"), "{error}");
}
