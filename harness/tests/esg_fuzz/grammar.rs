//! Phrases with places for names become steps.
//!
//! In a phrase `$x` is a name of kind `x` that is bound already, `$X` one to bind; a digit after it
//! means the same name at each place with that digit. `$n` is a small number, `$q` a file, `$m` a
//! module in scratch. Names are few, so that steps meet at them.
use std::collections::{BTreeMap, BTreeSet};

use crate::dice::Dice;

/// The names of each kind: numbers, lists, lists of lists, dicts, dicts of lists, strings, sets,
/// tuples, functions, counters, generators, bound methods, views, classes, instances, members.
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
];

const FILES: &[&str] = &["one.txt", "two.txt", "sub/three.txt"];
const MODULES: &[&str] = &["alpha", "beta"];

/// The names that the steps so far bind, as far as their text shows.
#[derive(Clone, Default)]
pub(crate) struct Bound(BTreeSet<(char, String)>);

fn pool(kind: char) -> &'static [&'static str] {
    NAMES.iter().find(|(one, _)| *one == kind).unwrap_or_else(|| panic!("no kind {kind}")).1
}

/// The phrase with names; `None` if it wants a name of a kind that none is bound of. A careless step
/// takes one all the same.
fn fill(phrase: &str, careless: bool, dice: &mut Dice, bound: &mut Bound) -> Option<String> {
    let mut out = String::new();
    let mut same: BTreeMap<(char, char), String> = BTreeMap::new();
    let mut binds = Vec::new();
    let mut letters = phrase.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '$' {
            out.push(letter);
            continue;
        }
        let kind = letters.next()?;
        let digit = letters.next_if(char::is_ascii_digit);
        let key = digit.map(|digit| (kind, digit));
        if let Some(name) = key.and_then(|key| same.get(&key)) {
            out.push_str(name);
            continue;
        }
        let name = match kind {
            'n' => dice.below(7).to_string(),
            'q' => (*dice.pick(FILES)).to_owned(),
            'm' => (*dice.pick(MODULES)).to_owned(),
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
    bound.0.extend(binds);
    Some(out)
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
