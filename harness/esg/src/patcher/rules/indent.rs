//! Blocks at the wrong depth, and tabs among spaces.

use std::ops::Range;

use super::super::lex::Kind;
use super::super::lines::width;
use super::{Found, Rule, Scene};

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>, message: &str) {
    tabs(scene, found);
    let line = scene.line();
    let code = code_lines(scene);
    let Ok(at) = code.binary_search(&line) else {
        return;
    };
    let before = &code[..at];
    let Some(previous) = before.last().copied() else {
        // Nothing can be indented at the very start.
        let why = "the first statement is not indented".to_owned();
        shift(scene, found, &code, at, "", Reach::Block, why);
        return;
    };
    if message.contains("unexpected indent") {
        let why =
            format!("line {line} is indented further than line {previous}, which opens no block");
        shift(scene, found, &code, at, scene.lines.indent(previous), Reach::Block, why);
    } else if message.contains("unindent") {
        for level in levels(scene, before, line) {
            let why = format!("the indentation of line {line} fits no block around it");
            shift(scene, found, &code, at, &level, Reach::Same, why);
        }
    } else if message.contains("expected an indented block") {
        let deeper = format!("{}{}", scene.lines.indent(previous), unit(scene, &code));
        let why = format!("line {previous} opens a block: line {line} belongs in it");
        shift(scene, found, &code, at, &deeper, Reach::Statement, why.clone());
        shift(scene, found, &code, at, &deeper, Reach::Paragraph, why);
    }
}

/// How many of the following lines move too.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// Those indented as far or further.
    Block,
    /// Those indented exactly as far, and what is in them.
    Same,
    /// What is in the block the line itself opens.
    Statement,
    /// Those indented as far or further, up to a blank line.
    Paragraph,
}

/// The lines on which a statement starts.
fn code_lines(scene: &Scene<'_>) -> Vec<usize> {
    let tokens = &scene.lexed.tokens;
    let starts =
        scene.lexed.statements().into_iter().filter_map(|mut statement| {
            statement.find(|index| tokens[*index].kind != Kind::Comment)
        });
    let mut lines: Vec<usize> =
        starts.map(|index| scene.lines.at(tokens[index].span.start)).collect();
    lines.dedup();
    lines
}

/// Gives a line a new indentation, and its block the same shift.
fn shift(
    scene: &Scene<'_>,
    found: &mut Found<'_>,
    code: &[usize],
    at: usize,
    new: &str,
    reach: Reach,
    why: String,
) {
    let old = scene.lines.indent(code[at]);
    let opens = scene.lines.text(code[at]).trim_end().ends_with(':');
    let mut edits = vec![(indent_span(scene, code[at]), new.to_owned())];
    for pair in code[at..].windows(2) {
        let (previous, line) = (pair[0], pair[1]);
        let indent = scene.lines.indent(line);
        let deeper = width(indent) > width(old);
        let goes = match reach {
            Reach::Block => indent.starts_with(old),
            Reach::Same => indent == old || deeper,
            Reach::Statement => deeper && opens,
            Reach::Paragraph => indent.starts_with(old) && line == previous + 1,
        };
        if !goes || (old.is_empty() && reach == Reach::Block) {
            break;
        }
        let Some(rest) = indent.strip_prefix(old) else {
            break;
        };
        edits.push((indent_span(scene, line), format!("{new}{rest}")));
    }
    found.add(Rule::Indentation, why, edits);
}

fn indent_span(scene: &Scene<'_>, line: usize) -> Range<usize> {
    let start = scene.lines.start(line);
    start..start + scene.lines.indent(line).len()
}

/// The indentations open before a line, the nearest to it first; among equals
/// the deeper.
fn levels(scene: &Scene<'_>, before: &[usize], line: usize) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    for line in before {
        let indent = scene.lines.indent(*line);
        open.retain(|outer| width(outer) < width(indent));
        open.push(indent);
    }
    let here = width(scene.lines.indent(line));
    open.reverse();
    open.sort_by_key(|level| width(level).abs_diff(here));
    open.into_iter().map(str::to_owned).collect()
}

/// One step of indentation, as this source has it.
fn unit(scene: &Scene<'_>, code: &[usize]) -> String {
    let steps = code.windows(2).filter_map(|pair| {
        let (outer, inner) = (scene.lines.indent(pair[0]), scene.lines.indent(pair[1]));
        inner.strip_prefix(outer).filter(|step| !step.is_empty())
    });
    let mut steps: Vec<&str> = steps.collect();
    steps.sort_unstable();
    // The most frequent one.
    let most = steps.chunk_by(|a, b| a == b).max_by_key(|group| group.len());
    most.and_then(|group| group.first()).map_or("    ", |step| *step).to_owned()
}

/// Writes the indentation of the fewer lines like that of the more.
fn tabs(scene: &Scene<'_>, found: &mut Found<'_>) {
    let code = code_lines(scene);
    let indented: Vec<usize> =
        code.iter().copied().filter(|line| !scene.lines.indent(*line).is_empty()).collect();
    let has_tab = |line: &usize| scene.lines.indent(*line).contains('\t');
    let (tabbed, spaced): (Vec<usize>, Vec<usize>) = indented.iter().partition(|l| has_tab(l));
    let pure_tabs = tabbed.iter().filter(|l| !scene.lines.indent(**l).contains(' ')).count();
    if tabbed.is_empty() || (spaced.is_empty() && pure_tabs == tabbed.len()) {
        return;
    }
    let step = unit_width(scene, &spaced);
    let to_tabs = pure_tabs > spaced.len();
    // Editors do not agree on what a tab is: take what makes most sense.
    let columns = |line: usize, tab: usize| -> usize {
        scene.lines.indent(line).chars().map(|c| if c == '\t' { tab } else { 1 }).sum()
    };
    let misfits = |tab: &usize| {
        let pairs = code.windows(2).filter(|pair| {
            let opens = scene.lines.text(pair[0]).trim_end().ends_with(':');
            (columns(pair[1], *tab) > columns(pair[0], *tab)) != opens
        });
        pairs.count()
    };
    let tab = [step, 4, 8, 2].into_iter().min_by_key(misfits).unwrap_or(step);
    let step = if to_tabs { tab } else { step };
    let edits = indented.iter().map(|line| {
        let columns = columns(*line, tab);
        let new = match to_tabs {
            true => "\t".repeat(columns / step) + &" ".repeat(columns % step),
            false => " ".repeat(columns),
        };
        (indent_span(scene, *line), new)
    });
    let kind = if to_tabs { "tabs" } else { "spaces" };
    let why = format!("tabs and spaces are mixed: most lines are indented with {kind}");
    found.add(Rule::TabsAndSpaces, why, edits.collect());
}

/// One step of indentation by spaces: the smallest in the source, unless that is a deep line.
fn unit_width(scene: &Scene<'_>, spaced: &[usize]) -> usize {
    let widths = spaced.iter().map(|line| scene.lines.indent(*line).len());
    widths.filter(|width| *width > 1).min().filter(|width| *width <= 3).unwrap_or(4)
}
