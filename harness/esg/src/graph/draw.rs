//! Drawings of the steps and their dependencies.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::CodeGraph;
use crate::model::{Entity, List};
use crate::program::{EdgeKind, Edges, Origin};

/// How many channels an arrow names.
const NAMED: usize = 4;

/// Boxes and arrows.
#[derive(Default)]
struct Drawing {
    boxes: Vec<Drawn>,
    arrows: Vec<Arrow>,
}

struct Drawn {
    label: String,
    look: Look,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Step,
    Failed,
    Input,
}

struct Arrow {
    /// The index of a box.
    from: usize,
    to: usize,
    label: String,
    dotted: bool,
}

impl CodeGraph {
    /// The program as a Mermaid flowchart. An arrow means that a step read from another; a dotted
    /// one that it was only connected through shared objects. Failed steps stand out.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        self.drawing().to_mermaid()
    }

    /// The program as a Graphviz graph, in DOT.
    #[must_use]
    pub fn to_dot(&self) -> String {
        self.drawing().to_dot()
    }

    fn drawing(&self) -> Drawing {
        let steps = self.planned();
        let look = |id: &str| match self.engine.ledger.execution(id) {
            Some(execution) if !execution.ending.is_ok() => Look::Failed,
            _ => Look::Step,
        };
        let boxes =
            steps.iter().map(|step| Drawn { label: step.id.to_string(), look: look(&step.id) });
        let places = steps.iter().enumerate().map(|(at, step)| (&*step.id, at));
        let places: HashMap<&str, usize> = places.collect();
        let arrows = self.traced_edges().filter_map(|edge| {
            let (from, to) = (*places.get(&*edge.from)?, *places.get(&*edge.to)?);
            let dotted = edge.reads.is_empty();
            let label = named(if dotted { &edge.alters } else { &edge.reads });
            Some(Arrow { from, to, label, dotted })
        });
        Drawing { boxes: boxes.collect(), arrows: arrows.collect() }
    }
}

impl Edges<'_> {
    /// The steps and what they may need of each other, as a Mermaid flowchart: an arrow for what a
    /// step loads, dotted where only functions load it that it calls, or where it changes an object
    /// by another name.
    ///
    /// ```
    /// let program = harness_esg::Program::from_script("# %% a\nx = 1\n# %% b\nprint(x)")?;
    /// assert!(program.edges().to_mermaid().contains("s0 -->|\"x\"| s1"));
    /// # Ok::<(), harness_esg::ProgramError>(())
    /// ```
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        self.drawing().to_mermaid()
    }

    /// The steps as a Graphviz graph, in DOT.
    #[must_use]
    pub fn to_dot(&self) -> String {
        self.drawing().to_dot()
    }

    fn drawing(&self) -> Drawing {
        let program = self.program();
        let inputs = program.inputs().map(|input| Origin::Input(input.name.clone()));
        let steps = program.steps().map(|step| Origin::Step(step.id.clone()));
        let all: Vec<Origin> = inputs.chain(steps).collect();
        let places: HashMap<&Origin, usize> =
            all.iter().enumerate().map(|(at, origin)| (origin, at)).collect();
        // One arrow for everything that passes between two steps.
        let mut arrows: BTreeMap<(usize, usize), (bool, Vec<Entity>)> = BTreeMap::new();
        for edge in self.iter() {
            let reader = Origin::Step(edge.reader);
            let ends = (places.get(&edge.producer), places.get(&reader));
            let (Some(from), Some(to)) = ends else { continue };
            let (dotted, channels) = arrows.entry((*to, *from)).or_insert((true, Vec::new()));
            *dotted &= edge.kind != EdgeKind::Flow;
            channels.extend(edge.channels);
        }
        let arrows = arrows.into_iter().map(|((to, from), (dotted, channels))| Arrow {
            from,
            to,
            label: named(&channels),
            dotted,
        });
        let look = |origin: &Origin| match origin {
            Origin::Input(_) => Look::Input,
            _ => Look::Step,
        };
        let boxes =
            all.iter().map(|origin| Drawn { label: origin.to_string(), look: look(origin) });
        Drawing { boxes: boxes.collect(), arrows: arrows.collect() }
    }
}

impl Drawing {
    fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        for (at, Drawn { label, look }) in self.boxes.iter().enumerate() {
            let label = escaped(label);
            let _ = match look {
                Look::Step => writeln!(text, "    s{at}[\"{label}\"]"),
                Look::Failed => writeln!(text, "    s{at}[\"{label}\"]:::failed"),
                Look::Input => writeln!(text, "    s{at}([\"{label}\"])"),
            };
        }
        for Arrow { from, to, label, dotted } in &self.arrows {
            let arrow = if *dotted { "-.->" } else { "-->" };
            let _ = writeln!(text, "    s{from} {arrow}|\"{}\"| s{to}", escaped(label));
        }
        if self.boxes.iter().any(|drawn| drawn.look == Look::Failed) {
            text.push_str("    classDef failed stroke:#c00,stroke-width:3px\n");
        }
        text
    }

    fn to_dot(&self) -> String {
        let mut text = String::from("digraph {\n    node [shape=box]\n");
        for (at, Drawn { label, look }) in self.boxes.iter().enumerate() {
            let look = match look {
                Look::Step => "",
                Look::Failed => ", color=\"#cc0000\", penwidth=3",
                Look::Input => ", shape=oval",
            };
            let _ = writeln!(text, "    s{at} [label=\"{}\"{look}]", quoted(label));
        }
        for Arrow { from, to, label, dotted } in &self.arrows {
            let look = if *dotted { ", style=dotted" } else { "" };
            let _ = writeln!(text, "    s{from} -> s{to} [label=\"{}\"{look}]", quoted(label));
        }
        text.push_str("}\n");
        text
    }
}

/// The first few channels, and the number of the others.
fn named(channels: &[Entity]) -> String {
    let shown = if channels.len() > NAMED + 1 { &channels[..NAMED] } else { channels };
    let rest = channels.len() - shown.len();
    let text = List(shown).to_string().replace('`', "");
    if rest == 0 { text } else { format!("{} and {rest} more", text.replace(" and ", ", ")) }
}

/// Escapes text inside quotes in a Mermaid label.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '<' | '>' | '&' | '#' | '|' | '\\' | '`' => {
                let _ = write!(escaped, "#{};", u32::from(c));
            }
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escapes text inside quotes in DOT.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted
}

#[cfg(test)]
mod tests;
