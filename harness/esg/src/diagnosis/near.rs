//! The known names that a misspelt one probably stands for.

use std::cmp::Ordering;

/// At most this many guesses are worth trying.
const MOST: usize = 3;

/// The names of `known` near to `wrong`, the nearest first; among equals the
/// order of `known` decides.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(f64, &str)> = Vec::new();
    for name in known {
        let private = name.starts_with('_') && !wrong.starts_with('_');
        if private || name == wrong || found.iter().any(|(_, other)| *other == name) {
            continue;
        }
        if let Some(score) = likeness(wrong, name) {
            found.push((score, name));
        }
    }
    // A stable sort: the nearer scope was listed first.
    found.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// The likeness of two names, if they are alike enough.
fn likeness(wrong: &str, name: &str) -> Option<f64> {
    let (a, b) = (plain(wrong), plain(name));
    if a.is_empty() || b.is_empty() {
        return None;
    }
    if a == b {
        return Some(2.0);
    }
    let (shorter, longer) = match (a.chars().count(), b.chars().count()) {
        (x, y) if x <= y => (x, y),
        (x, y) => (y, x),
    };
    let distance = strsim::damerau_levenshtein(&a, &b);
    // Case says what kind of name it is: `field` is a function, `Field` a class.
    let case = match wrong.chars().next().map(char::is_uppercase)
        == name.chars().next().map(char::is_uppercase)
    {
        true => 0.05,
        false => 0.0,
    };
    // One character is most of a short name.
    let allowed = match shorter {
        0..=1 => 0,
        2..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    if distance <= allowed && !(shorter == 2 && longer == 2 && !swapped(&a, &b)) {
        let score = 1.0 - distance as f64 / longer as f64;
        // People get the start of a word right.
        let start = if a.chars().next() == b.chars().next() { 0.1 } else { 0.0 };
        return Some(score + start + case);
    }
    // `qty` for `quantity`, and `price` for `unit_price`.
    let shortened = shorter >= 3 && (within(&a, &b) || within(&b, &a));
    let part = shorter >= 4 && (has_word(name, wrong) || has_word(wrong, name));
    (shortened || part).then(|| shorter as f64 / longer as f64 / 2.0)
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_' && *c != '-' && *c != ' ')
        .flat_map(char::to_lowercase)
        .collect()
}

fn swapped(a: &str, b: &str) -> bool {
    a.chars().rev().eq(b.chars())
}

/// Whether `short` is `long` without some inner characters.
fn within(short: &str, long: &str) -> bool {
    let mut rest = long.chars();
    short.len() < long.len()
        && short.chars().next() == long.chars().next()
        && short.chars().last() == long.chars().last()
        && short.chars().all(|c| rest.any(|other| other == c))
}

fn has_word(name: &str, word: &str) -> bool {
    name.split('_').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_what_was_meant() {
        let known = ["total", "items", "quantity", "unit_price", "i", "print"];
        assert_eq!(nearest("totl", known), ["total"]);
        assert_eq!(nearest("itmes", known), ["items"]);
        assert_eq!(nearest("qty", known), ["quantity"]);
        assert_eq!(nearest("price", known), ["unit_price"]);
        assert_eq!(nearest("prnit", known), ["print"]);
        assert_eq!(nearest("Total", known), ["total"]);
        assert!(nearest("j", known).is_empty());
        assert!(nearest("elephant", known).is_empty());
        assert!(nearest("", known).is_empty());
    }

    #[test]
    fn the_nearer_scope_wins_among_equals() {
        assert_eq!(nearest("rat", ["rats", "rate"]), ["rats", "rate"]);
        // Unless the case decides.
        assert_eq!(nearest("feild", ["Field", "field"]), ["field", "Field"]);
        assert_eq!(nearest("Feild", ["field", "Field"]), ["Field", "field"]);
    }
}
