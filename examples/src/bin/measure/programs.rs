//! Real programs and their edits, from a directory: what a replay ran and whether it was right.
//!
//! `ESG_PROGRAMS` is a directory of files `pNN.py` with `NAME`, `SRC` (cells) and `EDITS`, by default that
//! of `examples/programs/edited`; the data that they read is in its folder `data` or in `ESG_DATA`.
//! `ESG_PYTHON` is an interpreter with the packages that the programs import, by default that of the
//! virtual environment `HARNESS_VENV`. `ESG_ONLY` selects files by parts of their names. Each edit starts
//! at the program as written. What it ran and took, and what went wrong, is printed to the standard
//! error, an edit a line.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use harness::esg::{Blobs, CPython, CodeGraph, Limits, Trust, WorkerProcess};
use serde::Deserialize;

use super::Figure;
use super::python::{Result, brief, or_failed};

/// Beside a plain run of the edited program, in the same minute.
pub(super) fn programs() -> Vec<Figure> {
    match interpreter() {
        Some(python) => or_failed("esg-programs", figures(&python)),
        None => {
            eprintln!("measure: esg-programs: set `ESG_PYTHON` or `HARNESS_VENV`");
            Vec::new()
        }
    }
}

fn interpreter() -> Option<PathBuf> {
    let venv = || env::var_os("HARNESS_VENV").map(|venv| PathBuf::from(venv).join("bin/python"));
    env::var_os("ESG_PYTHON").map(PathBuf::from).or_else(venv)
}

/// A program of the collection.
#[derive(Deserialize)]
struct Source {
    name: String,
    cells: Vec<(String, String)>,
    edits: Vec<Edit>,
}

/// An edit of it: the edited program, and the cells that a person would run again.
#[derive(Deserialize)]
struct Edit {
    label: String,
    cells: Vec<(String, String)>,
    minimal: BTreeSet<String>,
}

/// Reads a program, applies each of its edits, and prints them.
const READ: &str = "
import json, re, runpy, sys
held, data = runpy.run_path(sys.argv[1]), sys.argv[2]
def cut(text):
    found, name = {}, None
    for line in text.replace('@DATA@', data).strip('\\n').splitlines(True):
        if line.startswith('# %% '):
            name = line[5:].strip()
            found[name] = ''
        elif name is not None:
            found[name] += line
    return found
def place(cells, name, source, before):
    rest = [(n, s) for n, s in cells.items() if n != name]
    at = [n for n, _ in rest].index(before) if before else len(rest)
    return dict(rest[:at] + [(name, source)] + rest[at:])
def edited(operations):
    cells = cut(held['SRC'])
    for what, *args in operations:
        args = [a.replace('@DATA@', data) if type(a) is str else a for a in args]
        if what == 'sub':
            assert args[1] in cells[args[0]], args
            cells[args[0]] = cells[args[0]].replace(args[1], args[2])
        elif what == 'insert':
            cells = place(cells, args[1], args[2], args[0])
        elif what == 'delete':
            del cells[args[0]]
        elif what == 'move':
            cells = place(cells, args[0], cells[args[0]], args[1])
        elif what == 'replace':
            cells[args[0]] = args[1]
    return cells
pairs = lambda cells: [[n, s] for n, s in cells.items()]
json.dump({'name': held['NAME'], 'cells': pairs(cut(held['SRC'])), 'edits': [
    {'label': label, 'cells': pairs(edited(operations)), 'minimal': sorted(minimal)}
    for label, operations, minimal in held['EDITS']]}, sys.stdout)
";

