//! Text for messages: near matches, lists, bounded text.

use std::borrow::Cow;

/// The greatest length of a name in messages and drawings, in bytes.
pub(crate) const MAX_SHOWN: usize = 100;

/// The greatest length of free text from a user or a library in messages, in bytes.
const MAX_PROSE: usize = 400;

/// The greatest number of names in a list.
const MAX_LISTED: usize = 20;

/// A name for messages and drawings: bounded, with every character escaped that cannot be shown in
/// a line.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    in_line(name, MAX_SHOWN)
}

/// The same for free text, which may be longer.
pub(crate) fn prose(words: &str) -> Cow<'_, str> {
    in_line(words, MAX_PROSE)
}

fn in_line(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let cut = bounded_at(text, max);
    let mut out = String::new();
    for c in text[..cut].chars() {
        if hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if cut < text.len() {
        out.push_str(CUT);
    }
    Cow::Owned(out)
}

/// The message of a panic.
pub(crate) fn words(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "the panic value is not a string".to_owned())
}

/// Whether it is a control character, changes the direction of text, or is invisible.
pub(crate) fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// Names in a list. A long list ends with the number of names omitted.
pub(crate) fn listed(names: &[impl AsRef<str>], between: &str) -> String {
    let mut out = String::new();
    for (place, name) in names.iter().take(MAX_LISTED).enumerate() {
        if place > 0 {
            out.push_str(between);
        }
        out.push_str(name.as_ref());
    }
    if names.len() > MAX_LISTED {
        out.push_str(&format!("{between}… ({} more)", names.len() - MAX_LISTED));
    }
    out
}

/// The name in `known` that `given` most likely means. Compares by Damerau-Levenshtein distance,
/// ignoring case. A distance of more than a third of the name's length is no match. Names longer
/// than [`MAX_SHOWN`] bytes never match, because the distance takes time proportional to the
/// product of the lengths.
pub(crate) fn near<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > MAX_SHOWN {
        return None;
    }
    let given = given.to_lowercase();
    let length = given.chars().count();
    known
        .into_iter()
        .filter(|name| name.len() <= MAX_SHOWN)
        .filter(|name| {
            let other = name.chars().count();
            other.abs_diff(length) <= other.max(3) / 3
        })
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.chars().count().max(3)) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `text`, truncated to at most `max` bytes at a character boundary, with a mark if it was
/// truncated.
pub(crate) fn bounded(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(bounded_at(&text, max));
        text.push_str(CUT);
    }
    text
}

/// Marks truncated text.
const CUT: &str = "… (cut)";

/// The last character boundary within the first `max` bytes.
fn bounded_at(text: &str, max: usize) -> usize {
    (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_near_matches() {
        assert_eq!(near("pubish", ["Polish", "Publish"]), Some("Publish"));
        assert_eq!(near("zebra", ["Polish", "Publish"]), None);
    }

    #[test]
    fn names_are_bounded_and_on_one_line() {
        assert_eq!(shown("Write/Ärger \"x\""), "Write/Ärger \"x\"");
        assert_eq!(shown("a\n\u{1b}[2J\u{202e}b"), "a\\n\\u{1b}[2J\\u{202e}b");
        let long = shown(&"é".repeat(1 << 20)).into_owned();
        assert_eq!(long, format!("{}… (cut)", "é".repeat(50)));
        assert_eq!(near(&"a".repeat(1 << 20), ["a"]), None);
        let many: Vec<String> = (0..22).map(|n| n.to_string()).collect();
        assert!(listed(&many, ", ").ends_with("18, 19, … (2 more)"));
    }

    #[test]
    fn prose_may_be_longer_than_names() {
        let why = "no \u{1b}key ".repeat(20);
        assert_eq!(prose(&why), "no \\u{1b}key ".repeat(20));
        assert_eq!(prose(&"é".repeat(1 << 20)), format!("{}… (cut)", "é".repeat(200)));
    }

    #[test]
    fn bounded_text_is_truncated_at_a_character() {
        assert_eq!(bounded("añb".into(), 2), "a… (cut)");
        assert_eq!(bounded("añb".into(), 4), "añb");
    }
}
