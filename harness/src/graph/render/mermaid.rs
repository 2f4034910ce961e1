//! Mermaid flowcharts.
//!
//! The two nodes with one edge each are declared at that edge. Mermaid edges have no names: marked
//! edges are listed by number at the end.

use std::fmt::{self, Write};

use super::{Box, Line, Pen, Spot, indent, named};
use crate::graph::wiring::Kind;

/// The style of visited elements.
const VISITED: &str = "stroke:#00aa77,stroke-width:3px";

#[derive(Default)]
pub(super) struct Mermaid {
    out: String,
    /// The loop's name, as a label.
    name: String,
    edges: usize,
    /// The numbers of the marked edges, separated by commas.
    taken: String,
    visited: bool,
}

impl Mermaid {
    fn spot(&mut self, spot: Spot) -> fmt::Result {
        match spot {
            Spot::Start => write!(self.out, "start([\"{}\"])", self.name),
            Spot::Step(step) => write!(self.out, "s{step}"),
            Spot::Finish => self.out.write_str("finish"),
            Spot::Failed => self.out.write_str("failed[/any error/]"),
        }
    }
}

impl Pen for Mermaid {
    fn begin(&mut self, name: &str) -> fmt::Result {
        self.name = label(name, 0);
        self.out.write_str("flowchart TD\n")
    }

    fn no_start(&mut self) -> fmt::Result {
        self.out.write_str("    ")?;
        self.spot(Spot::Start)?;
        self.out.write_str("\n")
    }

    fn open(&mut self, nth: usize, depth: usize, name: &str) -> fmt::Result {
        writeln!(self.out, "{}subgraph g{nth}[\"{}\"]", indent(depth), label(name, 0))
    }

    fn shut(&mut self, depth: usize) -> fmt::Result {
        writeln!(self.out, "{}end", indent(depth))
    }

    fn step(&mut self, at: &Box<'_>) -> fmt::Result {
        let (open, close) = match at.kind {
            Kind::Run | Kind::Off(_) => ("[", "]"),
            Kind::Decide => ("{", "}"),
            Kind::Gate => ("{{", "}}"),
            Kind::Each => ("[[", "]]"),
        };
        let label = label(at.name, at.visits);
        let class = if at.visits > 0 { ":::visited" } else { "" };
        self.visited |= at.visits > 0;
        writeln!(self.out, "{}s{}{open}\"{label}\"{close}{class}", indent(at.depth), at.step)
    }

    fn off(&mut self, step: usize) -> fmt::Result {
        writeln!(self.out, "    style s{step} fill:#eee,color:#999,stroke-dasharray:5 5")
    }

    fn edge(&mut self, line: &Line<'_>) -> fmt::Result {
        if line.taken {
            let comma = if self.taken.is_empty() { "" } else { "," };
            write!(self.taken, "{comma}{}", self.edges)?;
        }
        self.edges += 1;
        self.out.write_str("    ")?;
        self.spot(line.from)?;
        match (&line.words, line.dotted) {
            (None, false) => self.out.write_str(" --> ")?,
            (None, true) => self.out.write_str(" -.-> ")?,
            (Some(words), dotted) => {
                let (open, close) = if dotted { ("-.", ".->") } else { ("--", "-->") };
                let label = label(words, 0);
                write!(self.out, " {open} \"{label}\" {close} ")?;
            }
        }
        self.spot(line.to)?;
        self.out.write_str("\n")
    }

    fn finish(&mut self) -> fmt::Result {
        self.out.write_str("    finish(((end)))\n")
    }

    fn failed(&mut self) -> fmt::Result {
        Ok(())
    }

    fn close(mut self) -> Result<String, fmt::Error> {
        if self.visited {
            writeln!(self.out, "    classDef visited {VISITED}")?;
        }
        if !self.taken.is_empty() {
            writeln!(self.out, "    linkStyle {} {VISITED}", self.taken)?;
        }
        Ok(self.out)
    }
}

/// Text for a quoted label. Mermaid interprets more than quotes in it: entities, of which its own
/// start with `#`; tags; Markdown, which is drawn as an error unless it is emphasis; formulas in
/// `$$`; icons such as `fa:fa-user`; directives in `%%{..}%%`. A colon before an entity, after the
/// word `style`, is parsed as a colour, and the end of the entity is lost.
pub(crate) fn label(text: &str, visits: usize) -> String {
    let text = named(text, visits);
    let marker = marker(&text);
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    for (at, c) in text.char_indices() {
        let after = text[at + c.len_utf8()..].chars().next();
        let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let escaped = match c {
            '"' | '#' | '&' | '<' | '\\' | '`' | '*' | '~' | '[' | '$' | '@' => true,
            // Inside a word it is not emphasis.
            '_' => !(word(before) && word(after)),
            ':' => after.is_some_and(|after| !after.is_whitespace()),
            '%' => after == Some('%'),
            '.' => text[..at].to_ascii_lowercase().ends_with("www"),
            _ => false,
        };
        before = Some(c);
        match c {
            c if !escaped && marker != Some(at) => out.push(c),
            '"' => out.push_str("#quot;"),
            '&' => out.push_str("#amp;"),
            '<' => out.push_str("#lt;"),
            c => out.extend(["#", &u32::from(c).to_string(), ";"]),
        }
    }
    out
}

/// If `text` starts like a list item, a quotation or a rule: the index of the character that makes
/// it one.
fn marker(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    let rest = text[start..].trim_start_matches(|c: char| c.is_ascii_digit());
    let at = text.len() - rest.len();
    let mut rest = rest.chars();
    let c = rest.next()?;
    let apart = rest.next().is_none_or(char::is_whitespace);
    let marks = match at > start {
        true => matches!(c, '.' | ')') && apart,
        false => matches!(c, '-' | '+' | '>'),
    };
    marks.then_some(at)
}
