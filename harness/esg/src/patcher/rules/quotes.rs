//! Strings without their ends.

use super::super::lex::{Kind, closer};
use super::{Found, Rule, Scene};

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let Some(open) = scene.lexed.open_strings.first().copied() else {
        return;
    };
    let span = scene.span(open);
    let written = scene.text(open);
    let prefix = written.find(['"', '\'']).unwrap_or(0);
    let quote = &written[prefix..prefix + 1];
    let line = scene.lines.at(span.start);
    if written[prefix..].starts_with(&quote.repeat(3)) {
        triple(scene, found, open, &quote.repeat(3));
        return;
    }
    let other = if quote == "'" { "\"" } else { "'" };
    let end = span.start + written.trim_end().len();

    if let Some(at) = apostrophe(scene, line) {
        let why = format!("the apostrophe on line {line} ends the string early");
        found.add(Rule::Quote, why, vec![(at..at, "\\".to_owned())]);
    }
    let inside = before_closers(scene, open, end);
    let last = scene.source[..inside].chars().next_back();
    if inside > span.start + prefix + 1 && last.is_some_and(|c| other.starts_with(c)) {
        let why = format!("the string on line {line} starts with {quote} but ends with {other}");
        found.add(Rule::Quote, why, vec![(inside - 1..inside, quote.to_owned())]);
    }
    let why = format!("the string on line {line} has no closing {quote}");
    for at in [inside, end] {
        found.add(Rule::Quote, why.clone(), vec![(at..at, quote.to_owned())]);
    }
}

/// The place before the closing brackets, commas and colons at the end, as far
/// as there are open brackets for them.
fn before_closers(scene: &Scene<'_>, open: usize, end: usize) -> usize {
    let mut expected: Vec<&str> = Vec::new();
    for index in 0..open {
        let token = &scene.lexed.tokens[index];
        match (token.kind, scene.text(index)) {
            (Kind::End, _) => expected.clear(),
            (Kind::Op, "(" | "[" | "{") if !token.nested => {
                expected.push(closer(scene.text(index)));
            }
            (Kind::Op, ")" | "]" | "}") if !token.nested => {
                expected.pop();
            }
            _ => {}
        }
    }
    let start = scene.span(open).start + 1;
    let body = &scene.source[start..end];
    // From the left: the longest tail which only closes what is open.
    let tails = body.char_indices().map(|(at, _)| at);
    tails
        .filter(|at| body[*at..].starts_with([')', ']', '}', ',', ':']))
        .find(|at| closes(&body[*at..], &expected))
        .map_or(end, |at| start + at)
}

fn closes(tail: &str, expected: &[&str]) -> bool {
    let mut expected = expected.to_vec();
    tail.chars().all(|c| match c {
        ',' | ':' | ' ' => true,
        c => expected.pop().is_some_and(|closer| closer.starts_with(c)),
    })
}

/// A quote between two alphabetic characters on the line: `'don't'`.
fn apostrophe(scene: &Scene<'_>, line: usize) -> Option<usize> {
    let span = scene.lines.span(line);
    let mut texts = scene.lexed.tokens.iter().filter(|token| {
        token.kind == Kind::Text && !token.nested && span.contains(&token.span.start)
    });
    let first = texts.next()?;
    let text = scene.lexed.text(first);
    let quote = text.chars().last().filter(|c| *c == '\'')?;
    let at = first.span.end - 1;
    let before = scene.source[..at].chars().next_back()?;
    let after = scene.source[first.span.end..].chars().next()?;
    let closed = text.len() > 1 && text.ends_with(quote);
    (closed && before.is_alphabetic() && after.is_alphabetic()).then_some(at)
}

/// A documentation string that swallows the rest: it ends with its own line,
/// or with the text before the first blank line.
fn triple(scene: &Scene<'_>, found: &mut Found<'_>, open: usize, quotes: &str) {
    let first = scene.lines.at(scene.span(open).start);
    let why = format!("the text opened on line {first} has no closing {quotes}");
    let text = scene.lines.text(first).trim_end();
    if text.trim_start().len() > quotes.len() {
        let at = scene.lines.start(first) + text.len();
        // Two of the three may be there.
        let half = text.bytes().rev().take_while(|b| quotes.as_bytes()[0] == *b).count().min(2);
        found.add(Rule::Quote, why.clone(), vec![(at..at, quotes[half..].to_owned())]);
    }
    let last = (first + 1..=scene.lines.count())
        .take_while(|line| !scene.lines.text(*line).trim().is_empty())
        .last();
    if let Some(last) = last {
        let at = scene.lines.start(last) + scene.lines.text(last).trim_end().len();
        found.add(Rule::Quote, why, vec![(at..at, quotes.to_owned())]);
    }
}
