//! Mermaid flowcharts.
//!
//! The two places that have one edge each are declared where that edge is drawn. Edges have no names
//! in Mermaid: those to be marked are listed at the end, by their number.

use std::fmt::{self, Write};

use super::{Line, Pen, Spot, named};
use crate::graph::wiring::{Kind, Node};

/// How what was visited stands out.
const VISITED: &str = "stroke:#00aa77,stroke-width:3px";

#[derive(Default)]
pub(super) struct Mermaid {
    out: String,
    /// The loop's name, as a label.
    name: String,
    /// The most bytes of a name.
    most: Option<usize>,
    edges: usize,
    /// The numbers of the edges to be marked, separated by commas.
    taken: String,
    visited: bool,
}

impl Mermaid {
    pub(super) fn new(most: Option<usize>) -> Self {
        Self { most, ..Self::default() }
    }

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
        self.name = label(&named(name, 0, self.most));
        self.out.write_str("flowchart TD\n")
    }

    fn step(&mut self, step: usize, node: &Node, visits: usize) -> fmt::Result {
        let (open, close) = match node.kind {
            Kind::Run => ("[", "]"),
            Kind::Decide => ("{", "}"),
            Kind::Gate => ("{{", "}}"),
        };
        let label = label(&named(&node.name, visits, self.most));
        let class = if visits > 0 { ":::visited" } else { "" };
        self.visited |= visits > 0;
        writeln!(self.out, "    s{step}{open}\"{label}\"{close}{class}")
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
                let label = label(&named(words, 0, self.most));
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

/// Text for a quoted Mermaid label: its only special characters are the quote and `#`.
fn label(text: &str) -> String {
    text.replace('#', "#35;").replace('"', "#quot;").replace(['\n', '\r'], " ")
}
