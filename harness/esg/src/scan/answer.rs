//! Combines the two walks into a `Scan`.

mod parts;

use self::parts::Parts;
use super::beside::roomy;
use super::declare::{Declared, declare};
use super::flow::Flow;
use super::identity::{Identity, of_text};
use super::names::{Known, Name};
use super::parse::{self, Fault, Lines, Ranged, Stmt, TextRange, Tree, ast, numbered};
use super::scope::{ASSIGNED, Kind, LOADED, ScopeId};
use super::state::{BOUND, global};
use super::value::{Tag, number, tag};
use super::{Definition, NameMap, NameSet, Scan, SyntaxError};

/// The number of origins that the precise walk may visit: a constant, and one for so many bytes of
/// source. Beyond it the coarse walk is used.
const BUDGET: usize = 4_000;
const BYTES: usize = 2;
/// The size above which a source gets the coarse walk at once, in bytes.
const LARGE: usize = 64 << 10;
/// The size above which two threads scan a source in parts, in bytes. Below it, waiting for a
/// thread on a busy machine costs more than is gained on an idle one. Ten thousand lines are above it.
const PARTED: usize = 192 << 10;

/// Scans a step.
pub(super) fn of(source: &str) -> Scan {
    answer(source, PARTED)
}

/// Scans a step, in parts if it is larger than `whole` bytes.
pub(super) fn answer(source: &str, whole: usize) -> Scan {
    let parts = if source.len() > whole { parts::read(source) } else { Parts::No };
    let mut tree = match parts {
        Parts::Read(scan) => return *scan,
        Parts::Deep(tree) => tree,
        Parts::No => parse::parse(source),
    };
    if !tree.deep {
        return read(source, &mut tree);
    }
    // Deep trees are walked and dropped on a thread with a large stack.
    let work = move || {
        if let Some(fault) = parse::cut_chains(&mut tree.module) {
            tree.faults.push(fault);
        }
        read(source, &mut tree)
    };
    roomy(work).unwrap_or_else(|| refused(source))
}

/// The result if the tree cannot be walked.
fn refused(source: &str) -> Scan {
    let message = "the step is nested too deeply".to_owned();
    let error = SyntaxError { message, line: 1, column: 1 };
    Scan { opaque: true, errors: vec![error], syntax: of_text(source), ..Scan::default() }
}

fn read(source: &str, tree: &mut Tree) -> Scan {
    let parsed = tree.faults.is_empty();
    let mut identity = Identity::new(source);
    // The statement is still in the cache.
    let declared = declare(tree.module.body.iter(), source, |statement| {
        if parsed {
            identity.add(statement);
        }
    });
    let faults = tree.faults.drain(..);
    walked(source, declared, faults, &[&tree.module.body], || identity.done())
}

/// The result after the first walk, for a module in these parts and of this identity.
pub(super) fn walked<'a>(
    source: &'a str,
    declared: Declared<'a>,
    faults: impl Iterator<Item = Fault>,
    module: &[&'a [Stmt]],
    identity: impl FnOnce() -> ([u8; 32], Vec<[u8; 32]>),
) -> Scan {
    let Declared { names, scopes, faults: more, imports, stars, future } = declared;
    let faults: Vec<Fault> = faults.chain(more).collect();
    let mut flow = Flow::new(names, scopes, future, BUDGET + source.len() / BYTES, of);
    let mut scan = Scan::default();
    let large = source.len() > LARGE;
    if !large {
        module.iter().for_each(|part| flow.body(part));
        sets(&mut flow, &mut scan);
        flow.share(&mut scan);
    }
    if large || flow.spent() {
        // The precise walk gave up, so its result is incomplete. The coarse walk always completes.
        scan = Scan::default();
        flow = Flow::new(flow.names, flow.scopes, future, 0, of);
        module.iter().for_each(|part| flow.coarsely(part));
        sets(&mut flow, &mut scan);
        flow.presume(&mut scan);
    }
    if flow.opaque {
        // Unknown code may unbind any name.
        scan.sure_writes = NameSet::default();
    }
    scan.channels = std::mem::take(&mut flow.channels);
    scan.opaque |= flow.opaque || !stars.is_empty();
    scan.star_imports.extend(stars);
    let legal = faults.is_empty();
    let (syntax, parts) = if legal { identity() } else { (of_text(source), Vec::new()) };
    scan.syntax = syntax;
    let tops = module.iter().copied().flatten().filter(|one| definition(one).is_some());
    if !legal || !imports.is_empty() || tops.clone().next().is_some() {
        let lines = Lines::new(source);
        for (mut import, range) in imports {
            import.line = lines.line(range.start());
            scan.imports.push(import);
        }
        let mut loaded = Vec::new();
        for (at, statement) in tops.enumerate() {
            let hash = parts.get(at).copied();
            scan.definitions.extend(defined(&flow, statement, &lines, source, hash, &mut loaded));
        }
        scan.errors = errors(faults, &lines);
    }
    scan.summaries = summaries(&flow);
    scan
}

