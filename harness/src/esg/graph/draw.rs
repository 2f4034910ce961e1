//! Drawings: the steps, what they read from each other, what stands of the last replay.
use std::fmt::Write as _;

use super::CodeGraph;
use crate::esg::replay::List;

impl CodeGraph {
    /// The program as a Mermaid flowchart: an arrow for what a step read from another, dotted where
    /// it was only tied through shared objects; failed steps stand out.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        let steps = self.planned();
        let mut text = String::from("flowchart TD\n");
        for (at, step) in steps.iter().enumerate() {
            let failed = self.engine.chosen.get(&step.id).is_some_and(|one| !one.ending.is_ok());
            let class = if failed { ":::failed" } else { "" };
            let _ = writeln!(text, "    s{at}[\"{}\"]{class}", escaped(&step.id));
        }
        let number = |id: &str| steps.iter().position(|step| &*step.id == id);
        for edge in self.traced_edges() {
            let (Some(from), Some(to)) = (number(&edge.from), number(&edge.to)) else { continue };
            let (arrow, what) =
                if edge.reads.is_empty() { ("-.->", &edge.alters) } else { ("-->", &edge.reads) };
            let label = escaped(&List(what).to_string().replace('`', ""));
            let _ = writeln!(text, "    s{from} {arrow}|\"{label}\"| s{to}");
        }
        text.push_str("    classDef failed stroke:#c00,stroke-width:3px\n");
        text
    }
}

/// Text inside of quotes in a Mermaid label.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '<' | '>' | '&' | '#' | '|' | '\\' | '`' => {
                let _ = write!(escaped, "#{};", u32::from(letter));
            }
            '\n' | '\r' => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
