//! A file as a tree of values, from TOML or JSON, before anything is checked.

use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// The most characters of the file in a message.
const MAX_EXCERPT: usize = 100;

/// The key under which the TOML parser returns a date.
const DATE: &str = "$__toml_private_datetime";

/// A value of a file. Tables keep repeated keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Whole(i128),
    Real(f64),
    Text(String),
    Date(String),
    List(Vec<Tree>),
    Table(Table),
}

pub(super) type Table = Vec<(String, Tree)>;

impl Tree {
    /// Reads TOML, or JSON.
    pub(super) fn parse(text: &str, json: bool) -> Result<Self, String> {
        if json {
            return serde_json::from_str(text).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                let words = error.to_string();
                let place = format!(" at line {line} column {column}");
                let words = words.strip_suffix(&place).unwrap_or(&words);
                let before: usize =
                    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
                located(words, text, before + column.saturating_sub(1))
            });
        }
        toml::from_str(text).map_err(|error| match error.span() {
            Some(span) => located(error.message(), text, span.start),
            None => shown(error.message(), 2 * MAX_EXCERPT),
        })
    }

    /// The value in words, for messages about a wrong type.
    pub(super) fn is(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Whole(value) => format!("the number {value}"),
            Self::Real(value) => format!("the number {value}"),
            Self::Text(text) => format!("the text `{}`", shown(text, 40)),
            Self::Date(date) => format!("the date {}", shown(date, 40)),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }

    /// The value as JSON; numbers that JSON cannot represent are null.
    pub(super) fn into_json(self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => value.into(),
            Self::Whole(value) => {
                let signed = i64::try_from(value).map(Value::from);
                signed.or_else(|_| u64::try_from(value).map(Value::from)).unwrap_or_default()
            }
            Self::Real(value) => value.into(),
            Self::Text(text) | Self::Date(text) => text.into(),
            Self::List(items) => items.into_iter().map(Self::into_json).collect(),
            Self::Table(table) => {
                table.into_iter().map(|(key, value)| (key, value.into_json())).collect()
            }
        }
    }

    /// Calls `report` for each repeated key in the tables of this value.
    pub(super) fn repeated(&self, path: &str, report: &mut impl FnMut(String)) {
        match self {
            Self::List(items) => items.iter().for_each(|item| item.repeated(path, report)),
            Self::Table(table) => {
                let mut seen = std::collections::HashMap::new();
                for (key, value) in table {
                    let path = match path {
                        "" => shown(key, 60),
                        path => shown(&format!("{path}.{key}"), 120),
                    };
                    let times = seen.entry(key).or_insert(0_usize);
                    *times += 1;
                    if *times == 2 {
                        report(path.clone());
                    }
                    value.repeated(&path, report);
                }
            }
            _ => {}
        }
    }
}

/// Whether a description of this name is JSON.
pub(super) fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Text for a message: at most `max` characters, control characters escaped.
pub(super) fn shown(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text.chars() {
        let plain = matches!(c, '"' | '\'' | '\\');
        let escaped: String = if plain { c.to_string() } else { c.escape_debug().collect() };
        length += escaped.chars().count();
        if length > max {
            out.push('…');
            break;
        }
        out.push_str(&escaped);
    }
    out
}

/// A message with its line, its column and an excerpt.
fn located(words: &str, text: &str, offset: usize) -> String {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let (before, after) = text.split_at(offset);
    let line = before.matches('\n').count() + 1;
    let before = before.rsplit('\n').next().unwrap_or_default();
    let column = before.chars().count() + 1;
    let from = before.char_indices().rev().nth(MAX_EXCERPT / 2 - 1).map_or(0, |(at, _)| at);
    let after = after.split('\n').next().unwrap_or_default();
    let near = after.char_indices().nth(MAX_EXCERPT).map_or(after, |(at, _)| &after[..at]);
    let near = format!("{}{near}", &before[from..]);
    let words = shown(words, 2 * MAX_EXCERPT);
    let near = shown(near.trim_end_matches('\r'), MAX_EXCERPT - 1);
    match near.is_empty() {
        true => format!("line {line}, column {column}: {words}"),
        false => format!("line {line}, column {column}: {words}, near `{near}`"),
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Whole(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Whole(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Real(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Tree, E> {
        Ok(Tree::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut table = Table::new();
        while let Some((key, value)) = entries.next_entry::<String, Tree>()? {
            match value {
                Tree::Text(date) if key == DATE => return Ok(Tree::Date(date)),
                value => table.push((key, value)),
            }
        }
        Ok(Tree::Table(table))
    }
}
