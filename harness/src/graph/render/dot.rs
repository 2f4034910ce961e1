//! The Graphviz format.

use std::fmt::{self, Write};

use super::{Box, Line, Pen, Spot, indent, named};
use crate::graph::wiring::Kind;

/// The style of visited elements.
const VISITED: &str = "color=\"#00aa77\", penwidth=3";

#[derive(Default)]
pub(super) struct Dot {
    out: String,
}

impl Dot {
    fn spot(&mut self, spot: Spot) -> fmt::Result {
        match spot {
            Spot::Start => self.out.write_str("start"),
            Spot::Step(step) => write!(self.out, "s{step}"),
            Spot::Finish => self.out.write_str("finish"),
            Spot::Failed => self.out.write_str("failed"),
        }
    }
}

impl Pen for Dot {
    fn begin(&mut self, name: &str) -> fmt::Result {
        let label = label(&named(name, 0));
        self.out.write_str("digraph {\n")?;
        writeln!(self.out, "    start [label=\"{label}\", shape=box, style=rounded];")
    }

    fn no_start(&mut self) -> fmt::Result {
        Ok(())
    }

    fn open(&mut self, nth: usize, depth: usize, name: &str) -> fmt::Result {
        let (indent, label) = (indent(depth), label(&named(name, 0)));
        writeln!(self.out, "{indent}subgraph cluster{nth} {{\n{indent}    label=\"{label}\";")
    }

    fn shut(&mut self, depth: usize) -> fmt::Result {
        writeln!(self.out, "{}}}", indent(depth))
    }

    fn step(&mut self, at: &Box<'_>) -> fmt::Result {
        let shape = match at.kind {
            Kind::Run | Kind::Off(_) => "box",
            Kind::Decide => "diamond",
            Kind::Gate => "hexagon",
            Kind::Each => "box3d",
        };
        let label = label(&named(at.name, at.visits));
        write!(self.out, "{}s{} [label=\"{label}\", shape={shape}", indent(at.depth), at.step)?;
        if at.visits > 0 {
            write!(self.out, ", {VISITED}")?;
        }
        self.out.write_str("];\n")
    }

    fn off(&mut self, step: usize) -> fmt::Result {
        writeln!(self.out, "    s{step} [style=dashed, color=gray, fontcolor=gray];")
    }

    fn edge(&mut self, line: &Line<'_>) -> fmt::Result {
        self.out.write_str("    ")?;
        self.spot(line.from)?;
        self.out.write_str(" -> ")?;
        self.spot(line.to)?;
        let words = line.words.as_deref().map(|words| {
            let label = label(&named(words, 0));
            format!("label=\"{label}\"")
        });
        let attributes = [
            words.as_deref(),
            line.dotted.then_some("style=dotted"),
            line.taken.then_some(VISITED),
        ];
        let mut before = " [";
        for attribute in attributes.into_iter().flatten() {
            write!(self.out, "{before}{attribute}")?;
            before = ", ";
        }
        self.out.write_str(if before == ", " { "];\n" } else { ";\n" })
    }

    fn finish(&mut self) -> fmt::Result {
        self.out.write_str("    finish [label=\"end\", shape=doublecircle];\n")
    }

    fn failed(&mut self) -> fmt::Result {
        self.out.write_str("    failed [label=\"any error\", shape=parallelogram];\n")
    }

    fn close(mut self) -> Result<String, fmt::Error> {
        self.out.write_str("}\n")?;
        Ok(self.out)
    }
}

/// Text for a quoted label. Graphviz interprets escapes (`\N` is the name of the node) and HTML
/// entities in it.
fn label(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
