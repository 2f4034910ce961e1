//! Which steps run again after edits of a long program, and how long that takes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::esg::{Blobs, CodeGraph, Program};

use super::Figure;
use super::python::{Result, brief, or_failed, plain, worker};

/// How many steps the program has.
pub(super) const STEPS: usize = 100;

/// The slow step.
const SLOW: usize = 10;

/// Beside running everything again without tracing, and beside running every possible descendant of
/// the edited step.
pub(super) fn replays() -> Vec<Figure> {
    or_failed("esg-replay", figures())
}

/// The work of one of the three.
#[derive(Default)]
struct Done {
    steps: usize,
    wall: Duration,
}

impl Done {
    fn add(&mut self, graph: &mut CodeGraph) -> Result<()> {
        let begun = Instant::now();
        let report = graph.replay()?;
        self.wall += begun.elapsed();
        self.steps += report.executed().count();
        if report.ok() && report.untracked.is_empty() {
            Ok(())
        } else {
            Err(format!("the program does not run as it should: {report}").into())
        }
    }
}

fn figures() -> Result<Vec<Figure>> {
    let edits = if brief() { 2 } else { 20 };
    let (mut ours, mut descendants, mut full) = (Done::default(), Done::default(), Duration::ZERO);
    let mut sources: Vec<String> = (0..STEPS).map(|at| source(at, 1)).collect();
    let mut first = graph(&sources)?;
    let mut second = graph(&sources)?;
    for round in 0..edits {
        let at = edited(round);
        let (id, edit) = (format!("s{at}"), source(at, round + 2));
        let from = from(&first, &id);
        first.edit(|program| program.replace(&id, &edit))?;
        ours.add(&mut first)?;
        second.edit(|program| program.replace(&id, &edit))?;
        from.iter().try_for_each(|step| second.invalidate(step))?;
        descendants.add(&mut second)?;
        sources[at] = edit;
        full += Duration::from_nanos(plain("", &sources, None)?.wall as u64);
    }
    if !first.verify()?.same {
        return Err("the state differs from that of a full run".into());
    }
    let per = f64::from(u32::try_from(edits)?);
    let steps = |done: usize| done as f64 / per;
    let millis = |wall: Duration| wall.as_secs_f64() * 1e3 / per;
    let figure = |case: &str, unit, ours: f64, floor: f64| Figure {
        case: format!("esg-replay {case}"),
        ours,
        floor,
        unit,
        ratio: ours / floor,
    };
    Ok(vec![
        figure("all", "steps/edit", steps(ours.steps), STEPS as f64),
        figure("all", "ms/edit", millis(ours.wall), millis(full)),
        figure("descendants", "steps/edit", steps(ours.steps), steps(descendants.steps)),
        figure("descendants", "ms/edit", millis(ours.wall), millis(descendants.wall)),
    ])
}

fn graph(sources: &[String]) -> Result<CodeGraph> {
    let mut program = Program::new();
    for (at, source) in sources.iter().enumerate() {
        program.push(&format!("s{at}"), source)?;
    }
    let mut graph = CodeGraph::new(program, worker()?, Blobs::memory());
    Done::default().add(&mut graph)?;
    Ok(graph)
}

/// The step, and every step that depends on it.
fn from(graph: &CodeGraph, step: &str) -> BTreeSet<Arc<str>> {
    let mut found: BTreeSet<Arc<str>> = BTreeSet::from([step.into()]);
    // In the order of the program, so that one pass is enough.
    for edge in graph.traced_edges() {
        if found.contains(&edge.from) {
            found.insert(edge.to);
        }
    }
    found
}

/// Spread over the program, never the slow step.
fn edited(round: usize) -> usize {
    match (round * 37 + 11) % STEPS {
        SLOW => SLOW + 1,
        at => at,
    }
}

/// A step of an analysis: rows, one long computation over them, figures from figures, functions,
/// lists that grow, output, and rounding that hides small changes.
pub(super) fn source(at: usize, edit: usize) -> String {
    let back = at.saturating_sub(3 + at % 4);
    let near = at.saturating_sub(1);
    match at {
        0 => format!("rows = [{{'id': i, 'v': (i * 7919) % 1000}} for i in range({})]\nv0 = len(rows)", 1999 + edit),
        1 => format!("log = []\nv1 = {edit}"),
        SLOW => "weight = 0\nfor i in range(6000000):\n    weight = (weight * 31 + i + v5) % 1000003\nv10 = weight"
            .to_owned(),
        _ if at.is_multiple_of(10) => format!("def f{at}(x):\n    return x * {edit} % 1009\nv{at} = f{at}(v{near})"),
        _ if at % 10 == 3 => format!("v{at} = sum(r['v'] for r in rows if r['v'] > v{back} % 1000) + {edit}"),
        _ if at % 10 == 5 => format!("v{at} = (v{near} + {edit}) // 1000"),
        _ if at % 10 == 7 => format!("log.append(v{back} + {edit})\nv{at} = len(log)"),
        _ if at % 10 == 9 => format!("print('{edit}', v{back})\nv{at} = v{back}"),
        _ => format!("v{at} = v{near} + v{back} * {edit} % 1009"),
    }
}
