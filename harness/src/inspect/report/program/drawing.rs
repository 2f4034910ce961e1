//! The steps of a program and what they need of each other, as SVG.
//!
//! The steps stand below each other, in their order. A value that passes is a curve on the left side, or a
//! line to the next step; every other edge is a curve on the right side.

use harness_esg::EdgeKind;
use maud::{Markup, html};

use super::ProgramReport;
use crate::inspect::report::lines::clipped;
use crate::inspect::report::words::many;
use crate::text::shown;

/// The most inputs and steps that are drawn.
const MAX_DRAWN: usize = 60;
const ROW: usize = 58;
const BOX: usize = 40;
const TOP: usize = 10;
const MAX_NAME: usize = 28;
/// The width of a character of a label, roughly.
const CHARACTER: usize = 8;

/// A box.
struct Spot<'a> {
    name: &'a str,
    class: &'static str,
    words: &'static str,
}

pub(super) fn svg(program: &ProgramReport, nth: usize) -> Markup {
    let inputs = program.inputs.iter();
    let inputs = inputs.map(|(name, _)| Spot { name, class: "input", words: "input" });
    let steps = program.steps.iter().map(|step| Spot {
        name: &step.id,
        class: step.status.class(),
        words: step.status.name(),
    });
    let spots: Vec<Spot<'_>> = inputs.chain(steps).take(MAX_DRAWN).collect();
    let hidden = (program.inputs.len() + program.steps.len()).saturating_sub(spots.len());
    let arrows = program.arrows().into_iter().filter(|(from, to, _)| *from.max(to) < spots.len());
    let arrows: Vec<_> = arrows.collect();
    let longest = spots.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    let wide = longest.clamp(8, MAX_NAME + 1) * CHARACTER + 96;
    let mut sides = [16, 16];
    for (from, to, kind) in &arrows {
        if !is_line(*from, *to, *kind) {
            let side = usize::from(*kind != EdgeKind::Flow);
            sides[side] = sides[side].max(reach(*from, *to) + 12);
        }
    }
    let (width, height) = (sides[0] + wide + sides[1], TOP * 2 + ROW * spots.len() + BOX - ROW);
    let (title, tip) = (format!("program-{nth}-title"), format!("program-{nth}-tip"));
    html! {
        figure class="loop" tabindex="0" {
            svg role="img" aria-labelledby=(title) width=(width) height=(height)
                viewBox={ "0 0 " (width) " " (height) } {
                title id=(title) { "The steps of " (shown(&program.field)) ", and what they need of each other: the tables say the same" }
                defs {
                    marker id=(tip) viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
                        orient="auto-start-reverse" { path class="tip" d="M0 0L8 4L0 8z" {} }
                }
                @for (from, to, kind) in &arrows { (arrow((*from, *to), *kind, (sides[0], wide), &tip)) }
                @for (at, spot) in spots.iter().enumerate() { (node(spot, at, sides[0], wide)) }
            }
            @if hidden > 0 { figcaption { (many(hidden as u64, "more step", "more steps")) " not drawn." } }
        }
    }
}

fn y(row: usize) -> usize {
    TOP + row * ROW + BOX / 2
}

/// How far to the side the curve of an edge reaches.
fn reach(from: usize, to: usize) -> usize {
    18 + 14 * from.abs_diff(to).min(8)
}

fn is_line(from: usize, to: usize, kind: EdgeKind) -> bool {
    kind == EdgeKind::Flow && to == from + 1
}

pub(super) fn class(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Flow => "flow",
        EdgeKind::LateBound => "late",
        EdgeKind::Alias => "alias",
        _ => "order",
    }
}

fn arrow(
    (from, to): (usize, usize),
    kind: EdgeKind,
    (left, wide): (usize, usize),
    tip: &str,
) -> Markup {
    let (one, two) = (y(from), y(to));
    let path = if is_line(from, to, kind) {
        let x = left + wide / 2;
        format!("M{x} {}L{x} {}", one + BOX / 2, two - BOX / 2)
    } else if kind == EdgeKind::Flow {
        let far = left.saturating_sub(reach(from, to));
        format!("M{left} {}C{far} {one} {far} {two} {left} {}", one + 8, two - 8)
    } else {
        let (right, far) = (left + wide, left + wide + reach(from, to));
        format!("M{right} {}C{far} {one} {far} {two} {right} {}", one + 8, two - 8)
    };
    html! { path class={ "edge " (class(kind)) } d=(path) marker-end={ "url(#" (tip) ")" } {} }
}

fn node(spot: &Spot<'_>, row: usize, left: usize, wide: usize) -> Markup {
    let radius = if spot.class == "input" { BOX / 2 } else { 6 };
    html! {
        g class={ "node code " (spot.class) } {
            rect x=(left) y=(y(row) - BOX / 2) width=(wide) height=(BOX) rx=(radius) {}
            text x=(left + 14) y=(y(row) + 5) { (shown(&clipped(spot.name, MAX_NAME))) }
            text class="count" x=(left + wide - 14) y=(y(row) + 5) text-anchor="end" { (spot.words) }
        }
    }
}
