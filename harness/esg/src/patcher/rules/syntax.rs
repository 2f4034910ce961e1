//! Sources Python cannot read: which rule to ask, and the small ones.
//!
//! Older versions only say "invalid syntax", so the messages order the rules
//! and the tokens decide.

use super::super::lex::{Kind, Loose};
use super::{Found, Rule, Scene, brackets, indent, quotes, words};

/// The words that open a block.
const BLOCKS: [&str; 12] = [
    "if", "elif", "else", "for", "while", "def", "class", "try", "except", "finally", "with",
    "async",
];

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let Some(syntax) = &scene.fault.facts.syntax else {
        return;
    };
    let message = syntax.message.as_str();
    if scene.fault.kind != "SyntaxError" {
        indent::propose(scene, found, message);
        return;
    }
    if message.contains("call to 'print'") {
        print_statement(scene, found);
    }
    // What follows an open string is not what it seems: not even its brackets.
    // What is before it may still be what the error is about.
    if let Some(string) = scene.lexed.open_strings.first() {
        let string = scene.span(*string).start;
        let before = scene.line() < scene.lines.at(string)
            && scene.lexed.loose.first().is_some_and(|loose| loose.place(&scene.lexed) < string);
        match before {
            true => brackets::propose(scene, found),
            false => quotes::propose(scene, found),
        }
        return;
    }
    let brackets_first = message.contains("parenthes")
        || message.contains("never closed")
        || message.contains("unmatched")
        || message.contains("EOF");
    if brackets_first {
        brackets::propose(scene, found);
    }
    words::propose(scene, found, &suspects(scene));
    assignment_in_condition(scene, found);
    missing_colon(scene, found);
    // While a bracket is loose, the tokens show nothing else.
    if !brackets_first && !scene.lexed.loose.is_empty() {
        brackets::propose(scene, found);
    }
    if message.contains("comma") || message == "invalid syntax" {
        missing_comma(scene, found);
    }
    if found.proposals.is_empty() {
        print_statement(scene, found);
    }
}

/// The statements the error may be about: the one on its line, and the one
/// before, as older versions notice some mistakes late.
fn suspects(scene: &Scene<'_>) -> Vec<Vec<usize>> {
    let mut suspects = vec![scene.statement.clone()];
    let first = scene.statement.first().copied().unwrap_or(usize::MAX);
    let before = scene.lexed.statements().into_iter().take_while(|s| s.end <= first);
    let code = |index: &usize| scene.lexed.tokens[*index].kind != Kind::Comment;
    let before = before.map(|s| s.filter(code).collect::<Vec<_>>()).filter(|s| !s.is_empty());
    suspects.extend(before.last());
    suspects
}

fn missing_colon(scene: &Scene<'_>, found: &mut Found<'_>) {
    for statement in suspects(scene) {
        let (Some(first), Some(last)) = (statement.first(), statement.last()) else {
            continue;
        };
        let depth = scene.lexed.tokens[*first].depth;
        let colon = |index: &usize| {
            scene.lexed.is(*index, ":") && scene.lexed.tokens[*index].depth == depth
        };
        let word = scene.text(*first);
        // A bracket that was lost in the header needs another repair first.
        let whole = !scene.lexed.loose.iter().any(|loose| match loose {
            Loose::Open { open, .. } => statement.contains(open),
            Loose::Close { close } | Loose::Crossed { close, .. } => statement.contains(close),
        });
        if !BLOCKS.contains(&word) || statement.iter().any(colon) || !whole {
            continue;
        }
        // A semicolon in its place is a slip of the finger.
        let span = scene.span(*last);
        let at = if scene.lexed.is(*last, ";") { span } else { span.end..span.end };
        let why = format!("the line that starts with `{word}` opens a block: it ends with `:`");
        found.add(Rule::MissingColon, why, vec![(at, ":".to_owned())]);
    }
}

fn assignment_in_condition(scene: &Scene<'_>, found: &mut Found<'_>) {
    for statement in suspects(scene) {
        let mut condition = None;
        for index in statement {
            let depth = scene.lexed.tokens[index].depth;
            match scene.text(index) {
                "if" | "elif" | "while" | "assert" => condition = Some((index, depth)),
                ":" | "else" | "for" if condition.is_some_and(|(_, d)| d == depth) => {
                    condition = None;
                }
                "=" => {
                    // A call's `name=value` is deeper than its condition.
                    let Some((word, _)) = condition.filter(|(_, d)| *d == depth) else {
                        continue;
                    };
                    let why =
                        format!("`=` after `{}` would assign: `==` compares", scene.text(word));
                    let edit = (scene.span(index), "==".to_owned());
                    found.add(Rule::AssignmentInCondition, why, vec![edit]);
                }
                _ => {}
            }
        }
    }
}

fn print_statement(scene: &Scene<'_>, found: &mut Found<'_>) {
    let tokens = &scene.lexed.tokens;
    for (position, index) in scene.statement.iter().enumerate() {
        let starts = position == 0 || [":", ";"].contains(&scene.text(index - 1));
        if !starts || scene.text(*index) != "print" {
            continue;
        }
        let depth = tokens[*index].depth;
        let rest: Vec<usize> = scene.statement[position + 1..]
            .iter()
            .copied()
            .take_while(|i| !(scene.lexed.is(*i, ";") && tokens[*i].depth == depth))
            .collect();
        let (Some(first), Some(last)) = (rest.first(), rest.last()) else {
            continue;
        };
        // `print (a), b` is left alone: it reads as a call.
        if ["=", ".", "("].contains(&scene.text(*first)) {
            continue;
        }
        let gap = (scene.span(*index).end..scene.span(*first).start, "(".to_owned());
        // What ends furthest: a string comes before the code of its fields.
        let end = rest.iter().map(|i| scene.span(*i).end).max().unwrap_or(scene.span(*last).end);
        // A comma at the end kept the line open.
        let close = if scene.lexed.is(*last, ",") { " end=\" \")" } else { ")" };
        let why = "`print` is a function: its arguments go in brackets".to_owned();
        found.add(Rule::PrintStatement, why, vec![gap, (end..end, close.to_owned())]);
        return;
    }
}

/// Two elements of a bracket next to each other.
fn missing_comma(scene: &Scene<'_>, found: &mut Found<'_>) {
    const WORDS: [&str; 16] = [
        "and", "as", "async", "await", "else", "for", "from", "if", "import", "in", "is", "lambda",
        "not", "or", "yield", "print",
    ];
    let plain: Vec<usize> =
        scene.statement.iter().copied().filter(|i| !scene.lexed.tokens[*i].nested).collect();
    for pair in plain.windows(2) {
        let (left, right) = (&scene.lexed.tokens[pair[0]], &scene.lexed.tokens[pair[1]]);
        let (a, b) = (scene.text(pair[0]), scene.text(pair[1]));
        let ends = match left.kind {
            Kind::Name => !WORDS.contains(&a),
            Kind::Number | Kind::Text => true,
            _ => [")", "]", "}"].contains(&a),
        };
        let starts = match right.kind {
            Kind::Name => !WORDS.contains(&b),
            Kind::Number => true,
            Kind::Text => left.kind != Kind::Text,
            // After a name these call or index.
            _ => (b == "{" || b == "[" || b == "(") && left.kind != Kind::Name && a != ")",
        };
        let inside = right.depth > 0 && left.depth.max(1) >= right.depth;
        if ends && starts && inside {
            let at = left.span.end;
            let why = format!("there is no comma between `{a}` and `{b}`");
            found.add(Rule::MissingComma, why, vec![(at..at, ",".to_owned())]);
        }
    }
}