/// A program's output and files.
struct Left {
    wall: Duration,
    stdout: Vec<u8>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// The sums over all edits.
#[derive(Default)]
struct Sums {
    edits: u32,
    wrong: u32,
    whole: u32,
    ran: usize,
    minimal: usize,
    all: usize,
    replays: Duration,
    plain: Duration,
    firsts: Vec<f64>,
    slow: u32,
}

/// The most that a first run may take beside a plain run.
fn allowed(plain: Duration, steps: usize) -> Duration {
    const A_STEP: Duration = Duration::from_millis(20);
    plain.mul_f64(1.3) + A_STEP * u32::try_from(steps).unwrap_or(u32::MAX)
}

fn figures(python: &Path) -> Result<Vec<Figure>> {
    let ours = || concat!(env!("CARGO_MANIFEST_DIR"), "/programs/edited").into();
    let dir = env::var_os("ESG_PROGRAMS").map_or_else(ours, PathBuf::from);
    let data = env::var("ESG_DATA").map_or_else(|_| dir.join("data"), PathBuf::from);
    // Programs may make their own data.
    let data = if data.is_dir() { data } else { dir.clone() };
    let only = env::var("ESG_ONLY").unwrap_or_default();
    let mut files: Vec<PathBuf> = fs::read_dir(&dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix('p').and_then(|name| name.strip_suffix(".py"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
            && (only.is_empty() || only.split(',').any(|only| name.contains(only)))
    });
    files.sort();
    if files.is_empty() {
        return Err(format!("no program in {}", dir.display()).into());
    }
    let mut sums = Sums::default();
    for file in files.iter().take(if brief() { 1 } else { usize::MAX }) {
        let output = Command::new(python)
            .args(["-c", READ])
            .arg(file)
            .arg(fs::canonicalize(&data)?)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        if let Err(error) =
            measure(&serde_json::from_slice(&output.stdout)?, python, &data, &mut sums)
        {
            eprintln!("  {}: {error}", file.display());
            sums.wrong += 1;
        }
    }
    sums.firsts.sort_by(f64::total_cmp);
    let count = |case: &str, ours: f64, floor: f64, unit| Figure {
        case: format!("esg-programs {case}"),
        ours,
        floor,
        unit,
        ratio: ours / floor,
    };
    let edits = f64::from(sums.edits);
    Ok(vec![
        count("wrong", f64::from(sums.wrong), edits, "edits"),
        count("run everything", f64::from(sums.whole), edits, "edits"),
        count("ran/minimal", sums.ran as f64, sums.minimal as f64, "steps"),
        count("ran/all", sums.ran as f64, sums.all as f64, "steps"),
        count("replays/plain", sums.replays.as_secs_f64(), sums.plain.as_secs_f64(), "s"),
        count(
            "first run",
            sums.firsts.get(sums.firsts.len() / 2).copied().unwrap_or(0.0),
            1.0,
            "of plain, median",
        ),
        count(
            "slow first runs",
            f64::from(sums.slow),
            sums.firsts.len() as f64,
            "beyond 1.3 of plain + 20 ms a step",
        ),
    ])
}

fn measure(source: &Source, python: &Path, data: &Path, sums: &mut Sums) -> Result<()> {
    let worker = worker(python, data)?;
    let scratch = worker.scratch();
    let mut graph = CodeGraph::new(harness::esg::Program::new(), worker, Blobs::memory());
    let bare = plain(&source.cells, python)?;
    change(&mut graph, &source.cells)?;
    let begun = Instant::now();
    let report = graph.replay()?;
    let first = begun.elapsed();
    let wrong = differences(&mut graph, &source.cells, &scratch, &bare)?;
    let per = first.as_secs_f64() / bare.wall.as_secs_f64();
    eprintln!(
        "{} first {:.2} s, plain {:.2} s, {per:.2} times{}{}",
        source.name,
        first.as_secs_f64(),
        bare.wall.as_secs_f64(),
        said(&report),
        wrong.iter().map(|what| format!("\n    WRONG {what}")).collect::<String>()
    );
    sums.firsts.push(per);
    sums.slow += u32::from(first > allowed(bare.wall, source.cells.len()));
    for edit in &source.edits {
        let bare = plain(&edit.cells, python)?;
        change(&mut graph, &edit.cells)?;
        let begun = Instant::now();
        let report = graph.replay()?;
        let took = begun.elapsed();
        let ran: BTreeSet<String> = report.executed().map(|step| step.to_string()).collect();
        let wrong = differences(&mut graph, &edit.cells, &scratch, &bare)?;
        let whole = ran.len() == edit.cells.len() && edit.minimal.len() < ran.len();
        let beyond: Vec<_> = ran.difference(&edit.minimal).map(String::as_str).collect();
        eprintln!(
            "  {:<18} ran {:>2} of {:>2}, minimal {:>2}, {:.2} s of {:.2} s{}{}{}{}",
            edit.label,
            ran.len(),
            edit.cells.len(),
            edit.minimal.len(),
            took.as_secs_f64(),
            bare.wall.as_secs_f64(),
            if whole { ", everything" } else { "" },
            if beyond.is_empty() {
                String::new()
            } else {
                format!(" (also {})", beyond.join(", "))
            },
            said(&report),
            wrong.iter().map(|what| format!("\n    WRONG {what}")).collect::<String>()
        );
        sums.edits += 1;
        sums.wrong += u32::from(!wrong.is_empty());
        sums.whole += u32::from(whole);
        sums.ran += ran.len();
        sums.minimal += edit.minimal.len();
        sums.all += edit.cells.len();
        sums.replays += took;
        sums.plain += bare.wall;
        change(&mut graph, &source.cells)?;
        graph.replay()?;
    }
    Ok(())
}

/// What the replay says of untracked operations.
fn said(report: &harness::esg::Report) -> String {
    let found: BTreeSet<String> =
        report.untracked.iter().map(|(step, what)| format!("{step}: {what}")).collect();
    let lines = found.iter().map(|what| format!("\n    untracked {what}"));
    let widened = (report.widened > 0).then(|| format!(" (widened {})", report.widened));
    widened.into_iter().chain(lines).collect()
}

/// Makes the program consist of `cells`.
fn change(graph: &mut CodeGraph, cells: &[(String, String)]) -> Result<()> {
    graph.edit(|program| {
        let have: Vec<_> = program.steps().map(|step| step.id.clone()).collect();
        for id in &have {
            if !cells.iter().any(|(name, _)| **name == **id) {
                program.remove(id)?;
            }
        }
        for (name, source) in cells {
            let known = program.step(name).map(|step| *step.source == **source);
            match known {
                Ok(true) => {}
                Ok(false) => drop(program.replace(name, source)?),
                Err(_) => drop(program.push(name, source)?),
            }
        }
        for (at, (name, _)) in cells.iter().enumerate() {
            if program.position(name) != Some(at) {
                let there = program.steps().nth(at).map(|step| step.id.clone());
                if let Some(there) = there {
                    program.move_before(name, &there)?;
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// How the state, the output and the files differ from those of a full run.
fn differences(
    graph: &mut CodeGraph,
    cells: &[(String, String)],
    scratch: &Path,
    bare: &Left,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut stdout = Vec::new();
    for (name, _) in cells {
        let Some(execution) = graph.execution(name) else {
            found.push(format!("{name} did not run"));
            continue;
        };
        if !execution.ending.is_ok() {
            found.push(format!("{name} failed: {}", execution.ending));
        }
        stdout.extend_from_slice(&execution.stdout.bytes);
    }
    if stdout != bare.stdout {
        found.push("the output differs from that of a plain run".to_owned());
    }
    let ours = collect(scratch)?;
    for path in ours.keys().chain(bare.files.keys()).collect::<BTreeSet<_>>() {
        if ours.get(path) != bare.files.get(path) {
            found.push(format!("the file {} differs from that of a plain run", path.display()));
        }
    }
    let verdict = graph.verify()?;
    found.extend(verdict.differences);
    Ok(found)
}

/// The files below a directory, without caches.
fn collect(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(here) = open.pop() {
        for entry in fs::read_dir(&here)? {
            let path = entry?.path();
            let hidden =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if path.is_dir() && !hidden && !path.ends_with("__pycache__") {
                open.push(path);
            } else if path.is_file() {
                found.insert(path.strip_prefix(dir)?.to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

/// Runs the program as one file.
fn plain(cells: &[(String, String)], python: &Path) -> Result<Left> {
    let (source, work) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let file = source.path().join("program.py");
    let mut text = String::new();
    // A cell may begin with an import from the future.
    let (early, rest): (Vec<_>, Vec<_>) = cells
        .iter()
        .flat_map(|(_, cell)| cell.lines())
        .partition(|line| line.starts_with("from __future__"));
    early.iter().chain(&rest).for_each(|line| {
        text.push_str(line);
        text.push('\n');
    });
    fs::write(&file, text)?;
    let begun = Instant::now();
    let output = Command::new(python)
        .args(["-B"])
        .arg(&file)
        .env_clear()
        .env("PYTHONHASHSEED", "0")
        .env("HOME", work.path())
        .env("TMPDIR", work.path())
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC")
        .current_dir(work.path())
        .output()?;
    let wall = begun.elapsed();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(Left { wall, stdout: output.stdout, files: collect(work.path())? })
}

fn worker(python: &Path, data: &Path) -> Result<WorkerProcess> {
    let wall = Duration::from_secs(600);
    let limits = Limits {
        wall,
        cpu: wall,
        service: wall,
        address_space: 8 << 30,
        open_files: 256,
        ..Limits::default()
    };
    Ok(CPython::at(python).limits(limits).read_only(data).trust(Trust::Mine).start()?)
}
