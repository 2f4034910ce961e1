//! Proposals for repairs, one rule for each kind of mistake.
//!
//! A rule reads the source and the facts about the fault; it runs nothing and decides nothing.
//! [`judge`](super::judge()) decides whether a proposal is acceptable, the next run whether it helped.

mod attributes;
mod brackets;
mod calls;
mod concat;
mod files;
mod imports;
mod indent;
mod keys;
mod names;
mod quotes;
mod syntax;
mod words;

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::lex::{Kind, Lexed, lex};
use super::lines::{Lines, splice};
use crate::diagnosis::Fault;

pub(super) use words::KEYWORDS;

/// At most this many proposals for one fault.
const MOST: usize = 6;

/// A kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rule {
    /// A name that is nearly one in scope.
    MisspeltName,
    /// An attribute or method that is nearly one the object has.
    MisspeltAttribute,
    /// An attribute of a member of the module, or of the module of the member.
    AttributeElsewhere,
    /// A module, or a thing in one of the standard library, used without import.
    MissingImport,
    /// A module of the standard library imported under a wrong name.
    MisspeltModule,
    /// A block indented too much, too little or not at all.
    Indentation,
    /// Tabs among spaces, or the reverse.
    TabsAndSpaces,
    /// A block without its colon.
    MissingColon,
    /// A bracket never closed, closed twice or by the wrong one.
    Bracket,
    /// A string without its end.
    Quote,
    /// `=` where a comparison was meant.
    AssignmentInCondition,
    /// `print` as a statement.
    PrintStatement,
    /// Two elements without a comma between them.
    MissingComma,
    /// An argument given under a wrong name.
    MisspeltArgument,
    /// An argument left out whose value is at hand under that name.
    MissingArgument,
    /// A method without `self`.
    MissingSelf,
    /// A key that is nearly one of the mapping.
    MisspeltKey,
    /// A file that is nearly one in the same directory.
    MisspeltFile,
    /// A number joined to a string.
    NumberInText,
    /// A word that is nearly one of the language.
    MisspeltKeyword,
    /// An operator of another language.
    ForeignOperator,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::MisspeltName => "misspelt name",
            Rule::MisspeltAttribute => "misspelt attribute",
            Rule::AttributeElsewhere => "attribute elsewhere",
            Rule::MissingImport => "missing import",
            Rule::MisspeltModule => "misspelt module",
            Rule::Indentation => "indentation",
            Rule::TabsAndSpaces => "tabs and spaces",
            Rule::MissingColon => "missing colon",
            Rule::Bracket => "bracket",
            Rule::Quote => "quote",
            Rule::AssignmentInCondition => "assignment in a condition",
            Rule::PrintStatement => "print statement",
            Rule::MissingComma => "missing comma",
            Rule::MisspeltArgument => "misspelt argument",
            Rule::MissingArgument => "missing argument",
            Rule::MissingSelf => "missing self",
            Rule::MisspeltKey => "misspelt key",
            Rule::MisspeltFile => "misspelt file",
            Rule::NumberInText => "number joined to text",
            Rule::MisspeltKeyword => "misspelt keyword",
            Rule::ForeignOperator => "operator of another language",
        })
    }
}

/// One possible repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The rule it comes from.
    pub rule: Rule,
    /// The first line it changes, counted from 1.
    pub line: usize,
    /// What it does and why, in one line.
    pub explanation: String,
    /// The whole source with the repair.
    pub fixed: String,
    /// The lines it changes.
    pub edit: LineEdit,
}

/// The lines a repair changes, without their ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineEdit {
    /// The first of them, counted from 1.
    pub line: usize,
    /// As they were.
    pub old: Vec<String>,
    /// As they become.
    pub new: Vec<String>,
}

impl LineEdit {
    /// What differs between two sources: the lines between the common ones at
    /// the start and at the end.
    pub fn between(old: &str, new: &str) -> LineEdit {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        let same = |(a, b): &(&&str, &&str)| a == b;
        let head = old.iter().zip(&new).take_while(same).count();
        let (old, new) = (&old[head..], &new[head..]);
        let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
        let plain = |lines: &[&str]| {
            lines.iter().map(|line| line.trim_end_matches(['\r', '\n']).to_owned()).collect()
        };
        LineEdit {
            line: head + 1,
            old: plain(&old[..old.len() - tail]),
            new: plain(&new[..new.len() - tail]),
        }
    }
}

/// The repairs the rules know for a fault, the most likely first. None is
/// offered twice, and none changes nothing.
pub fn propose(source: &str, fault: &Fault) -> Vec<Proposal> {
    let scene = Scene::of(source, fault);
    let mut found = Found { source, proposals: Vec::new() };
    match fault.kind.as_str() {
        "SyntaxError" | "IndentationError" | "TabError" => syntax::propose(&scene, &mut found),
        "NameError" => names::propose(&scene, &mut found),
        "AttributeError" => attributes::propose(&scene, &mut found),
        "ImportError" => attributes::propose_imported(&scene, &mut found),
        "ModuleNotFoundError" => imports::propose(&scene, &mut found),
        "KeyError" => keys::propose(&scene, &mut found),
        "FileNotFoundError" => files::propose(&scene, &mut found),
        "TypeError" => {
            calls::propose(&scene, &mut found);
            concat::propose(&scene, &mut found);
        }
        _ => {}
    }
    found.proposals.truncate(MOST);
    found.proposals
}

/// What a rule looks at.
struct Scene<'a> {
    source: &'a str,
    fault: &'a Fault,
    lexed: Lexed<'a>,
    lines: Lines<'a>,
    /// The tokens of the failing statement.
    statement: Vec<usize>,
}

impl<'a> Scene<'a> {
    fn of(source: &'a str, fault: &'a Fault) -> Self {
        let lexed = lex(source);
        let lines = Lines::of(source);
        let line = fault.line();
        let statement = match line {
            0 => Vec::new(),
            line => lexed.statement(lines.span(line)),
        };
        Scene { source, fault, lexed, lines, statement }
    }

    fn line(&self) -> usize {
        self.fault.line()
    }

    fn text(&self, index: usize) -> &'a str {
        self.lexed.tokens.get(index).map_or("", |token| self.lexed.text(token))
    }

    fn span(&self, index: usize) -> Range<usize> {
        self.lexed.tokens[index].span.clone()
    }

    /// The tokens of the failing statement which are this name.
    fn named<'b>(&'b self, name: &'b str) -> impl Iterator<Item = usize> + 'b {
        self.statement.iter().copied().filter(move |index| {
            self.lexed.tokens[*index].kind == Kind::Name && self.text(*index) == name
        })
    }

    /// Whether a name stands before the `=` of an argument.
    fn is_argument(&self, index: usize) -> bool {
        let token = &self.lexed.tokens[index];
        (token.depth > 0 || token.nested) && self.lexed.is(index + 1, "=")
    }

    fn is_attribute(&self, index: usize) -> bool {
        index > 0 && self.lexed.is(index - 1, ".")
    }
}

/// The proposals so far.
struct Found<'a> {
    source: &'a str,
    proposals: Vec<Proposal>,
}

impl Found<'_> {
    fn add(&mut self, rule: Rule, explanation: String, edits: Vec<(Range<usize>, String)>) {
        if edits.is_empty() {
            return;
        }
        let fixed = splice(self.source, edits);
        if fixed == self.source || self.proposals.iter().any(|known| known.fixed == fixed) {
            return;
        }
        let edit = LineEdit::between(self.source, &fixed);
        self.proposals.push(Proposal { rule, line: edit.line, explanation, fixed, edit });
    }
}

#[cfg(test)]
mod tests;
