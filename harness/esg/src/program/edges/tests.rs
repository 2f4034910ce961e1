use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::program::{Part, Program};
use crate::scan::{NameMap, NameSet, Scan};

/// A scan from a line such as `r:a,b w:c s:c f=k,l`: reads, writes, surely written, deletes,
/// mutates, escapes, `x` for opaque, `q` deferred writes, `p` deferred mutations, `NAME=LOADS` for
/// functions, `NAME~NAMES` for aliases.
fn scan(line: &str) -> Scan {
    let mut scan = Scan::default();
    for word in line.split_whitespace() {
        let set = |text: &str| -> NameSet { text.split(',').filter(|n| !n.is_empty()).collect() };
        if let Some((name, loads)) = word.split_once('=') {
            scan.summaries.insert(name, set(loads));
            scan.writes.insert(name);
        } else if let Some((name, others)) = word.split_once('~') {
            scan.aliases.insert(name, set(others));
        } else {
            let (kind, names) = word.split_once(':').unwrap_or((word, ""));
            match kind {
                "r" => scan.reads = set(names),
                "b" => scan.builtin_reads = set(names),
                "w" => scan.writes.extend(&set(names)),
                "s" => {
                    scan.sure_writes = set(names);
                    scan.writes.extend(&set(names));
                }
                "d" => scan.deletes = set(names),
                "m" => scan.mutates = set(names),
                "e" => scan.escapes = set(names),
                "l" => scan.deferred_reads = set(names),
                "q" => scan.deferred_writes = set(names),
                "p" => scan.deferred_mutates = set(names),
                "x" => scan.opaque = true,
                other => panic!("{other}"),
            }
        }
    }
    scan
}

fn program(lines: &[&str]) -> Program {
    let mut program = Program::new();
    for (at, line) in lines.iter().enumerate() {
        program.push_scanned(&format!("s{at}"), line, scan(line)).unwrap();
    }
    program
}

/// The edges, each as `producer>reader names`, with a character for kinds other than flow.
fn shown(edges: impl IntoIterator<Item = Edge>) -> Vec<String> {
    edges
        .into_iter()
        .map(|edge| {
            let kind = match edge.kind {
                EdgeKind::Flow => "",
                EdgeKind::LateBound => " late",
                EdgeKind::Alias => " alias",
                EdgeKind::Order => " order",
            };
            let names: Vec<String> = edge
                .channels
                .iter()
                .map(|channel| channel.as_name().map_or(channel.to_string(), str::to_owned))
                .collect();
            format!("{}>{} {}{kind}", edge.producer, edge.reader, names.join(","))
        })
        .collect()
}

fn all(lines: &[&str]) -> Vec<String> {
    shown(program(lines).edges().iter())
}

fn names(origins: Vec<Origin>) -> Vec<String> {
    origins.iter().map(Origin::to_string).collect()
}

#[test]
fn a_sure_binding_hides_what_was_before_and_a_possible_one_does_not() {
    assert_eq!(all(&["s:x", "s:x", "r:x"]), ["s1>s2 x"]);
    assert_eq!(all(&["s:x", "w:x", "r:x"]), ["s0>s2 x", "s1>s2 x"]);
    assert_eq!(all(&["s:x", "r:x s:x", "r:x"]), ["s0>s1 x", "s1>s2 x"]);
    assert_eq!(all(&["r:x", "s:x"]), [""; 0]);
}

#[test]
fn what_changes_an_object_comes_in_between() {
    assert_eq!(all(&["s:xs", "r:xs m:xs", "r:xs"]), ["s0>s1 xs", "s0>s2 xs", "s1>s2 xs"]);
    assert_eq!(all(&["s:xs", "r:xs e:xs", "r:xs"]), ["s0>s1 xs", "s0>s2 xs", "s1>s2 xs"]);
    assert_eq!(all(&["s:x", "r:x d:x", "r:x"]), ["s0>s1 x", "s0>s2 x", "s1>s2 x"]);
}

