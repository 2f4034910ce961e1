//! Bytes that are not what was written. Whether they are is the store's to find out; reading them
//! must end, and say so, whatever they are.

use harness::Seq;
use harness::session::{Entry, Replay};

use super::Golden;

/// Numbers that look random and are the same each time.
fn scattered(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    })
}

#[test]
fn a_flipped_bit_never_panics() {
    let golden = Golden::read("turns");
    let (mut refused, mut before) = (0, Replay::default());
    for (at, line) in golden.entries.iter().enumerate() {
        for place in scattered(at as u64).take(400).map(|random| random % (line.len() * 8)) {
            let mut bytes = line.clone().into_bytes();
            bytes[place / 8] ^= 1 << (place % 8);
            let mut replay = before.clone();
            match replay.push(golden.seq(at), &bytes) {
                Ok(()) => assert!(replay.state().is_some()),
                Err(error) => {
                    assert_eq!(error.seq(), Some(golden.seq(at)));
                    assert!(error.to_string().len() < 400, "{error}");
                    refused += 1;
                }
            }
        }
        before.push(golden.seq(at), line.as_bytes()).unwrap();
    }
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn entries_in_any_order_never_panic() {
    let golden = Golden::read("turns");
    for seed in 0..200 {
        let mut replay = Replay::default();
        for (seq, random) in (1..).zip(scattered(seed).take(60)) {
            let line = &golden.entries[random % golden.entries.len()];
            let before = replay.head();
            if replay.push(Seq(seq), line.as_bytes()).is_ok() {
                assert_eq!(replay.head(), Seq(seq));
            } else {
                assert_eq!(replay.head(), before);
                replay = Replay::default();
            }
        }
    }
}

#[test]
fn a_torn_entry_is_refused() {
    for golden in Golden::all() {
        for line in &golden.entries {
            // Of long entries, some places are enough.
            let cuts = scattered(line.len() as u64).take(200).map(|random| random % line.len());
            for cut in cuts.chain([0, line.len() - 1]) {
                assert!(Entry::decode(&line.as_bytes()[..cut]).is_err(), "{cut} of {line}");
            }
        }
    }
}

#[test]
fn depth_is_bounded_wherever_it_is() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let golden = Golden::read("turns");
    for line in &golden.entries {
        for (depth, fits) in [(20, true), (10_000, false)] {
            // In place of each null, and of each empty list, that an entry holds.
            for target in ["null", "[]"] {
                for (at, _) in line.match_indices(target).take(5) {
                    let (before, after) = (&line[..at], &line[at + target.len()..]);
                    let entry = Entry::decode(format!("{before}{}{after}", deep(depth)).as_bytes());
                    assert!(fits || entry.is_err(), "{}", &line[..80]);
                }
            }
        }
    }
    let effect = |value: &str| {
        Entry::decode(format!(r#"{{"t":1,"effect":{{"k":"k","v":{value}}}}}"#).as_bytes())
    };
    assert!(effect(&deep(20)).is_ok() && effect(&deep(10_000)).is_err());
}

#[test]
fn an_error_shows_nothing_of_what_is_in_the_log() {
    for line in [
        r#"{"t":1,"commit":{"n":{"SECRET":1}}}"#,
        r#"{"t":1,"commit":{"o":[{"SECRET":1}]}}"#,
        r#"{"t":1,"effect":{"k":1,"v":"SECRET"}}"#,
        r#"{"t":1,"resolve":{"id":"x","as":"SECRET"}}"#,
        r#"{"t":1,"SECRET":1}"#,
        r#"{"t":"SECRET"}"#,
        r#""SECRET""#,
        "SECRET",
    ] {
        let error = Replay::default().push(Seq(1), line.as_bytes()).unwrap_err();
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        let mut reported = format!("{error:?}");
        while let Some(error) = cause {
            reported.push_str(&error.to_string());
            cause = error.source();
        }
        assert!(!reported.contains("SECRET"), "{reported}");
    }
}
