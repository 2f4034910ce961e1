//! Names in messages: escaped, bounded, and compared with the names that exist.
use std::borrow::Cow;

/// The longest name, in bytes, that a message shows or [`near`] compares. The time of a comparison
/// grows with the product of both lengths.
const MAX_NAME: usize = 100;

/// `name` on one line of bounded length. Escapes what the standard library escapes in a `Debug`
/// string, except quotes and backslashes: a name is often a line of Python.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_NAME && name.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(name);
    }
    let end = name.floor_char_boundary(MAX_NAME);
    let mut out = String::new();
    for char in name[..end].chars() {
        match char {
            '"' | '\'' | '\\' => out.push(char),
            _ => out.extend(char.escape_debug()),
        }
    }
    if end < name.len() {
        out.push_str("… (cut)");
    }
    Cow::Owned(out)
}

/// The name among `known` that is most similar to `given`, if one is similar at all: the rule and
/// the threshold by which clap suggests a subcommand, ignoring case.
pub(crate) fn near<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > MAX_NAME {
        return None;
    }
    let given = given.to_lowercase();
    known
        .into_iter()
        .filter(|name| name.len() <= MAX_NAME)
        .map(|name| (strsim::jaro(&given, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_near() {
        assert_eq!(near("claen", ["load", "clean"]), Some("clean"));
        assert_eq!(near("CLEAN", ["clean"]), Some("clean"));
        assert_eq!(near("zebra", ["load", "clean"]), None);
        assert_eq!(near(&"a".repeat(1 << 20), ["a"]), None);
    }

    #[test]
    fn names_are_shown_bounded_and_on_one_line() {
        assert_eq!(shown("x = 'ä' + \"\\n\""), "x = 'ä' + \"\\n\"");
        assert_eq!(shown("a\n\u{1b}[2J\u{202e}b"), "a\\n\\u{1b}[2J\\u{202e}b");
        assert_eq!(shown(&"é".repeat(1 << 20)), format!("{}… (cut)", "é".repeat(50)));
    }
}
