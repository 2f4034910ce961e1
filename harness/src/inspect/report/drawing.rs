//! The loop with the path taken, as SVG and as Mermaid.
//!
//! The steps stand below each other. An edge to the next one is a line; other edges are curves, down on
//! the left side and up on the right, so that they rarely cross.

use std::collections::HashMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use crate::graph::mermaid_label;
use crate::session::StepKind;
use crate::text::shown;

use super::lines::clipped;
use super::words::{many, phase};
use super::{Report, Spot, StepReport, Transition};

/// The most steps that are drawn, beside those that were entered.
const MAX_STEPS: usize = 80;
const ROW: usize = 64;
const BOX: usize = 40;
const TOP: usize = 14;
const MAX_NAME: usize = 30;
/// The width of a character of a label, roughly.
const CHARACTER: usize = 8;

struct Layout<'a> {
    steps: Vec<&'a StepReport>,
    width: usize,
    left: usize,
    total: (usize, usize),
}

impl<'a> Layout<'a> {
    fn of(report: &'a Report) -> Self {
        let steps: Vec<_> = report.steps.iter().take(MAX_STEPS).collect();
        let longest = steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
        let width = longest.clamp(8, MAX_NAME + 1) * CHARACTER + 72;
        let mut layout = Self { steps, width, left: 0, total: (0, 0) };
        let rows: HashMap<Spot, usize> = layout.rows();
        let mut sides = [24, 24];
        for (from, to) in report.transitions.iter().filter_map(|it| ends(&rows, it)) {
            let side = usize::from(to <= from);
            if to != from + 1 {
                sides[side] = sides[side].max(reach(from, to) + 40);
            }
        }
        layout.left = sides[0];
        let height = TOP * 2 + ROW * (layout.steps.len() + 1) + BOX;
        layout.total = (sides[0] + width + sides[1], height);
        layout
    }

    /// The row of every spot: the start is 0, the end is last.
    fn rows(&self) -> HashMap<Spot, usize> {
        let steps = self.steps.iter().enumerate();
        let rows = steps.map(|(at, step)| (Spot::Step(step.name.clone()), at + 1));
        rows.chain([(Spot::Start, 0), (Spot::End, self.steps.len() + 1)]).collect()
    }

    fn y(&self, row: usize) -> usize {
        TOP + row * ROW + BOX / 2
    }

    /// Half the height of what stands in a row.
    fn half(&self, row: usize) -> usize {
        if row == 0 || row == self.steps.len() + 1 { 9 } else { BOX / 2 }
    }

    fn middle(&self) -> usize {
        self.left + self.width / 2
    }

    /// Half the width of what stands in a row.
    fn side(&self, row: usize) -> usize {
        if row == 0 || row == self.steps.len() + 1 { 9 } else { self.width / 2 }
    }
}

/// How far to the side the curve of an edge reaches.
fn reach(from: usize, to: usize) -> usize {
    22 + 16 * from.abs_diff(to).min(8)
}

fn ends(rows: &HashMap<Spot, usize>, edge: &Transition) -> Option<(usize, usize)> {
    Some((*rows.get(&edge.from)?, *rows.get(&edge.to)?))
}

pub(super) fn svg(report: &Report) -> Markup {
    let layout = Layout::of(report);
    let rows = layout.rows();
    let (width, height) = layout.total;
    let hidden = report.steps.len() - layout.steps.len();
    html! {
        figure class="loop" tabindex="0" {
            svg role="img" aria-labelledby="loop-title loop-path" width=(width) height=(height)
                viewBox={ "0 0 " (width) " " (height) } {
                title id="loop-title" { "The loop " (shown(&report.harness)) }
                desc id="loop-path" { (in_words(report)) }
                defs {
                    marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
                        orient="auto-start-reverse" { path class="tip" d="M0 0L8 4L0 8z" {} }
                }
                @for edge in &report.transitions {
                    @if let Some((from, to)) = ends(&rows, edge) { (line(&layout, edge, from, to)) }
                }
                circle class="terminal" cx=(layout.middle()) cy=(layout.y(0)) r="7" {}
                @for (at, step) in layout.steps.iter().enumerate() {
                    (node(&layout, report, step, at + 1))
                }
                g class="terminal" {
                    circle class="ring" cx=(layout.middle()) cy=(layout.y(rows.len() - 1)) r="9" {}
                    circle cx=(layout.middle()) cy=(layout.y(rows.len() - 1)) r="5" {}
                }
            }
            @if hidden > 0 { figcaption { (many(hidden as u64, "more step", "more steps")) " not drawn." } }
        }
    }
}