#[test]
fn an_object_is_changed_under_all_its_names() {
    assert_eq!(
        all(&["s:a", "r:a s:b b~a", "r:b m:b", "r:a"]),
        ["s0>s1 a", "s0>s2 a alias", "s1>s2 b", "s0>s3 a", "s2>s3 a"]
    );
    // Before they share it, they do not.
    assert_eq!(all(&["s:a", "s:b", "r:b m:b", "r:a", "b~a"]), ["s1>s2 b", "s0>s3 a"]);
}

#[test]
fn a_call_reads_what_the_function_loads_where_it_is_called() {
    let late = ["f=k", "s:k", "r:f s:a", "s:k", "r:f s:b"];
    assert_eq!(all(&late), ["s0>s2 f", "s1>s2 k late", "s0>s4 f", "s3>s4 k late"]);
    // Through others, and through one that is bound again.
    let chain = ["f=g", "g=k", "s:k", "r:f", "s:g g=m", "s:m", "r:f"];
    assert_eq!(
        all(&chain),
        ["s0>s3 f", "s1>s3 g late", "s2>s3 k late", "s0>s6 f", "s4>s6 g late", "s5>s6 m late",]
    );
    // A function that the calling step defines itself is called by one from before.
    assert_eq!(all(&["f=g", "s:k", "r:f g=k"]), ["s0>s2 f", "s1>s2 k late"]);
    // Itself, and each other.
    assert_eq!(all(&["f=f,g g=f", "r:f"]), ["s0>s1 f", "s0>s1 g late"]);
    // A lambda has no summary of its own.
    assert_eq!(all(&["w:h l:k", "s:k", "r:h"]), ["s0>s2 h", "s1>s2 k late"]);
}

#[test]
fn a_call_writes_what_the_function_binds() {
    assert_eq!(
        all(&["s:total", "add=total q:total", "r:add", "r:total"]),
        ["s0>s2 total late", "s1>s2 add", "s0>s3 total", "s2>s3 total"]
    );
    assert_eq!(
        all(&["s:log", "add= p:log", "r:add", "r:log"]),
        ["s0>s2 log alias", "s1>s2 add", "s0>s3 log", "s2>s3 log"]
    );
}

#[test]
fn a_builtin_is_read_from_the_step_that_binds_its_name() {
    assert_eq!(all(&["b:len", "s:len", "b:len"]), ["s1>s2 len"]);
}

#[test]
fn an_opaque_step_depends_on_all_before_and_all_after_depend_on_it() {
    assert_eq!(all(&["s:a", "x", "s:b"]), ["s0>s1 *", "s1>s2 *"]);
    let program = program(&["s:a", "s:b", "x", "r:a", "s:c"]);
    let edges = program.edges();
    assert_eq!(
        edges.from("s0").unwrap().iter().map(|id| &**id).collect::<Vec<_>>(),
        ["s2", "s3", "s4"]
    );
    assert_eq!(names(edges.ancestors("s4", None).unwrap()), ["s0", "s1", "s2"]);
    assert_eq!(shown(edges.of("s2").unwrap()), ["s2>s3 *", "s2>s4 *"]);
}

#[test]
fn inputs_come_before_all_steps() {
    let mut program = program(&["r:rows s:a", "r:a"]);
    program.input("rows", json!([1])).unwrap();
    let edges = program.edges();
    assert_eq!(shown(edges.into("s0").unwrap()), ["input rows>s0 rows"]);
    assert_eq!(shown(edges.of_input("rows")), ["input rows>s0 rows"]);
    assert_eq!(names(edges.ancestors("s1", None).unwrap()), ["input rows", "s0"]);
    assert_eq!(edges.after_input("rows").len(), 2);
    program.input("a", json!(1)).unwrap();
    assert_eq!(shown(program.edges().into("s1").unwrap()), ["s0>s1 a"]);
    program.remove("s0").unwrap();
    assert_eq!(shown(program.edges().into("s1").unwrap()), ["input a>s1 a"]);
}

