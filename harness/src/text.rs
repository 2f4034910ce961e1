//! Words for messages: near matches, lists, bounded text.

/// The name among `known` that a person who wrote `given` most likely meant.
///
/// Damerau-Levenshtein distance by the `strsim` crate, upper and lower case alike; a name further
/// away than a third of its length is no match.
pub(crate) fn near<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.chars().count().max(3)) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `text` cut to at most `max` bytes, at a character's edge, with a mark where it was cut.
pub(crate) fn bounded(mut text: String, max: usize) -> String {
    if text.len() > max {
        let cut = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
        text.push_str("… (cut)");
    }
    text
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
    fn bounded_text_is_cut_at_a_character() {
        assert_eq!(bounded("añb".into(), 2), "a… (cut)");
        assert_eq!(bounded("añb".into(), 4), "añb");
    }
}
