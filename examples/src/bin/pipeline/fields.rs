//! Reads the keys of a table one by one, so that one problem hides no other.

use std::collections::HashSet;

use super::tree::{Table, Tree, shown};

/// The most problems that are kept as text; the others are only counted.
const MAX_KEPT: usize = 10_000;

/// The problems of a description, collected while it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct ProblemList {
    pub(super) lines: Vec<String>,
    /// How many more there are.
    pub(super) more: usize,
}

impl ProblemList {
    pub(super) fn add(&mut self, problem: impl FnOnce() -> String) {
        match self.lines.len() < MAX_KEPT {
            true => self.lines.push(problem()),
            false => self.more += 1,
        }
    }

    /// The near match of a name, unless there are so many problems that its own is not kept.
    pub(super) fn near<'k>(
        &self,
        given: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> Option<&'k str> {
        if self.lines.len() < MAX_KEPT { near(given, known) } else { None }
    }

    pub(super) fn count(&self) -> usize {
        self.lines.len() + self.more
    }
}

/// The keys of one table, such as a step.
pub(super) struct Fields<'a> {
    what: &'a str,
    table: Table,
    known: &'static [&'static str],
    wrong: Vec<&'static str>,
    problems: &'a mut ProblemList,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
        what: &'a str,
        table: Table,
        known: &'static [&'static str],
        problems: &'a mut ProblemList,
    ) -> Self {
        Self { what, table, known, wrong: Vec::new(), problems }
    }

    /// The value of a key, if it is given. Repeated keys are reported elsewhere.
    pub(super) fn take(&mut self, key: &str) -> Option<Tree> {
        let place = self.table.iter().position(|(name, _)| name == key)?;
        let (_, value) = std::mem::replace(&mut self.table[place], (key.to_owned(), Tree::Null));
        Some(value).filter(|value| *value != Tree::Null)
    }

    /// Reports a value of the wrong type.
    fn refuse(&mut self, key: &'static str, must: &str, value: &Tree) {
        let what = self.what;
        self.problems.add(|| format!("{what}: `{key}` must be {must}, but it is {}", value.is()));
        self.wrong.push(key);
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        match self.take(key)? {
            Tree::Text(text) => Some(text),
            other => {
                self.refuse(key, "text", &other);
                None
            }
        }
    }

    pub(super) fn flag(&mut self, key: &'static str) -> bool {
        match self.take(key) {
            None => false,
            Some(Tree::Bool(flag)) => flag,
            Some(other) => {
                self.refuse(key, "true or false", &other);
                false
            }
        }
    }

    pub(super) fn number<N>(&mut self, key: &'static str, most: N) -> Option<N>
    where
        N: TryFrom<i128> + std::fmt::Display,
    {
        let value = self.take(key)?;
        let number = match &value {
            Tree::Whole(number) => N::try_from(*number).ok(),
            _ => None,
        };
        if number.is_none() {
            self.refuse(key, &format!("a whole number from 0 to {most}"), &value);
        }
        number
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Vec<String> {
        let mut texts = Vec::new();
        match self.take(key) {
            None => {}
            Some(Tree::List(items)) => {
                if let Some(problem) = wrong_items(&items, "text", |item| text_of(item).is_some()) {
                    let what = self.what;
                    self.problems.add(|| format!("{what}: `{key}` {problem}"));
                    self.wrong.push(key);
                }
                texts.extend(items.iter().filter_map(text_of).map(str::to_owned));
            }
            Some(other) => self.refuse(key, "a list of text", &other),
        }
        texts
    }

    /// A table of texts. A value of another type is reported, and its key kept.
    pub(super) fn pairs(&mut self, key: &'static str) -> Vec<(String, Option<String>)> {
        let mut pairs = Vec::new();
        match self.take(key) {
            None => {}
            Some(Tree::Table(table)) => {
                let mut seen = HashSet::new();
                for (name, value) in table {
                    if text_of(&value).is_none() {
                        let what = self.what;
                        self.problems.add(|| {
                            let path = shown(&format!("{key}.{name}"), 60);
                            format!("{what}: `{path}` must be text, but it is {}", value.is())
                        });
                        self.lose(key);
                    }
                    // Of repeated keys the first counts; the repetition is reported elsewhere.
                    if seen.insert(name.clone()) {
                        pairs.push((name, text_of(&value).map(str::to_owned)));
                    }
                }
            }
            Some(other) => self.refuse(key, "a table of text", &other),
        }
        pairs
    }

    pub(super) fn table(&mut self, key: &'static str) -> Option<Table> {
        match self.take(key)? {
            Tree::Table(table) => Some(table),
            other => {
                self.refuse(key, "a table", &other);
                None
            }
        }
    }

    pub(super) fn tables(&mut self, key: &'static str) -> Vec<Tree> {
        match self.take(key) {
            None => Vec::new(),
            Some(Tree::List(items)) => items,
            Some(other) => {
                self.refuse(key, "a list of tables", &other);
                Vec::new()
            }
        }
    }

    fn lose(&mut self, key: &'static str) {
        if !self.wrong.contains(&key) {
            self.wrong.push(key);
        }
    }

    /// Reports the unknown keys. Returns the keys that are given but cannot be used: those of a wrong
    /// type, and the near matches of unknown ones.
    pub(super) fn close(mut self) -> Vec<&'static str> {
        for (key, _) in std::mem::take(&mut self.table) {
            if self.known.contains(&&*key) {
                continue;
            }
            let near = self.problems.near(&key, self.known.iter().copied());
            self.problems.add(|| unknown(self.what, &key, near, self.known.iter().copied()));
            if let Some(near) = near {
                self.lose(near);
            }
        }
        self.wrong
    }
}

fn text_of(value: &Tree) -> Option<&str> {
    match value {
        Tree::Text(text) => Some(text),
        _ => None,
    }
}

/// The problem of a list with items of a wrong type, of which there may be very many.
pub(super) fn wrong_items(
    items: &[Tree],
    must: &str,
    fits: impl Fn(&Tree) -> bool,
) -> Option<String> {
    let mut wrong = items.iter().enumerate().filter(|(_, item)| !fits(item));
    let (place, item) = wrong.next()?;
    let more = match wrong.count() {
        0 => String::new(),
        more => format!(" (and {more} more of its items)"),
    };
    Some(format!("must be a list of {must}, but its item {} is {}{more}", place + 1, item.is()))
}

/// The problem of an unknown key.
pub(super) fn unknown<'k>(
    what: &str,
    key: &str,
    near: Option<&str>,
    known: impl Iterator<Item = &'k str>,
) -> String {
    let key = shown(key, 60);
    match near {
        Some(near) => format!("{what}: key `{key}` is unknown (did you mean `{near}`?)"),
        None => {
            let known: Vec<String> = known.map(|key| format!("`{key}`")).collect();
            match known.is_empty() {
                true => format!("{what}: key `{key}` is unknown (there are none)"),
                false => format!("{what}: key `{key}` is unknown (there are {})", known.join(", ")),
            }
        }
    }
}

/// The known key that was most likely meant.
fn near<'k>(given: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    // The time for the distance grows with the product of both lengths.
    if given.len() > 60 {
        return None;
    }
    let given = given.to_lowercase();
    known
        .map(|key| (strsim::damerau_levenshtein(&given, key), key))
        .filter(|(distance, key)| *distance <= key.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, key)| key)
}