#[test]
fn ancestors_may_be_asked_for_some_names() {
    let program = program(&["s:a", "s:b", "r:a s:c", "r:b s:d", "r:c,d"]);
    let edges = program.edges();
    assert_eq!(names(edges.ancestors("s4", Some(&["c"])).unwrap()), ["s0", "s2"]);
    assert_eq!(names(edges.ancestors("s4", Some(&["d", "zz"])).unwrap()), ["s1", "s3"]);
    assert!(edges.ancestors("zz", None).is_err());
}

#[test]
fn artifacts_need_artifacts() {
    let mut program = program(&["s:rows", "clean=", "r:rows,clean s:out", "r:out"]);
    program.artifact("code", [Part::symbol("clean")]).unwrap();
    program.artifact("data", [Part::step("s0")]).unwrap();
    program.artifact("report", [Part::step("s3"), Part::symbol("out")]).unwrap();
    let edges = program.edges();
    let needs = |name| {
        let needs = edges.artifact_needs(name).unwrap();
        needs.iter().map(|name| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(needs("report"), ["code", "data"]);
    assert_eq!(needs("code"), [""; 0]);
    let report = edges.artifact("report").unwrap();
    assert_eq!(report.iter().map(|id| &**id).collect::<Vec<_>>(), ["s2", "s3"]);
    assert_eq!(
        edges.artifact("reprot").unwrap_err().to_string(),
        "there is no artifact `reprot` (did you mean `report`?)"
    );
}

#[test]
fn what_is_replaced_must_have_been_used_before() {
    let program = program(&["s:x", "r:x", "s:y", "s:x", "r:x", "d:x"]);
    let edges = program.edges();
    assert_eq!(shown(edges.order_into("s3").unwrap()), ["s0>s3 x order", "s1>s3 x order"]);
    assert_eq!(shown(edges.order_into("s5").unwrap()), ["s3>s5 x order", "s4>s5 x order"]);
}

#[test]
fn what_was_seen_takes_the_place_of_what_may_be() {
    let mut program = program(&["s:a", "s:b", "r:a,b w:c", "r:c"]);
    let name = Entity::name;
    program.observe("s0", Observed::new([], [name("a")])).unwrap();
    program.observe("s2", Observed::new([name("a")], [name("c"), Entity::file("out")])).unwrap();
    let edges: Vec<Edge> = program.edges().into("s2").unwrap();
    assert_eq!(shown(edges.clone()), ["s0>s2 a"]);
    assert_eq!(edges[0].source, EdgeSource::Traced);
    assert_eq!(program.edges().into("s3").unwrap()[0].source, EdgeSource::Static);
    program.observe("s3", Observed::new([Entity::file("out")], [])).unwrap();
    assert_eq!(shown(program.edges().into("s3").unwrap()), ["s2>s3 f:out"]);
    // Other code: the recorded effects are discarded.
    program.replace_scanned("s2", "new", scan("r:b s:c")).unwrap();
    assert_eq!(shown(program.edges().into("s2").unwrap()), ["s1>s2 b"]);
}

#[test]
fn recorded_effects_distinguish_direct_late_and_aliased_use() {
    let mut program = program(&["s:k", "f=k", "s:a", "r:f s:b"]);
    let name = Entity::name;
    let seen = Observed::new([name("f"), name("k")], [name("b")]).altering([name("a")]);
    program.observe("s3", seen).unwrap();
    let edges = shown(program.edges().into("s3").unwrap());
    assert_eq!(edges, ["s0>s3 k late", "s1>s3 f", "s2>s3 a alias"]);
    assert!(program.is_observed("s3"));
    program.unobserve("s3");
    assert!(!program.is_observed("s3"));
    assert_eq!(shown(program.edges().into("s3").unwrap()), ["s0>s3 k late", "s1>s3 f"]);
}

/// Edges and closures computed naively, from scratch for each step.
struct Plain<'a> {
    steps: Vec<(&'a str, &'a Scan)>,
}

impl Plain<'_> {
    fn reaching(&self, writes: &[BTreeMap<String, bool>], at: usize, name: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for before in (0..at).rev() {
            if let Some(sure) = writes[before].get(name) {
                found.push(before);
                if *sure {
                    break;
                }
            }
        }
        found
    }

    fn edges(&self) -> BTreeSet<(usize, usize, String)> {
        let base: Vec<BTreeMap<String, bool>> = self
            .steps
            .iter()
            .map(|(_, s)| {
                let may = s.writes.iter().chain(&s.deletes).chain(&s.mutates).chain(&s.escapes);
                may.map(|name| (name.to_owned(), s.sure_writes.contains(name))).collect()
            })
            .collect();
        let mut writes = base.clone();
        let mut reads: Vec<BTreeSet<String>> = Vec::new();
        for (at, (_, scan)) in self.steps.iter().enumerate() {
            let changed = scan.mutates.iter().chain(&scan.escapes).map(str::to_owned);
            let mut changed: BTreeSet<String> = changed.collect();
            let mut seen: BTreeSet<String> = scan.reads.iter().map(str::to_owned).collect();
            seen.extend(changed.iter().cloned());
            let mut late = BTreeSet::new();
            let mut afar = BTreeSet::new();
            loop {
                let before = (seen.len(), late.len(), changed.len());
                for name in seen.clone() {
                    let mut bodies = self.reaching(&base, at, &name);
                    if late.contains(&name) {
                        bodies.push(at);
                    }
                    for body in bodies {
                        let Some(loads) = self.steps[body].1.summaries.get(&name) else { continue };
                        seen.extend(loads.iter().map(str::to_owned));
                        late.extend(loads.iter().map(str::to_owned));
                        let scan = self.steps[body].1;
                        changed.extend(scan.deferred_mutates.iter().map(str::to_owned));
                        afar.extend(scan.deferred_mutates.iter().map(str::to_owned));
                        changed.extend(scan.deferred_writes.iter().map(str::to_owned));
                        for name in scan.deferred_mutates.iter().chain(&scan.deferred_writes) {
                            writes[at].entry(name.to_owned()).or_insert(false);
                        }
                    }
                }
                if before == (seen.len(), late.len(), changed.len()) {
                    break;
                }
            }
            let links: Vec<(&str, &str)> = self.steps[..=at]
                .iter()
                .flat_map(|(_, scan)| scan.aliases.iter())
                .flat_map(|(bound, shared)| shared.iter().map(move |shared| (bound, shared)))
                .collect();
            let direct = changed.clone();
            loop {
                let before = changed.len();
                for (left, right) in &links {
                    if changed.contains(*left) || changed.contains(*right) {
                        changed.extend([(*left).to_owned(), (*right).to_owned()]);
                    }
                }
                if before == changed.len() {
                    break;
                }
            }
            for name in &changed {
                writes[at].entry(name.clone()).or_insert(false);
            }
            seen.extend(changed.difference(&direct).cloned());
            seen.extend(afar);
            reads.push(seen);
        }
        let mut edges = BTreeSet::new();
        for (at, seen) in reads.iter().enumerate() {
            for name in seen {
                for producer in self.reaching(&writes, at, name) {
                    edges.insert((producer, at, name.clone()));
                }
            }
        }
        edges
    }
}

