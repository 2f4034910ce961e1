//! Text from files, models and users, as a terminal may get it.

/// The text with its control characters and reordering characters written out, so that a terminal
/// obeys none of them.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && c != '\t') || reorders {
            result.extend(c.escape_unicode());
        } else {
            result.push(c);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn control_and_reordering_characters_are_written_out() {
        assert_eq!(shown("a\u{1b}[2J\u{202e}\n\té"), "a\\u{1b}[2J\\u{202e}\\u{a}\té");
    }
}
