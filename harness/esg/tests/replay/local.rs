//! An untracked operation costs what depends on it, and nothing else; state inside packages belongs
//! to channels.
use std::fmt::Write as _;

use harness_esg::{Ambient, Blobs, CPython, CodeGraph, Program, Reason, Trust};

use crate::{graph, pythons};

/// A step whose effect no channel has: it counts in a builtin function's place.
const UNTRACKED: &str = "import sys\nframe = sys._getframe().f_globals['k'] + 1";

fn ran(graph: &mut CodeGraph) -> Vec<String> {
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    let ran = report.executed().map(|step| step.to_string()).collect();
    let verdict = graph.verify().unwrap();
    assert!(verdict.same, "{verdict}\n{report}");
    ran
}

fn program() -> CodeGraph {
    let steps = [
        ("k", "k = 1"),
        ("free", "free = 2"),
        ("untracked", UNTRACKED),
        ("behind", "behind = 3"),
        ("last", "last = free"),
    ];
    let mut graph = graph(&pythons()[0], &steps);
    assert_eq!(ran(&mut graph).len(), 5);
    graph
}

#[test]
fn an_edit_behind_an_untracked_operation_runs_what_reads_it() {
    let mut graph = program();
    graph.edit(|program| program.replace("last", "last = free + 1")).unwrap();
    assert_eq!(ran(&mut graph), ["last"]);
}

#[test]
fn an_edit_of_an_untracked_operation_runs_it_and_everything_behind_it() {
    let mut graph = program();
    graph.edit(|program| program.replace("untracked", &UNTRACKED.replace("+ 1", "+ 2"))).unwrap();
    assert_eq!(ran(&mut graph), ["untracked", "behind", "last"]);
}

#[test]
fn an_edit_before_an_untracked_operation_spares_the_steps_between() {
    let mut graph = program();
    graph.edit(|program| program.replace("k", "k = 5")).unwrap();
    let planned: Vec<_> = graph.plan().steps().map(|(step, _)| step.to_string()).collect();
    assert_eq!(planned, ["k", "untracked", "behind", "last"]);
    assert_eq!(ran(&mut graph), ["k", "untracked", "behind", "last"]);
    graph.edit(|program| program.replace("k", "k = 1")).unwrap();
    assert!(ran(&mut graph).is_empty(), "what ran before is known");
}

#[test]
fn a_fresh_worker_gets_back_what_untracked_operations_left() {
    let steps = [
        ("k", "k = 1"),
        ("hook", "import atexit\natexit.register(print)"),
        ("read", "n = atexit._ncallbacks() + k"),
        ("other", "import atexit as a\na.register(len)\nm = a._ncallbacks()"),
        ("last", "last = 1"),
    ];
    let mut graph = graph(&pythons()[0], &steps);
    assert_eq!(ran(&mut graph).len(), 5);
    let before = graph.value("n").unwrap().repr;
    // The live worker has seen `other`, which this step must not see.
    graph.edit(|program| program.replace("read", "n = atexit._ncallbacks() + k + 0")).unwrap();
    let report = graph.replay().unwrap();
    assert_eq!(graph.value("n").unwrap().repr, before, "{report}");
    assert_eq!(*report.rebuilt, ["hook".into()], "{report}");
    assert!(report.ran.iter().any(|(step, why)| &**step == "other" && *why == Reason::Untracked));
    assert!(graph.verify().unwrap().same);
}

#[test]
fn annotations_stay_texts_in_a_fresh_worker() {
    let steps = [
        ("future", "from __future__ import annotations"),
        ("klass", "class A:\n    def f(self) -> Late: return 1"),
        ("other", "import atexit\natexit.register(len)"),
        ("n", "n = A().f()"),
    ];
    let mut graph = graph(&pythons()[0], &steps);
    assert_eq!(ran(&mut graph).len(), 4);
    // The live worker has seen `other`, which this step must not see.
    let edited = "class A:\n    def f(self) -> Later: return 2";
    graph.edit(|program| program.replace("klass", edited)).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.failed.is_empty(), "{report}");
    assert_eq!(graph.value("n").unwrap().repr, "2");
    assert!(graph.verify().unwrap().same);
    // Without the import, the names are looked up.
    graph.edit(|program| program.replace("future", "")).unwrap();
    let report = graph.replay().unwrap();
    assert_eq!(report.failed.len(), 2, "the class, and what uses it: {report}");
}

