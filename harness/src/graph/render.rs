//! Drawings of a graph.

use std::fmt::Write;

use crate::text::shown;

use super::wiring::{Branch, Dest, Exit, Kind, Node, Wiring};

pub(super) fn mermaid(wiring: &Wiring) -> String {
    let mut out = String::from("flowchart TD\n");
    // Writing to a String cannot fail.
    let _ = draw(wiring, &mut out);
    out
}

fn draw(wiring: &Wiring, out: &mut String) -> std::fmt::Result {
    write!(out, "    start([\"{}\"])", label(&wiring.name))?;
    match wiring.start {
        usize::MAX => writeln!(out)?,
        start => writeln!(out, " --> s{start}")?,
    }
    // The groups that are open, and the edges of their steps: in a group Mermaid draws every step
    // that it names, so edges stand behind it.
    let mut open: Vec<&str> = Vec::new();
    let mut behind = String::new();
    let mut opened = 0;
    for (step, node) in wiring.nodes.iter().enumerate() {
        let groups = groups(&node.name);
        let shared = open.iter().zip(&groups).take_while(|(one, other)| one == other).count();
        for depth in (shared..open.len()).rev() {
            writeln!(out, "{}end", indent(depth))?;
        }
        open.truncate(shared);
        if open.is_empty() {
            out.push_str(&std::mem::take(&mut behind));
        }
        for group in &groups[shared..] {
            let label = label(group);
            writeln!(out, "{}subgraph g{opened}[\"{label}\"]", indent(open.len()))?;
            open.push(group);
            opened += 1;
        }
        let (before, after) = match node.kind {
            Kind::Run | Kind::Off(_) => ("[", "]"),
            Kind::Decide => ("{", "}"),
            Kind::Gate => ("{{", "}}"),
        };
        let name = match groups.is_empty() {
            true => &*node.name,
            false => node.name.rsplit('/').next().unwrap_or_default(),
        };
        writeln!(out, "{}s{step}{before}\"{}\"{after}", indent(open.len()), label(name))?;
        edges(step, node, if open.is_empty() { &mut *out } else { &mut behind })?;
    }
    for depth in (0..open.len()).rev() {
        writeln!(out, "{}end", indent(depth))?;
    }
    out.push_str(&behind);
    writeln!(out, "    finish(((end)))")?;
    if let Some(edge) = wiring.on_error {
        writeln!(out, "    failed[/any error/] -.-> s{}", edge.to)?;
    }
    if let Some(edge) = wiring.finally {
        writeln!(out, "    finish -. \"finally\" .-> s{}", edge.to)?;
    }
    Ok(())
}

fn edges(step: usize, node: &Node, out: &mut String) -> std::fmt::Result {
    if matches!(node.kind, Kind::Off(_)) {
        return writeln!(out, "    style s{step} fill:#eee,color:#999,stroke-dasharray:5 5");
    }
    match &node.exit {
        Exit::Then(edge) => writeln!(out, "    s{step} --> s{}", edge.to)?,
        Exit::End => writeln!(out, "    s{step} --> finish")?,
        Exit::Route { branches, .. } => {
            for Branch { signal, dest } in branches {
                let dest = match dest {
                    Dest::Step(edge) => format!("s{}", edge.to),
                    Dest::End => "finish".to_owned(),
                };
                writeln!(out, "    s{step} -- \"{}\" --> {dest}", label(signal))?;
            }
        }
    }
    if let Some(limit) = node.at_most {
        let words = format!("after {}", limit.times);
        writeln!(out, "    s{step} -- \"{words}\" --> s{}", limit.instead.to)?;
    }
    if let Some(edge) = node.on_error {
        writeln!(out, "    s{step} -. \"error\" .-> s{}", edge.to)?;
    }
    Ok(())
}

/// The loops within the loop that a step belongs to: `Review/Approve` is in `Review`. A name with
/// very many parts is drawn as it is.
fn groups(name: &str) -> Vec<&str> {
    const DEEPEST: usize = 8;
    let mut parts: Vec<&str> = name.split('/').take(DEEPEST + 2).collect();
    if parts.len() > DEEPEST + 1 || parts.iter().any(|part| part.trim().is_empty()) {
        return Vec::new();
    }
    parts.pop();
    parts
}

fn indent(depth: usize) -> String {
    "    ".repeat(depth + 1)
}

/// Text for a quoted Mermaid label: in one, only the quote, `#` and `<` are special.
fn label(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    shown(&text).replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;")
}
