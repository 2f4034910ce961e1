//! Replaces a function or a class.
use std::ops::Range;

use ruff_python_ast::comparable::ComparableStmt;
use ruff_python_ast::{ModModule, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;

use crate::text::near;

use super::text::{Splice, Text};
use crate::program::refusal::Refusal;
use crate::scan::Scan;

/// A definition in a step.
struct Symbol {
    path: String,
    /// From the first decorator.
    bytes: Range<usize>,
}

impl Symbol {
    /// The definition in a source of which its own is the part from `start`.
    fn moved(mut self, start: usize) -> Self {
        self.bytes = self.bytes.start + start..self.bytes.end + start;
        self
    }
}

/// The lines of the function or class `path`, with its new source.
pub(super) fn splice(
    step: &str,
    source: &str,
    text: &Text<'_>,
    scan: Option<&Scan>,
    path: &str,
    new: &str,
    edit: usize,
) -> Result<Splice, Refusal> {
    let known = scan.and_then(|scan| near_by(source, scan, path));
    let Some(symbols) = known.or_else(|| all(source)) else {
        let why =
            "the step does not parse, so its definitions are not known (use a search/replace edit)";
        return Err(Refusal::Malformed { step: step.to_owned(), edit, why: why.into() });
    };
    let found: Vec<_> = symbols.iter().filter(|symbol| symbol.path == path).collect();
    let line = |byte: usize| source[..byte].bytes().filter(|byte| *byte == b'\n').count();
    let bytes = match found[..] {
        [symbol] => symbol.bytes.clone(),
        [] => {
            let near = near(path, symbols.iter().map(|symbol| &*symbol.path)).map(str::to_owned);
            let (step, path) = (step.to_owned(), path.to_owned());
            return Err(Refusal::UnknownSymbol { step, path, near });
        }
        _ => {
            let at = found.iter().map(|symbol| line(symbol.bytes.start) + 1).collect();
            return Err(Refusal::Ambiguous { step: step.to_owned(), edit, at });
        }
    };
    let at = line(bytes.start)..line(bytes.end) + 1;
    let first = text.lines[at.start];
    let indent = &first[..first.len() - first.trim_start().len()];
    let refuse = |why: String| {
        Err(Refusal::NotTheSymbol { step: step.to_owned(), path: path.to_owned(), why })
    };
    let plain = dedented(new);
    let lines: Vec<String> = match definition(&plain, path) {
        Ok(lines) => lines
            .iter()
            .map(|line| match line.trim().is_empty() {
                true => String::new(),
                false => [indent, line].concat(),
            })
            .collect(),
        Err(why) => return refuse(why),
    };
    // Indentation is a part of strings over several lines.
    let block = format!("if True:\n{}\n", lines.join("\n"));
    let changed = !indent.is_empty()
        && match (parse(&plain), parse(&block)) {
            (Some(alone), Some(inside)) => match (&alone.body[..], &inside.body[..]) {
                ([alone], [Stmt::If(inside)]) => {
                    inside.body.first().map(ComparableStmt::from) != Some(alone.into())
                }
                _ => true,
            },
            _ => true,
        };
    if changed {
        return refuse(
            "has a string over several lines, which the indentation would change".into(),
        );
    }
    let returns = text.returns(at.start);
    let line = |line: String| match returns {
        true => line + "\r",
        false => line,
    };
    Ok(Splice { edit, at, lines: lines.into_iter().map(line).collect(), ends: None })
}

/// All functions and classes of a source. `None` if it does not parse.
fn all(source: &str) -> Option<Vec<Symbol>> {
    parse(source).map(|module| symbols(&module.body))
}

/// The functions and classes that `path` may mean, from the parts of a scanned source that may contain
/// them. `None` if it does not mean any, or the parts do not parse by themselves.
fn near_by(source: &str, scan: &Scan, path: &str) -> Option<Vec<Symbol>> {
    if !scan.errors.is_empty() {
        return None;
    }
    let head = path.split('.').next().unwrap_or(path);
    let mut found: Vec<Symbol> = Vec::new();
    let read = |part: Range<usize>| -> Option<Vec<Symbol>> {
        let symbols = all(source.get(part.clone())?)?;
        Some(symbols.into_iter().map(|symbol| symbol.moved(part.start)).collect())
    };
    let mut end = 0;
    for definition in &scan.definitions {
        // Between definitions are others that a statement encloses.
        let between = end..definition.range.start;
        if defines(source.get(between.clone())?) {
            found.extend(read(between)?);
        }
        if definition.name == path {
            let (path, bytes) = (path.to_owned(), definition.range.clone());
            found.push(Symbol { path, bytes });
        } else if definition.name == head {
            found.extend(read(definition.range.clone())?);
        }
        end = definition.range.end;
    }
    if defines(source.get(end..)?) {
        found.extend(read(end..source.len())?);
    }
    found.iter().any(|symbol| symbol.path == path).then_some(found)
}

/// Whether statements may contain a definition.
fn defines(statements: &str) -> bool {
    statements.contains("def") || statements.contains("class")
}

fn parse(source: &str) -> Option<ModModule> {
    let parsed = parse_unchecked(source, ParseOptions::from(Mode::Module));
    match parsed.has_invalid_syntax() {
        true => None,
        false => parsed.try_into_module().map(|module| module.into_syntax()),
    }
}

/// The lines of the new definition, without indentation.
fn definition<'a>(new: &'a str, path: &str) -> Result<Vec<&'a str>, String> {
    let Some(module) = parse(new) else { return Err("does not parse".into()) };
    let wanted = path.rsplit('.').next().unwrap_or(path);
    match &module.body[..] {
        [Stmt::FunctionDef(node)] if node.name.as_str() == wanted => {}
        [Stmt::ClassDef(node)] if node.name.as_str() == wanted => {}
        [Stmt::FunctionDef(node)] => return Err(format!("defines `{}`", node.name)),
        [Stmt::ClassDef(node)] => return Err(format!("defines `{}`", node.name)),
        _ => return Err("is not one definition".into()),
    }
    Ok(new.trim_matches(['\n', '\r']).lines().collect())
}