#[test]
fn what_the_sweep_found_is_remembered() {
    let steps = [
        ("xs", "xs = [1]"),
        ("name", "name = 'x' + 's'"),
        ("hidden", "y = 1"),
        ("n", "n = len(xs)"),
    ];
    let mut graph = graph(&pythons()[0], &steps);
    assert_eq!(ran(&mut graph).len(), 4);
    // A list reached through the collector, whose use is not seen when it is hidden in a string.
    let hidden = "import gc\nfind = getattr(gc, 'get_' + 'objects')\n\
                  [o for o in find() if type(o) is list and o == [1]][0].append(2)\ny = 1";
    for _ in 0..2 {
        graph.edit(|program| program.replace("hidden", hidden)).unwrap();
        graph.replay().unwrap();
        graph.edit(|program| program.replace("hidden", "y = 1")).unwrap();
        graph.replay().unwrap();
        assert!(graph.verify().unwrap().same);
        assert_eq!(graph.value("n").unwrap().repr, "1");
    }
}

/// Channels of the standard library: the step that sets the state, and one that depends on it.
const CHANNELS: &[(&str, &str, &str, &str)] = &[
    (
        "the decimal context",
        "from decimal import *\ngetcontext().prec = 5",
        "getcontext().prec = 7",
        "r = str(Decimal(1) / 3)",
    ),
    (
        "levels of loggers",
        "import logging, sys\nlogging.basicConfig(level=logging.INFO, stream=sys.stdout)",
        "import logging, sys\nlogging.basicConfig(level=logging.WARNING, stream=sys.stdout)",
        "logging.getLogger('job').info('said')",
    ),
    (
        "the limit of csv",
        "from csv import *\nfield_size_limit(10)",
        "from csv import *\nfield_size_limit(20)",
        "r = field_size_limit()",
    ),
    (
        "the arguments of the program",
        "import sys\nsys.argv = ['tool', '--width', '12']",
        "import sys\nsys.argv[1:] = ['--width', '13']",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--width')\nr = p.parse_args().width",
    ),
];

