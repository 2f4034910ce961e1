//! The edges of a long program: from its scans, and after one edit.
//!
//! A program indexes the names of a step when the step is added: `intake` measures adding all steps.
//! `scratch` builds the edge index alone, `list` makes every edge. The targets: intake and scratch together
//! at most 20 ms, an edit at most 1 ms.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use harness::esg::{NameSet, Program, Scan};

use super::{Figure, cpu_time, failed, rounds};

/// How many steps the program has.
const STEPS: usize = 5_000;

/// Beside one pass that looks up every name of every scan once.
pub(super) fn edges() -> Vec<Figure> {
    let Some(program) = program() else {
        return vec![failed("esg-edges")];
    };
    vec![
        figure("esg-edges intake", &program, || {
            let scans: Vec<Scan> = (0..STEPS).map(scan).collect();
            let names = names();
            let (took, made) = timed(|| filled(&names, scans));
            black_box(made);
            took
        }),
        figure("esg-edges scratch", &program, || {
            let fresh = program.clone();
            let (took, edges) = timed(|| black_box(&fresh).edges());
            black_box(edges);
            took
        }),
        {
            let mut program = program.clone();
            let _ = program.edges();
            let mut other = false;
            let (edited, original) = (STEPS / 2 + 7, scan(STEPS / 2 + 7));
            let id = format!("step{edited}");
            let before = program.clone();
            figure("esg-edges edit", &before, move || {
                other = !other;
                let mut scan = original.clone();
                if other {
                    scan.reads.insert("v3");
                    scan.writes.insert("extra");
                }
                let text = if other { "other" } else { "again" };
                let (took, found) = timed(|| {
                    let done = program.replace_scanned(&id, text, scan);
                    (done.is_ok(), program.edges().into(&id), program.edges().of(&id))
                });
                let _ = black_box(found);
                took
            })
        },
        figure("esg-edges list", &program, || {
            let fresh = program.clone();
            let (took, count) = timed(|| black_box(&fresh).edges().iter().count());
            black_box(count);
            took
        }),
    ]
}

fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let started = cpu_time();
    let made = run();
    (cpu_time().saturating_sub(started), made)
}

fn figure(case: &str, program: &Program, mut ours: impl FnMut() -> Duration) -> Figure {
    let rounds = rounds(|| (ours(), floor(program)));
    let micros = |took: Duration| took.as_secs_f64() * 1e6;
    let ours = rounds.iter().map(|(ours, _)| micros(*ours)).fold(f64::INFINITY, f64::min);
    let floor = rounds.iter().map(|(_, floor)| micros(*floor)).fold(f64::INFINITY, f64::min);
    Figure { case: case.to_owned(), ours, floor, unit: "us", ratio: ours / floor }
}

/// One pass over every name.
fn floor(program: &Program) -> Duration {
    timed(|| {
        let mut seen: HashMap<&str, u32> = HashMap::new();
        for scan in program.steps().map(|step| &*step.scan) {
            for name in scan.reads.iter().chain(&scan.builtin_reads).chain(&scan.writes) {
                *seen.entry(name).or_default() += 1;
            }
        }
        black_box(seen.len())
    })
    .0
}

fn program() -> Option<Program> {
    filled(&names(), (0..STEPS).map(scan).collect())
}

fn names() -> Vec<String> {
    (0..STEPS).map(|at| format!("step{at}")).collect()
}

/// A program of these steps. Their sources are short: only the scans count.
fn filled(names: &[String], scans: Vec<Scan>) -> Option<Program> {
    let mut program = Program::new();
    for (name, scan) in names.iter().zip(scans) {
        program.push_scanned(name, name, scan).ok()?;
    }
    Some(program)
}

/// A step like those that agents write: most bind a new name from two earlier ones and print; some
/// define a function, call one, change a list or rebind a common name.
fn scan(at: usize) -> Scan {
    let mut scan = Scan::default();
    let value = |at: usize| format!("v{at}");
    scan.builtin_reads.extend(["len".to_owned(), "print".to_owned()]);
    if at.is_multiple_of(50) {
        let name = format!("f{}", at / 50);
        let mut loads = NameSet::from_iter(["np", "limit"]);
        if let Some(before) = (at / 50).checked_sub(1) {
            loads.insert(format!("f{}", before - before % 4));
        }
        scan.deferred_reads.extend(&loads);
        scan.summaries.insert(&name, loads);
        scan.writes.insert(name);
    } else {
        scan.reads.extend([value(at - 1), value(at - at % 50 + 1), "np".to_owned()]);
        if at.is_multiple_of(3) {
            scan.reads.insert(format!("f{}", at / 50));
        }
        if at.is_multiple_of(10) {
            scan.mutates.insert(value(at - at % 50 + 1));
        }
        if at % 200 == 1 {
            scan.writes.extend(["df".to_owned(), "np".to_owned(), "limit".to_owned()]);
        } else if at.is_multiple_of(7) {
            scan.reads.insert("df");
        }
    }
    scan.writes.insert(value(at));
    scan.sure_writes = scan.writes.clone();
    scan
}