/// Fills in the sets of names.
fn sets(flow: &mut Flow<'_>, scan: &mut Scan) {
    let frame = std::mem::take(&mut flow.frame);
    flow.names.rank();
    let names = &flow.names;
    let read = |known: Known| {
        frame.reads.list().iter().copied().filter(move |&name| names.known(name) == known)
    };
    scan.reads = names.set(read(Known::No));
    let builtins = frame.builtins.list().iter().copied();
    scan.builtin_reads = names.set(read(Known::Builtin).chain(builtins));
    scan.writes = names.set(frame.writes.list().iter().copied());
    scan.deletes = names.set(frame.deletes.list().iter().copied());
    for (found, to) in [(&frame.mutates, &mut scan.mutates), (&frame.escapes, &mut scan.escapes)] {
        let found = found.iter().filter(|one| matches!(tag(**one), Tag::Incoming | Tag::Imported));
        *to = names.set(found.map(|one| number(*one)));
    }
    let mut late: Vec<Name> = frame.late.list().to_vec();
    let mut later: Vec<Name> = Vec::new();
    for &scope in frame.created.list() {
        if !frame.executed.contains(scope) {
            late.extend(loads(flow, scope));
            later.extend(flow.scopes.globals(scope, ASSIGNED));
        }
    }
    late.sort_unstable();
    late.dedup();
    late.retain(|&name| {
        let sure = flow.state.get(global(name)).bits == BOUND;
        !sure && flow.names.known(name) == Known::No && !frame.reads.contains(name)
    });
    scan.deferred_reads = flow.names.set(late.into_iter());
    let again = later.iter().copied().filter(|&name| frame.writes.contains(name));
    scan.rebinds = flow.names.set(again);
    later.retain(|&name| !frame.writes.contains(name));
    scan.deferred_writes = flow.names.set(later.into_iter());
    let mut sure: Vec<Name> = frame.writes.list().to_vec();
    sure.retain(|&name| {
        let bound = flow.state.get(global(name)).bits == BOUND;
        bound && !(flow.coarse.on && flow.may_be_unbound(name))
    });
    scan.sure_writes = flow.names.set(sure.into_iter());
    flow.frame = frame;
}

/// The globals that a body loads before it binds them.
fn loads(flow: &mut Flow<'_>, scope: ScopeId) -> Vec<Name> {
    let mut all: Vec<Name> = flow.scopes.globals(scope, LOADED).collect();
    let bound: Vec<Name> = flow.scopes.globals(scope, ASSIGNED).collect();
    if bound.iter().any(|name| all.contains(name)) {
        // It binds some of them itself. Only a walk shows whether it does so first.
        let summary = flow.summary(scope);
        all.retain(|&name| !bound.contains(&name) || summary.frame.reads.contains(name));
    }
    all
}

/// The name that a definition at the top of a step binds.
fn definition(statement: &Stmt) -> Option<(&ast::Identifier, TextRange, Option<u32>)> {
    match statement {
        Stmt::FunctionDef(node) => Some((&node.name, node.range, numbered(&node.node_index))),
        Stmt::ClassDef(node) => Some((&node.name, node.range, numbered(&node.node_index))),
        _ => None,
    }
}

fn defined(
    flow: &Flow<'_>,
    statement: &Stmt,
    lines: &Lines<'_>,
    source: &str,
    hash: Option<[u8; 32]>,
    loaded: &mut Vec<Name>,
) -> Option<Definition> {
    let (name, range, _) = definition(statement)?;
    let last = range.end().to_usize();
    let bytes = range.start().to_usize()..last;
    let (from, to) = (lines.line(range.start()), lines.line(range.end()));
    loaded.clear();
    let inner =
        parse::names_around(statement, &mut |symbol| match flow.scopes.symbol(symbol).target {
            super::scope::Target::Global(name) | super::scope::Target::Class(_, name) => {
                loaded.push(name);
            }
            _ => {}
        });
    if let Some(scope) = inner {
        loaded.extend(flow.scopes.globals(scope, LOADED));
    }
    let loaded = loaded.iter().copied().filter(|&name| flow.names.known(name) == Known::No);
    let references = flow.names.set(loaded);
    let syntax = hash.unwrap_or_else(|| of_text(source.get(bytes.clone()).unwrap_or_default()));
    Some(Definition {
        name: name.id.to_string(),
        lines: from..=to,
        range: bytes,
        references,
        syntax,
    })
}

/// What the bodies of each top-level function and class load.
fn summaries(flow: &Flow<'_>) -> NameMap {
    let mut definitions = flow.definitions.clone();
    definitions.sort_unstable();
    let mut loaded = Vec::new();
    let of_one = definitions.chunk_by(|(a, _), (b, _)| a == b).filter_map(|all| {
        loaded.clear();
        all.iter().for_each(|(_, scope)| loads_later(flow, *scope, &mut loaded));
        let loaded = loaded.iter().copied().filter(|&name| flow.names.known(name) == Known::No);
        Some((all.first()?.0, flow.names.set(loaded)))
    });
    flow.names.map(of_one.collect())
}

/// The globals that the bodies of a function or class load.
fn loads_later(flow: &Flow<'_>, scope: ScopeId, to: &mut Vec<Name>) {
    let own = flow.scopes.scope(scope);
    if own.kind != Kind::Class {
        return to.extend(flow.scopes.globals(scope, LOADED));
    }
    // The code of a class runs where it is defined. What it defines runs later.
    let mut inner = scope + 1;
    while inner < own.end {
        let found = flow.scopes.scope(inner);
        if found.kind == Kind::Class || found.kind == Kind::Type {
            inner += 1;
        } else {
            to.extend(flow.scopes.globals(inner, LOADED));
            inner = found.end;
        }
    }
}

fn errors(faults: Vec<Fault>, lines: &Lines<'_>) -> Vec<SyntaxError> {
    let mut faults = faults;
    faults.sort_by_key(|(_, range)| range.start());
    let mut errors: Vec<SyntaxError> = Vec::with_capacity(faults.len());
    for (message, range) in faults {
        let (line, column) = lines.at(range.start());
        let error = SyntaxError { message, line, column };
        if errors.last() != Some(&error) {
            errors.push(error);
        }
    }
    errors
}
