//! How many steps the repair of a long program runs, beside the fewest possible. The target: at most
//! 1.2 times as many.
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use harness::esg::{Blobs, CodeGraph, Patch, Program};

use super::Figure;
use super::esg_replay::{STEPS, source};
use super::python::{Result, brief, interpreter, or_failed, worker};

/// What makes a step fail before it does anything else.
const FAULTS: [&str; 4] =
    ["scale = weigth\n", "scale = 1 / 0\n", "scale = {'v': 1}['w']\n", "scale = 'rows' + 1\n"];

/// Runs a program after every repair, and counts the steps that cannot be kept: whose source, or a value
/// that they read before they ended or failed, is another one than when they last ran.
const FEWEST: &str = "
import contextlib, io, json, sys
class Names(dict):
    def __getitem__(self, name):
        if name not in bound:
            read.setdefault(name, repr(names.get(name)))
        return names[name]
    def __setitem__(self, name, value):
        bound.add(name)
        names[name] = value
def nested(code):
    inner = [one for one in code.co_consts if hasattr(one, 'co_names')]
    return {name for one in inner for name in {*one.co_names, *nested(one)}}
last, counts = {}, []
for sources in json.load(sys.stdin):
    names, count = {}, 0
    for step, source in enumerate(sources):
        code, read, bound = compile(source, 'step', 'exec'), {}, set()
        before = {name: repr(names.get(name)) for name in nested(code)}
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            exec(code, names, Names())
            read.update(before)
        names.pop('__builtins__', None)
        count += last.get(step) != (source, read)
        last[step] = source, read
    counts.append(count)
print(json.dumps(counts))
";

pub(super) fn repairs() -> Vec<Figure> {
    or_failed("esg-repair", figures())
}

fn figures() -> Result<Vec<Figure>> {
    let rounds = if brief() { 2 } else { 20 };
    let mut sources: Vec<String> =
        (0..STEPS).map(|at| source(at, 1).replace("6000000", "60000")).collect();
    let faulty: Vec<usize> = (0..rounds).map(|round| 2 + round * (STEPS - 3) / rounds).collect();
    for (at, fault) in faulty.iter().zip(FAULTS.iter().cycle()) {
        sources[*at].insert_str(0, fault);
    }
    let mut program = Program::new();
    for (at, source) in sources.iter().enumerate() {
        program.push(&format!("s{at}"), source)?;
    }
    let mut graph = CodeGraph::new(program, worker()?, Blobs::memory());
    graph.replay()?;
    let (mut versions, mut ran) = (vec![sources.clone()], Vec::new());
    for (at, fault) in faulty.iter().zip(FAULTS.iter().cycle()) {
        graph.edit(|program| {
            program.patch(&Patch::search_replace(&format!("s{at}"), fault, "")).map(drop)
        })?;
        ran.push(graph.replay()?.executed().count());
        sources[*at] = sources[*at].replacen(fault, "", 1);
        versions.push(sources.clone());
    }
    if !graph.verify()?.same {
        return Err("the state differs from that of a full run".into());
    }
    let fewest = fewest(&versions)?;
    if std::env::var_os("HARNESS_MEASURE_ROUNDS").is_some() {
        let mut text = String::new();
        for (ours, fewest) in ran.iter().zip(&fewest) {
            write!(text, " {ours}/{fewest}")?;
        }
        eprintln!("measure: esg-repair:{text}");
    }
    let per = f64::from(u32::try_from(rounds)?);
    let (ours, floor) =
        (ran.iter().sum::<usize>() as f64 / per, fewest.iter().sum::<usize>() as f64 / per);
    let case = "esg-repair".to_owned();
    Ok(vec![Figure { case, ours, floor, unit: "steps/repair", ratio: ours / floor }])
}

/// The fewest steps that each version after the first has to run.
fn fewest(versions: &[Vec<String>]) -> Result<Vec<usize>> {
    let mut child = Command::new(interpreter()?)
        .args(["-P", "-s", "-S", "-B", "-c", FEWEST])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no pipe")?.write_all(&serde_json::to_vec(versions)?)?;
    let output = child.wait_with_output()?;
    let counts: Vec<usize> = serde_json::from_slice(&output.stdout)?;
    Ok(counts.into_iter().skip(1).collect())
}
