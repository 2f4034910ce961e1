//! Logs as they are kept: written once, read indefinitely.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod damage;
mod golden;
mod stored;

use std::fs;
use std::path::Path;

use harness::Seq;

/// A log that was written once, and what each of its entries made of the state.
struct Golden {
    name: &'static str,
    /// The seq of the first entry.
    first: u64,
    entries: Vec<String>,
    /// The state at each entry, byte for byte.
    states: Vec<String>,
}

impl Golden {
    fn read(name: &'static str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let lines = |file: String| -> Vec<String> {
            let text = fs::read_to_string(folder.join(file)).unwrap();
            text.lines().map(str::to_owned).collect()
        };
        let (mut first, mut states) = (0, Vec::new());
        for (at, line) in (0..).zip(lines(format!("{name}.states.jsonl"))) {
            let rest = line.strip_prefix(r#"{"seq":"#).and_then(|rest| rest.strip_suffix('}'));
            let (seq, state) = rest.unwrap().split_once(r#","state":"#).unwrap();
            let seq: u64 = seq.parse().unwrap();
            if at == 0 {
                first = seq;
            }
            assert_eq!(seq, first + at, "{name}");
            states.push(state.to_owned());
        }
        let entries = lines(format!("{name}.jsonl"));
        assert_eq!(entries.len(), states.len(), "{name}");
        Self { name, first, entries, states }
    }

    fn all() -> Vec<Self> {
        [
            "turns", "pruned", "migrated", "fork", "items", "not_done", "talk", "timers", "edited",
            "traced",
        ]
        .map(Self::read)
        .into()
    }

    fn seq(&self, at: usize) -> Seq {
        Seq(self.first + at as u64)
    }
}
