//! The commits that nearly all steps make, as bytes.
//!
//! A commit of a few fields is written in a fraction of what the general way takes. It comes out as
//! the same bytes; a commit that is anything else is left to the general way.

use std::sync::Arc;

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::state::{Op, Segment};

use super::entry::{Committed, Entry, EntryKind};

/// Appends the entry to `out` if it is a commit that is simple enough; else `out` stays as it is.
pub(super) fn encode(entry: &Entry, out: &mut Vec<u8>) -> bool {
    let EntryKind::Committed(Committed { next, ops }) = &entry.kind else { return false };
    if entry.spent.is_some() {
        return false;
    }
    let start = out.len();
    let written = commit(entry.at, next.as_ref(), ops, out).is_some();
    if !written {
        out.truncate(start);
    }
    written
}

fn commit(at: UtcMillis, next: Option<&Arc<str>>, ops: &[Op], out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(b"{\"t\":");
    scalar(&at, out)?;
    out.extend_from_slice(b",\"commit\":{");
    if let Some(next) = next {
        out.extend_from_slice(b"\"n\":");
        plain(next, out)?;
    }
    if !ops.is_empty() {
        out.extend_from_slice(if next.is_some() { b",\"o\":[" } else { b"\"o\":[" });
        for (nth, op) in ops.iter().enumerate() {
            if nth > 0 {
                out.push(b',');
            }
            let (open, path, value): (&[u8], _, _) = match op {
                Op::Set { path, value } => (b"{\"set\":{\"p\":[", path, value),
                Op::Push { path, value } => (b"{\"push\":{\"p\":[", path, value),
                _ => return None,
            };
            let [Segment::Key(field)] = path.segments() else { return None };
            out.extend_from_slice(open);
            plain(field, out)?;
            out.extend_from_slice(b"],\"v\":");
            match value {
                // These may lie too deep.
                Value::Array(_) | Value::Object(_) => return None,
                value => scalar(value, out)?,
            }
            out.extend_from_slice(b"}}");
        }
        out.push(b']');
    }
    out.extend_from_slice(b"}}");
    Some(())
}

fn scalar(value: &impl serde::Serialize, out: &mut Vec<u8>) -> Option<()> {
    serde_json::to_writer(out, value).ok()
}

/// Text that stands in JSON as it is.
fn plain(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let needs_no_escape = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    if !text.as_bytes().iter().all(needs_no_escape) {
        return None;
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::llm::Spend;

    fn entry(next: Option<&str>, ops: Value) -> Entry {
        let ops = serde_json::from_value(ops).unwrap();
        let kind = EntryKind::Committed(Committed { next: next.map(Arc::from), ops });
        Entry { at: UtcMillis(1_763_729_326_123), spent: None, kind }
    }

    fn quick(entry: &Entry) -> Option<String> {
        let mut out = b"before".to_vec();
        let written = encode(entry, &mut out);
        let text = String::from_utf8(out).unwrap();
        let rest = text.strip_prefix("before").unwrap().to_owned();
        assert_eq!(written, !rest.is_empty());
        written.then_some(rest)
    }

    #[test]
    fn the_same_bytes_come_out() {
        let ops = json!([
            {"set": {"p": ["a"], "v": null}},
            {"set": {"p": ["ü b"], "v": -1.5e300}},
            {"push": {"p": [""], "v": "say \"hi\"\n\u{1}"}},
            {"set": {"p": ["c"], "v": u64::MAX}},
            {"push": {"p": ["d"], "v": true}},
        ]);
        for next in [None, Some("act")] {
            for ops in [json!([]), json!([ops[0]]), ops.clone()] {
                let entry = entry(next, ops);
                assert_eq!(quick(&entry), Some(serde_json::to_string(&entry).unwrap()));
            }
        }
    }

    #[test]
    fn what_is_not_simple_is_left_alone() {
        for ops in [
            json!([{"set": {"p": ["a"], "v": 1}}, {"set": {"p": ["a", 0], "v": 1}}]),
            json!([{"set": {"p": ["a"], "v": []}}]),
            json!([{"push": {"p": ["a"], "v": {}}}]),
            json!([{"set": {"p": ["a\"b"], "v": 1}}]),
            json!([{"del": {"p": ["a"], "k": "b"}}]),
        ] {
            assert_eq!(quick(&entry(Some("act"), ops)), None);
        }
        assert_eq!(quick(&entry(Some("a\\ct"), json!([]))), None);
        let spent = Some(Spend::default());
        assert_eq!(quick(&Entry { spent, ..entry(None, json!([])) }), None);
    }
}
