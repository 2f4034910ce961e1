//! The glossary as rules: a Markdown table whose column `not` lists, between commas, what is not to
//! be written. Plain words and phrases are found in prose and identifiers, words in backticks only
//! in identifiers: `lime` as a part of one, `Lime` as all of one.

use std::collections::BTreeSet;

use super::text::{Kind, Piece, Word, pieces, words_of};

/// The heading above the table.
pub(super) const TITLE: &str = "## Glossary";

pub(super) struct Glossary {
    rules: Vec<Rule>,
}

struct Rule {
    /// What to write instead.
    say: String,
    /// The words of the phrase, in lower case.
    words: Vec<String>,
    /// Only in identifiers.
    in_names: bool,
    /// The identifier as a whole.
    name: Option<String>,
}

impl Rule {
    fn of(item: &str, say: &str) -> Self {
        let name = item.strip_prefix('`').and_then(|item| item.strip_suffix('`'));
        let text = name.unwrap_or(item);
        let whole = name.filter(|name| name.starts_with(char::is_uppercase)).map(str::to_owned);
        let words = words_of(text, 0).into_iter().map(|word| word.text).collect();
        Self { say: say.to_owned(), words, in_names: name.is_some(), name: whole }
    }

    fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.words.join(" "))
    }

    /// Where a piece breaks the rule: the first and the last line of each phrase.
    fn lines<'a>(&'a self, piece: &'a Piece) -> impl Iterator<Item = (usize, usize)> + 'a {
        let name = match &piece.name {
            Some(name) => self.name.as_ref().is_none_or(|whole| whole == name),
            None => !self.in_names,
        };
        let phrases = piece.words.windows(self.words.len()).filter(move |_| name);
        let same = |words: &[Word]| words.iter().map(|word| &word.text).eq(&self.words);
        phrases
            .filter(move |words| same(words))
            .map(|words| (words[0].line, words[words.len() - 1].line))
    }
}

impl Glossary {
    /// Reads the table.
    pub(super) fn read(markdown: &str) -> Result<Self, String> {
        let lines = markdown.lines().skip_while(|line| *line != TITLE).skip(1);
        let section = lines.take_while(|line| !line.starts_with("## "));
        let mut rows = section.filter(|line| line.starts_with('|')).map(cells);
        let header = rows.next().ok_or(format!("no table under `{TITLE}`"))?;
        let column = |name: &str| {
            let at = header.iter().position(|cell| cell == name);
            at.ok_or(format!("the table under `{TITLE}` has no column `{name}`"))
        };
        let (say, not) = (column("say")?, column("not")?);
        let rules: Vec<Rule> = rows
            .filter(|row| row.len() == header.len())
            .flat_map(|row| {
                let items: Vec<String> =
                    row[not].split(',').map(|it| it.trim().to_owned()).collect();
                let items =
                    items.into_iter().filter(|item| !item.is_empty() && !item.starts_with("---"));
                items.map(|item| Rule::of(&item, &row[say])).collect::<Vec<_>>()
            })
            .collect();
        match rules.is_empty() {
            true => Err(format!("the table under `{TITLE}` forbids nothing")),
            false => Ok(Self { rules }),
        }
    }

    /// What is wrong with a file, by line.
    pub(super) fn faults(&self, path: &str, source: &str) -> Vec<String> {
        let Some(kind) = Kind::of(path) else { return Vec::new() };
        let mut all = pieces(kind, &without_glossary(kind, source));
        for part in path.split('/') {
            let name = part.split('.').next().unwrap_or(part).to_owned();
            all.push(Piece { words: words_of(&name, 0), name: Some(name) });
        }
        let mut found = BTreeSet::new();
        for (at, rule) in self.rules.iter().enumerate() {
            for piece in &all {
                found.extend(rule.lines(piece).map(|(first, last)| (first, last, at)));
            }
        }
        let mut faults = Vec::new();
        for &(line, _, at) in &found {
            let rule = &self.rules[at];
            // A longer phrase at the same place says more than its part.
            let is_part = found.iter().any(|&(first, last, by)| {
                let longer = &self.rules[by].words;
                (first..=last).contains(&line)
                    && longer.len() > rule.words.len()
                    && longer.windows(rule.words.len()).any(|words| words == rule.words)
            });
            if !is_part {
                let place = if line == 0 { path.to_owned() } else { format!("{path}:{line}") };
                faults.push(format!("{place}: `{}` (say: {})", rule.shown(), rule.say));
            }
        }
        faults
    }
}

fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The text with the section of the glossary blanked, so that lines keep their numbers.
fn without_glossary(kind: Kind, source: &str) -> String {
    if kind != Kind::Markdown {
        return source.to_owned();
    }
    let mut inside = false;
    let mut lines = Vec::new();
    for line in source.lines() {
        if line.starts_with("## ") {
            inside = line == TITLE;
        }
        lines.push(if inside { "" } else { line });
    }
    lines.join("\n")
}
