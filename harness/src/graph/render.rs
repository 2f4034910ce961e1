//! Drawings of a graph.

use std::fmt::Write;

use super::wiring::{Branch, Dest, Exit, Kind, Wiring};

pub(super) fn mermaid(wiring: &Wiring) -> String {
    let mut out = String::from("flowchart TD\n");
    // Writing to a String cannot fail.
    let _ = draw(wiring, &mut out);
    out
}

fn draw(wiring: &Wiring, out: &mut String) -> std::fmt::Result {
    writeln!(out, "    start([\"{}\"]) --> s{}", label(&wiring.name), wiring.start)?;
    for (step, node) in wiring.nodes.iter().enumerate() {
        let (open, close) = match node.kind {
            Kind::Run | Kind::Off(_) => ("[", "]"),
            Kind::Decide => ("{", "}"),
            Kind::Gate => ("{{", "}}"),
        };
        writeln!(out, "    s{step}{open}\"{}\"{close}", label(&node.name))?;
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
    }
    writeln!(out, "    finish(((end)))")?;
    if let Some(edge) = wiring.on_error {
        writeln!(out, "    failed[/any error/] -.-> s{}", edge.to)?;
    }
    if let Some(edge) = wiring.finally {
        writeln!(out, "    finish -. \"finally\" .-> s{}", edge.to)?;
    }
    Ok(())
}

/// Text for a quoted Mermaid label: its only special characters are the quote and `#`.
fn label(text: &str) -> String {
    text.replace('#', "#35;").replace('"', "#quot;").replace(['\n', '\r'], " ")
}