fn some_scan() -> impl Strategy<Value = Scan> {
    let name = || prop::sample::select(vec!["a", "b", "c", "f", "g", "h"]);
    let set = move |most| {
        prop::collection::btree_set(name(), 0..most)
            .prop_map(|names| names.iter().collect::<NameSet>())
    };
    let function = prop::sample::select(vec!["f", "g", "h"]);
    let summaries = prop::collection::btree_map(function, set(3), 0..2);
    let summaries = summaries.prop_map(|all| all.into_iter().collect::<NameMap>());
    let alias = prop::collection::btree_map(name(), set(2), 0..2);
    let alias = alias.prop_map(|all| all.into_iter().collect::<NameMap>());
    let rare = prop::bool::weighted(0.15);
    (set(3), set(3), set(2), set(2), set(2), summaries, alias, rare, rare, any::<bool>()).prop_map(
        |(reads, writes, changed, late, held, summaries, aliases, share, late_on, sure)| {
            let mut scan = Scan { reads, writes, ..Scan::default() };
            scan.mutates = changed.iter().filter(|name| scan.reads.contains(name)).collect();
            scan.writes.extend(summaries.keys());
            if sure {
                scan.sure_writes = scan.writes.clone();
            }
            if !summaries.is_empty() && late_on {
                scan.deferred_mutates = late;
                scan.deferred_writes = held;
            }
            scan.summaries = summaries;
            if share {
                scan.aliases = aliases;
            }
            scan
        },
    )
}