fn node(layout: &Layout<'_>, report: &Report, step: &StepReport, row: usize) -> Markup {
    let current = *report.status.step == *step.name;
    let class = match (step.visits, current) {
        (_, true) => format!("node current phase-{}", phase(report.status.phase)),
        (0, false) => "node".to_owned(),
        _ => "node visited".to_owned(),
    };
    let y = layout.y(row) - BOX / 2;
    let radius = match step.kind {
        Some(StepKind::Gate) => BOX / 2,
        _ => 6,
    };
    html! {
        g class=(class) {
            rect x=(layout.left) y=(y) width=(layout.width) height=(BOX) rx=(radius) {}
            @if step.kind == Some(StepKind::Each) {
                rect class="inner" x=(layout.left + 4) y=(y + 4) width=(layout.width - 8) height=(BOX - 8) rx="3" {}
            }
            text x=(layout.middle()) y=(layout.y(row) + 5) text-anchor="middle" {
                (shown(&clipped(&step.name, MAX_NAME)))
                @if step.visits > 0 { tspan class="count" dx="8" { "×" (step.visits) } }
            }
        }
    }
}

fn line(layout: &Layout<'_>, edge: &Transition, from: usize, to: usize) -> Markup {
    let (x, y, z) = (layout.middle(), layout.y(from), layout.y(to));
    let (path, label) = if to == from + 1 {
        let (y, z) = (y + layout.half(from), z - layout.half(to));
        (format!("M{x} {y}L{x} {z}"), (x + 8, (y + z) / 2 + 4, "start"))
    } else if to > from {
        let far = layout.left.saturating_sub(reach(from, to));
        let (one, two) = (x - layout.side(from), x - layout.side(to));
        (
            format!("M{one} {y}C{far} {y} {far} {z} {two} {z}"),
            (far + reach(from, to) / 4, (y + z) / 2 + 4, "middle"),
        )
    } else {
        let far = layout.left + layout.width + reach(from, to);
        let (one, two) = (x + layout.side(from), x + layout.side(to));
        // An edge to the same step leaves below its middle and arrives above it.
        let (y, z) = if from == to { (y + 8, z - 8) } else { (y, z) };
        (
            format!("M{one} {y}C{far} {y} {far} {z} {two} {z}"),
            (far - reach(from, to) / 4, (y + z) / 2 + 4, "middle"),
        )
    };
    let class = match (edge.times, edge.on_error) {
        (0, false) => "edge",
        (0, true) => "edge error",
        (_, false) => "edge taken",
        (_, true) => "edge taken error",
    };
    html! {
        path class=(class) d=(path) marker-end="url(#tip)" {}
        @if edge.times > 1 {
            text class="times" x=(label.0) y=(label.1) text-anchor=(label.2) { "×" (edge.times) }
        }
    }
}

/// The path in words, for those who do not see the drawing.
fn in_words(report: &Report) -> String {
    const MOST: usize = 40;
    let mut words = String::from("Path: ");
    if report.path.is_empty() {
        words.push_str("no step was entered");
    }
    for (at, step) in report.path.iter().take(MOST).enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let _ = write!(words, "{comma}{}", shown(step));
    }
    if report.path.len() > MOST {
        let _ = write!(words, ", and {} more", report.path.len() - MOST);
    }
    words
}

pub(super) fn mermaid(report: &Report) -> String {
    let mut out = String::from("flowchart TD\n    start([\" \"])\n");
    let mut rows = HashMap::from([(Spot::Start, "start".to_owned()), (Spot::End, "finish".into())]);
    for (at, step) in report.steps.iter().take(MAX_STEPS).enumerate() {
        let id = format!("s{at}");
        let (open, close) = match step.kind {
            Some(StepKind::Decide) => ("{", "}"),
            Some(StepKind::Gate) => ("{{", "}}"),
            Some(StepKind::Each) => ("[[", "]]"),
            _ => ("[", "]"),
        };
        let class = match (*report.status.step == *step.name, step.visits) {
            (true, _) => ":::current",
            (false, 0) => "",
            _ => ":::visited",
        };
        let visits = usize::try_from(step.visits).unwrap_or(usize::MAX);
        let label = mermaid_label(&step.name, visits);
        let _ = writeln!(out, "    {id}{open}\"{label}\"{close}{class}");
        rows.insert(Spot::Step(step.name.clone()), id);
    }
    out.push_str("    finish(((end)))\n");
    for edge in &report.transitions {
        let (Some(from), Some(to)) = (rows.get(&edge.from), rows.get(&edge.to)) else { continue };
        let arrow = if edge.on_error || edge.times == 0 { "-.->" } else { "-->" };
        let times = if edge.times > 1 { format!("|\"×{}\"|", edge.times) } else { String::new() };
        let _ = writeln!(out, "    {from} {arrow}{times} {to}");
    }
    out.push_str("    classDef visited stroke:#00aa77,stroke-width:2px\n");
    out.push_str("    classDef current stroke:#3366dd,stroke-width:4px\n");
    out
}