#[test]
fn state_that_programs_set_on_purpose_is_versioned_and_restored() {
    let mut wrong = String::new();
    for (at, (what, set, other, read)) in CHANNELS.iter().enumerate() {
        let pythons = pythons();
        let python = &pythons[at % pythons.len()];
        let first = set.lines().next().unwrap();
        let steps = [
            ("import", first),
            ("set", *set),
            ("read", *read),
            ("free", "x = [1]"),
            ("end", "y = 1"),
        ];
        let mut graph = graph(python, &steps);
        let mut check = |graph: &mut CodeGraph, expected: &[&str]| {
            let report = graph.replay().unwrap();
            let ran: Vec<_> = report.executed().map(|step| step.to_string()).collect();
            let verdict = graph.verify().unwrap();
            let missing = expected.iter().any(|step| !ran.iter().any(|ran| ran == step));
            if missing || !report.untracked.is_empty() || !report.ok() || !verdict.same {
                writeln!(wrong, "{what}: {ran:?} {verdict}\n{report}").unwrap();
            }
        };
        check(&mut graph, &["set", "read"]);
        graph.edit(|program| program.replace("set", other)).unwrap();
        check(&mut graph, &["set", "read"]);
        graph.edit(|program| program.replace("end", "y = 2")).unwrap();
        check(&mut graph, &["end"]);
        graph.edit(|program| program.remove("set")).unwrap();
        check(&mut graph, &["read"]);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_later_step_sees_the_arguments_that_a_step_sets() {
    for python in pythons() {
        let set = "import sys\nargs = ['tool', '12']\nsys.argv = args";
        let mut graph =
            graph(&python, &[("set", set), ("read", "r = sys.argv[1]"), ("end", "e = 1")]);
        assert!(graph.replay().unwrap().ok());
        assert_eq!(graph.value("r").unwrap().repr, "'12'");
        graph.edit(|program| program.replace("set", &set.replace("12", "13"))).unwrap();
        assert!(graph.replay().unwrap().ok());
        assert_eq!(graph.value("r").unwrap().repr, "'13'");
        assert!(graph.verify().unwrap().same);
    }
}

#[test]
fn the_directory_for_temporary_files_is_looked_for_where_it_is_in_a_full_run() {
    let make = "import tempfile\nn = 1\nwith tempfile.TemporaryDirectory() as one: pass";
    let more = "with tempfile.TemporaryDirectory() as two: pass";
    for python in pythons() {
        let steps =
            [("import", "import tempfile"), ("make", make), ("more", more), ("end", "e = 1")];
        let mut graph = graph(&python, &steps);
        assert_eq!(ran(&mut graph).len(), 4);
        for (step, source) in [
            ("make", make.replace("n = 1", "n = 2")),
            ("make", "import tempfile".to_owned()),
            (
                "make",
                "import os\nos.mkdir('t')\nos.environ['TMPDIR'] = os.path.abspath('t')".to_owned(),
            ),
            ("more", more.replace("two", "three")),
            ("make", make.to_owned()),
        ] {
            graph.edit(|program| program.replace(step, &source)).unwrap();
            let report = graph.replay().unwrap();
            assert!(report.ok() && report.untracked.is_empty(), "{source}: {report}");
            let verdict = graph.verify().unwrap();
            assert!(verdict.same, "{}: {source}: {report}\n{verdict}", python.display());
        }
    }
}

#[test]
fn a_user_adds_a_channel() {
    let python = &pythons()[0];
    let unit = Ambient::new(
        "calendar",
        "calendar",
        "import calendar\ndef read():\n    return calendar.mdays[2]\n\
         def restore(days):\n    calendar.mdays[2] = days\n",
    );
    let worker = CPython::at(python).ambient(unit).trust(Trust::Mine).start().unwrap();
    let mut program = Program::new();
    for (id, source) in [
        ("import", "import calendar"),
        ("set", "calendar.mdays[2] = 29"),
        ("read", "n = sum(calendar.mdays)"),
    ] {
        program.push(id, source).unwrap();
    }
    let mut graph = CodeGraph::new(program, worker, Blobs::memory());
    assert_eq!(ran(&mut graph).len(), 3);
    graph.edit(|program| program.replace("set", "calendar.mdays[2] = 30")).unwrap();
    assert_eq!(ran(&mut graph), ["set", "read"]);
    assert_eq!(graph.value("n").unwrap().repr, "367");
    graph.edit(|program| program.remove("set")).unwrap();
    assert_eq!(ran(&mut graph), ["read"]);
    assert_eq!(graph.value("n").unwrap().repr, "365");
}

#[test]
fn what_an_import_leaves_is_not_what_a_step_set() {
    // The import follows the assignment, and the module comes back with a fresh worker.
    let steps = [
        ("set", "import os\nos.environ['PLACE'] = '5'\nimport colorsys"),
        ("get", "import os\nplace = os.environ.get('PLACE', 'none')"),
        ("decimal", "import decimal"),
        ("exact", "exact = 1"),
        ("untracked", UNTRACKED.replace("['k']", "['exact']").leak()),
    ];
    let mut graph = graph(&pythons()[0], &steps);
    assert_eq!(ran(&mut graph).len(), 5);
    let source = "import decimal\ndecimal.getcontext().prec = 6\nexact = 1";
    graph.edit(|program| program.replace("exact", source)).unwrap();
    assert_eq!(ran(&mut graph), ["exact", "untracked"]);
    graph.edit(|program| program.replace("set", "import os, colorsys")).unwrap();
    assert_eq!(ran(&mut graph), ["set", "get", "untracked"]);
}

#[test]
fn a_function_whose_attributes_are_elsewhere_has_not_changed() {
    let steps = [("f", "def f():\n    return a"), ("a", "a = 1"), ("seen", "f.seen = [1]")];
    let mut graph = graph(&pythons()[0], &steps);
    assert_eq!(ran(&mut graph).len(), 3);
    graph.edit(|program| program.replace("a", "a = 2")).unwrap();
    assert_eq!(ran(&mut graph), ["a"]);
}
