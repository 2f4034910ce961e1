//! Words for messages: near matches, lists, bounded text.

use std::borrow::Cow;

/// The most bytes of a name that messages and drawings show.
pub(crate) const MAX_SHOWN: usize = 100;

/// The most bytes of a person's or a library's own words that messages show.
const MAX_PROSE: usize = 400;

/// The most names that a message lists.
const MAX_LISTED: usize = 20;

/// A name as messages and drawings show it: bounded, and with every character escaped that would
/// not stand in its line as itself.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    in_line(name, MAX_SHOWN)
}

/// The same for words rather than a name, which need more room to be understood.
pub(crate) fn prose(words: &str) -> Cow<'_, str> {
    in_line(words, MAX_PROSE)
}

fn in_line(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let cut = bounded_at(text, max);
    let mut out = String::new();
    for letter in text[..cut].chars() {
        if hidden(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    if cut < text.len() {
        out.push_str(CUT);
    }
    Cow::Owned(out)
}

/// What a panic said.
pub(crate) fn words(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned())
}

/// Control characters, and those that change the direction of text or take no room.
fn hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// Names in a row; after the first of very many, how many more there are.
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

/// The name among `known` that a person who wrote `given` most likely meant.
///
/// Damerau-Levenshtein distance by the `strsim` crate, upper and lower case alike; a name further
/// away than a third of its length is no match. Names of more than [`MAX_SHOWN`] bytes match none:
/// the distance takes time that grows with the product of both.
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

/// `text` cut to at most `max` bytes, at a character's edge, with a mark where it was cut.
pub(crate) fn bounded(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(bounded_at(&text, max));
        text.push_str(CUT);
    }
    text
}

/// Stands where text was cut.
const CUT: &str = "… (cut)";

/// The last edge of a character within the first `max` bytes.
fn bounded_at(text: &str, max: usize) -> usize {
    (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_matches_are_near() {
        assert_eq!(near("pubish", ["Polish", "Publish"]), Some("Publish"));
        assert_eq!(near("zebra", ["Polish", "Publish"]), None);
    }

    #[test]
    fn names_are_shown_bounded_and_in_one_line() {
        assert_eq!(shown("Write/Ärger \"x\""), "Write/Ärger \"x\"");
        assert_eq!(shown("a\n\u{1b}[2J\u{202e}b"), "a\\n\\u{1b}[2J\\u{202e}b");
        let long = shown(&"é".repeat(1 << 20)).into_owned();
        assert_eq!(long, format!("{}… (cut)", "é".repeat(50)));
        assert_eq!(near(&"a".repeat(1 << 20), ["a"]), None);
        let many: Vec<String> = (0..22).map(|n| n.to_string()).collect();
        assert!(listed(&many, ", ").ends_with("18, 19, … (2 more)"));
    }

    #[test]
    fn words_have_more_room_than_names() {
        let why = "no \u{1b}key ".repeat(20);
        assert_eq!(prose(&why), "no \\u{1b}key ".repeat(20));
        assert_eq!(prose(&"é".repeat(1 << 20)), format!("{}… (cut)", "é".repeat(200)));
    }

    #[test]
    fn bounded_text_is_cut_at_a_character() {
        assert_eq!(bounded("añb".into(), 2), "a… (cut)");
        assert_eq!(bounded("añb".into(), 4), "añb");
    }
}