/// A text without the indentation that all its lines have.
fn dedented(text: &str) -> String {
    let code = text.lines().filter(|line| !line.trim().is_empty());
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common = code.map(indent).min().unwrap_or(0);
    let lines: Vec<_> = text.lines().map(|line| line.get(common..).unwrap_or_default()).collect();
    lines.join("\n")
}

/// All functions and classes, also in blocks and in each other, in the order of the source.
fn symbols(body: &[Stmt]) -> Vec<Symbol> {
    let mut found = Vec::new();
    let mut open: Vec<(&Stmt, String)> =
        body.iter().rev().map(|statement| (statement, String::new())).collect();
    while let Some((statement, around)) = open.pop() {
        let definition = match statement {
            Stmt::FunctionDef(node) => Some((&node.name, &node.decorator_list)),
            Stmt::ClassDef(node) => Some((&node.name, &node.decorator_list)),
            _ => None,
        };
        let around = match definition {
            None => around,
            Some((name, decorators)) => {
                let range = statement.range();
                let start = decorators.first().map_or(range.start(), Ranged::start);
                let bytes = start.min(range.start()).to_usize()..range.end().to_usize();
                found.push(Symbol { path: format!("{around}{name}"), bytes });
                format!("{around}{name}.")
            }
        };
        let bodies: Vec<&[Stmt]> = match statement {
            Stmt::FunctionDef(node) => vec![&node.body],
            Stmt::ClassDef(node) => vec![&node.body],
            Stmt::If(node) => {
                let clauses = node.elif_else_clauses.iter().map(|clause| &clause.body[..]);
                std::iter::once(&node.body[..]).chain(clauses).collect()
            }
            Stmt::With(node) => vec![&node.body],
            Stmt::Try(node) => vec![&node.body, &node.orelse, &node.finalbody],
            _ => Vec::new(),
        };
        let inner = bodies.into_iter().rev().flat_map(|body| body.iter().rev());
        open.extend(inner.map(|statement| (statement, around.clone())));
    }
    found
}