#[derive(Clone, Debug)]
enum Edit {
    Insert(usize, Scan),
    Replace(usize, Scan),
    Remove(usize),
    Move(usize, usize),
    Look,
}

fn some_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (0usize..20, some_scan()).prop_map(|(at, scan)| Edit::Insert(at, scan)),
        3 => (0usize..20, some_scan()).prop_map(|(at, scan)| Edit::Replace(at, scan)),
        1 => (0usize..20).prop_map(Edit::Remove),
        1 => (0usize..20, 0usize..20).prop_map(|(from, to)| Edit::Move(from, to)),
        1 => Just(Edit::Look),
    ]
}

fn plain_of(program: &Program) -> BTreeSet<(usize, usize, String)> {
    Plain { steps: program.steps().map(|step| (&*step.id, &*step.scan)).collect() }.edges()
}

fn ours(
    program: &Program,
    edges: impl IntoIterator<Item = Edge>,
) -> BTreeSet<(usize, usize, String)> {
    let at = |id: &str| program.position(id).unwrap();
    edges
        .into_iter()
        .flat_map(|edge| {
            let pair = (at(edge.producer.as_step().unwrap()), at(&edge.reader));
            edge.channels
                .into_iter()
                .map(move |channel| (pair.0, pair.1, channel.as_name().unwrap().to_owned()))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn edits_keep_the_edges_that_a_new_look_finds(edits in prop::collection::vec(some_edit(), 1..30)) {
        let mut program = Program::new();
        for (number, edit) in edits.into_iter().enumerate() {
            let ids: Vec<String> = program.steps().map(|step| step.id.to_string()).collect();
            let id = |at: usize| ids.get(at % ids.len().max(1)).cloned().unwrap_or_default();
            let name = format!("n{number}");
            match edit {
                Edit::Insert(at, scan) => {
                    program.push_scanned(&name, &name, scan).unwrap();
                    if at < ids.len() {
                        program.move_before(&name, &id(at)).unwrap();
                    }
                }
                Edit::Replace(at, scan) => drop(program.replace_scanned(&id(at), &name, scan)),
                Edit::Remove(at) => drop(program.remove(&id(at))),
                Edit::Move(from, to) => drop(program.move_before(&id(from), &id(to))),
                Edit::Look => drop(program.edges()),
            }
        }
        let expected = plain_of(&program);
        let edges = program.edges();
        prop_assert_eq!(&ours(&program, edges.iter()), &expected);
        let mut of = BTreeSet::new();
        for (at, step) in program.steps().enumerate() {
            of.extend(ours(&program, edges.of(&step.id).unwrap()));
            // Closures, by walking the plain edges.
            let mut behind = BTreeSet::from([at]);
            let mut ahead = BTreeSet::from([at]);
            loop {
                let before = (behind.len(), ahead.len());
                for (producer, reader, _) in &expected {
                    if behind.contains(reader) {
                        behind.insert(*producer);
                    }
                    if ahead.contains(producer) {
                        ahead.insert(*reader);
                    }
                }
                if before == (behind.len(), ahead.len()) {
                    break;
                }
            }
            behind.remove(&at);
            ahead.remove(&at);
            let found: BTreeSet<usize> = edges.ancestors(&step.id, None).unwrap().iter()
                .map(|origin| program.position(origin.as_step().unwrap()).unwrap()).collect();
            prop_assert_eq!(found, behind, "behind {}", at);
            let found: BTreeSet<usize> = edges.from(&step.id).unwrap().iter()
                .map(|id| program.position(id).unwrap()).collect();
            prop_assert_eq!(found, ahead, "ahead of {}", at);
        }
        prop_assert_eq!(of, expected);
    }
}
