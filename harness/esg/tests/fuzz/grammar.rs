//! Turns phrases with placeholders into steps.
//!
//! In a phrase `$x` is a bound name of kind `x`, and `$X` one to bind. The same digit after both
//! means the same name. `$n` is a small number. There are few names, so that steps share them.
use std::collections::{BTreeMap, BTreeSet};

use crate::dice::Dice;

/// The names of each kind: numbers, lists, lists of lists, dicts, dicts of lists, strings, sets,
/// tuples, functions, counters, generators, bound methods, views, classes, instances, members,
/// files, modules, arrays, frames, axes.
const NAMES: &[(char, &[&str])] = &[
    ('i', &["a", "b", "c"]),
    ('l', &["xs", "ys"]),
    ('y', &["rows", "grid"]),
    ('d', &["d", "e"]),
    ('h', &["groups"]),
    ('s', &["s", "t"]),
    ('u', &["us", "vs"]),
    ('v', &["pair"]),
    ('f', &["f", "g"]),
    ('c', &["up", "down"]),
    ('g', &["gen", "it"]),
    ('b', &["push"]),
    ('w', &["view"]),
    ('k', &["K", "L"]),
    ('o', &["o", "p"]),
    ('j', &["color"]),
    ('q', &["one.txt", "two.txt"]),
    ('m', &["alpha", "beta"]),
    ('a', &["arr", "brr"]),
    ('r', &["df", "dg"]),
    ('x', &["ax"]),
];

/// Names that phrases use literally.
const WORDS: &[&str] = &[
    "cached",
    "Base",
    "saved",
    "make",
    "handle",
    "lazy",
    "holder",
    "show",
    "Square",
    "Mine",
    "Meta",
    "Color",
    "draw",
    "own",
    "people",
    "buffer",
    "lock",
    "stamp",
    "now",
    "key",
    "missing",
    "Point",
    "Leaf",
    "Box",
    "Has",
    "during",
    "link",
    "extra",
    "calls",
    "peer",
    "three",
    "saved_json",
    "table_csv",
    "plot_png",
    "draws",
    "own_rng",
    "model",
];

/// Text that only failing steps contain.
const FAILS: &[&str] = &["raise ", "1 / 0", "assert ", "[][1]", "b = ("];

/// The names that the steps so far bind, judged by their text.
#[derive(Clone, Default)]
pub(crate) struct Bound(BTreeSet<(char, String)>);

fn pool(kind: char) -> &'static [&'static str] {
    NAMES.iter().find(|(one, _)| *one == kind).unwrap_or_else(|| panic!("no kind {kind}")).1
}

/// The phrase with names; `None` if it needs a kind without a bound name. A careless step uses an
/// unbound one instead.
fn fill(phrase: &str, careless: bool, dice: &mut Dice, bound: &mut Bound) -> Option<String> {
    let mut binds = Vec::new();
    for word in WORDS.iter().filter(|word| has_word(phrase, word)) {
        let made = [
            format!("{word} = "),
            format!("as {word}"),
            format!("'{word}')"),
            format!("{word}.txt', 'w"),
        ];
        let defined = [format!("class {word}"), format!("def {word}")];
        let here = made.iter().any(|one| phrase.contains(one) && !phrase.contains("open('link"));
        let name = ('!', (*word).to_owned());
        if here || defined.iter().any(|one| phrase.contains(one)) {
            binds.push(name);
        } else if !careless && !bound.0.contains(&name) {
            return None;
        }
    }
    let mut out = String::new();
    let mut same: BTreeMap<(char, char), String> = BTreeMap::new();
    let mut chars = phrase.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '$' {
            out.push(c);
            continue;
        }
        let kind = chars.next()?;
        let digit = chars.next_if(char::is_ascii_digit);
        let key = digit.map(|digit| (kind, digit));
        if let Some(name) = key.and_then(|key| same.get(&key)) {
            out.push_str(name);
            continue;
        }
        let name = match kind {
            'n' => dice.below(7).to_string(),
            _ if kind.is_ascii_uppercase() => {
                let name = (*dice.pick(pool(kind.to_ascii_lowercase()))).to_owned();
                binds.push((kind.to_ascii_lowercase(), name.clone()));
                name
            }
            _ => {
                let there: Vec<_> = bound.0.iter().filter(|(one, _)| *one == kind).collect();
                match there.is_empty() {
                    true if careless => (*dice.pick(pool(kind))).to_owned(),
                    true => return None,
                    false => dice.pick(&there).1.clone(),
                }
            }
        };
        out.push_str(&name);
        if let Some(key) = key {
            same.insert(key, name);
        }
    }
    if FAILS.iter().any(|fails| phrase.contains(fails)) && !phrase.contains("except") {
        return Some(out);
    }
    bound.0.extend(binds);
    bound.0.retain(|(_, name)| out.strip_prefix("del ") != Some(name));
    Some(out)
}

/// Whether the word stands in the text by itself.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !inside(text[..at].chars().last()) && !inside(text[at + word.len()..].chars().next())
    })
}

/// A step: a few phrases of `topics`.
pub(crate) fn step(topics: &[&[&str]], dice: &mut Dice, bound: &mut Bound) -> String {
    let mut lines: Vec<String> = Vec::new();
    let many = 1 + dice.below(3);
    let careless = dice.percent(3);
    for _ in 0..200 {
        let topic = *dice.pick(topics);
        let phrase = *dice.pick(topic);
        if let Some(text) = fill(phrase, careless, dice, bound) {
            lines.push(text);
            if lines.len() == many {
                break;
            }
        }
    }
    if lines.is_empty() { "pass".to_owned() } else { lines.join("\n") }
}
