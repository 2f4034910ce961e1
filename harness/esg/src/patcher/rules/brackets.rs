//! Brackets without their partners.

use std::ops::Range;

use super::super::lex::{Kind, Loose, closer};
use super::super::lines::line_end;
use super::{Found, Rule, Scene};

/// Functions whose result is compared more often than their argument.
const MEASURES: [&str; 7] = ["abs", "float", "int", "len", "max", "min", "sum"];
const COMPARISONS: [&str; 6] = ["==", "!=", "<", ">", "<=", ">="];

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let Some(first) = scene.lexed.loose.first() else {
        return;
    };
    match first {
        Loose::Close { close } => {
            let why = format!("`{}` closes nothing", scene.text(*close));
            found.add(Rule::Bracket, why, vec![(scene.span(*close), String::new())]);
        }
        Loose::Crossed { open, close, closes_outer } => {
            crossed(scene, found, *open, *close, *closes_outer);
        }
        Loose::Open { held_until, .. } => open(scene, found, *held_until),
    }
}

fn crossed(scene: &Scene<'_>, found: &mut Found<'_>, open: usize, close: usize, outer: bool) {
    let (opened, closed) = (scene.text(open), scene.text(close));
    let right = closer(opened);
    let why = format!("`{closed}` meets `{opened}`, which needs `{right}`");
    // `row{name]`: nothing but an index or a call follows a name directly.
    let wrong_opener = opened == "{"
        && open.checked_sub(1).is_some_and(|before| {
            let before = &scene.lexed.tokens[before];
            before.kind == Kind::Name && before.span.end == scene.span(open).start
        });
    if wrong_opener {
        let left = if closed == ")" { "(" } else { "[" };
        let why = format!("`{closed}` closes a `{left}`, but `{opened}` is written");
        found.add(Rule::Bracket, why, vec![(scene.span(open), left.to_owned())]);
    }
    let before = scene.span(close.saturating_sub(1)).end;
    let insert = vec![(before..before, right.to_owned())];
    let replace = vec![(scene.span(close), right.to_owned())];
    // If the bracket closes another one further out, one is missing; otherwise
    // it is the wrong one.
    let (best, second) = if outer { (insert, replace) } else { (replace, insert) };
    found.add(Rule::Bracket, why.clone(), best);
    found.add(Rule::Bracket, why, second);
}

/// Closes the brackets which end at the same place.
fn open(scene: &Scene<'_>, found: &mut Found<'_>, held_until: usize) {
    let lost: Vec<usize> = scene
        .lexed
        .loose
        .iter()
        .filter_map(|loose| match loose {
            Loose::Open { open, held_until: until } if *until == held_until => Some(*open),
            _ => None,
        })
        .collect();
    let Some(outermost) = lost.last().copied() else {
        return;
    };
    let missing: String = lost.iter().map(|open| closer(scene.text(*open))).collect();
    let opened: Vec<&str> = lost.iter().rev().map(|open| scene.text(*open)).collect();
    let line = scene.lines.at(scene.span(outermost).start);
    let why = format!("`{}` opened on line {line} is never closed", opened.concat());
    let mut add = |edit: (Range<usize>, String)| found.add(Rule::Bracket, why.clone(), vec![edit]);

    let last_line = scene.lines.at(held_until.saturating_sub(1));
    if let [only] = lost[..]
        && let Some(at) = before_comparison(scene, only, held_until)
    {
        add((at..at, missing.clone()));
    }
    if last_line > line && opens_lines(scene, outermost) && lost.len() == 1 {
        // One element on each line: the bracket gets a line of its own.
        let indent = scene.lines.indent(line);
        let end = line_end(scene.source);
        let at = scene.lines.span(last_line).end;
        add((at..at, format!("{end}{indent}{missing}")));
    }
    let at = end_of_expression(scene, outermost, held_until);
    add((at..at, missing.clone()));
    add((held_until..held_until, missing));
}

/// Whether the bracket is the last thing on its line.
fn opens_lines(scene: &Scene<'_>, open: usize) -> bool {
    let line = scene.lines.at(scene.span(open).start);
    scene
        .lexed
        .tokens
        .get(open + 1)
        .is_none_or(|next| next.kind == Kind::Comment || scene.lines.at(next.span.start) > line)
}

/// `if len(items > 3:` closes before the comparison.
fn before_comparison(scene: &Scene<'_>, open: usize, until: usize) -> Option<usize> {
    let function = open.checked_sub(1).map(|index| scene.text(index))?;
    if !MEASURES.contains(&function) {
        return None;
    }
    let depth = scene.lexed.tokens[open].depth + 1;
    let tokens = scene.lexed.tokens.iter().enumerate().skip(open + 1);
    tokens
        .take_while(|(_, token)| token.span.end <= until)
        .find(|(index, token)| token.depth == depth && COMPARISONS.contains(&scene.text(*index)))
        .map(|(index, _)| scene.span(index - 1).end)
}

/// Where the expression in an open bracket ends: before the colon of a block,
/// or else with the line.
fn end_of_expression(scene: &Scene<'_>, open: usize, until: usize) -> usize {
    let tokens = &scene.lexed.tokens;
    let start = scene.lexed.statements().into_iter().find(|s| s.contains(&open));
    let word = start.map_or("", |statement| scene.text(statement.start));
    let block = ["if", "elif", "for", "while", "def", "class", "with", "except", "async"];
    let last = tokens
        .iter()
        .rposition(|token| token.span.end == until && token.kind == Kind::Op && !token.nested);
    match last {
        Some(last) if block.contains(&word) && scene.lexed.is(last, ":") && last > open => {
            let before = &tokens[last - 1];
            before.span.end
        }
        _ => until,
    }
}
