//! The worker in the process: the contract, selective runs compared with full ones, limits. This program counts
//! what it allocates.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::time::Duration;

use harness_esg::testing::{ExecutorContract, Sources};
use harness_esg::{
    Blobs, CodeGraph, Ending, Limits, Monty, MontyAllocator, MontyWorker, Program, Trust,
};

#[global_allocator]
static ALLOCATOR: MontyAllocator = MontyAllocator;

fn worker() -> MontyWorker {
    Monty::new().start().unwrap()
}

fn graph(script: &str) -> CodeGraph {
    CodeGraph::new(Program::from_script(script).unwrap(), worker(), Blobs::memory())
}

/// The graph of a program that another process has run.
fn reopened(folder: &Path, script: &str) -> CodeGraph {
    let mut graph = CodeGraph::open(folder, worker()).unwrap();
    let script = Program::from_script(script).unwrap();
    graph.edit(|program| program.follow(&script)).unwrap();
    assert!(graph.replay().unwrap().ok());
    drop(graph);
    CodeGraph::open(folder, worker()).unwrap()
}

/// How the last step ends.
fn ending(source: &str, limits: Limits) -> Ending {
    let mut program = Program::new();
    program.push("step", source).unwrap();
    let worker = Monty::new().limits(limits).start().unwrap();
    let mut graph = CodeGraph::new(program, worker, Blobs::memory());
    graph.replay().unwrap();
    graph.execution("step").unwrap().ending.clone()
}

#[test]
fn it_keeps_the_contract_of_executors() {
    let mut sources = Sources::tiny();
    // The end of a handler unbinds its name.
    sources.delete = "try:\n    raise ValueError\nexcept ValueError as x:\n    pass";
    (sources.clock, sources.untracked, sources.crash) = (None, None, None);
    let report = ExecutorContract::new(sources, || Ok(worker())).check();
    println!("{report}");
    assert!(report.is_kept(), "{report}");
    assert!(report.kept.len() >= 20, "{report}");
}

/// Programs, and edits of them: each selective replay leaves what a full run does.
const EDITS: [(&str, &[(&str, &str)]); 6] = [
    (
        "# %% load\nrows = [3, 1]\n# %% more\nrows.append(2)\n# %% total\nn = sum(rows)\n# %% other\nz = 1",
        &[("more", "rows.append(5)"), ("load", "rows = [7]"), ("total", "n = len(rows)")],
    ),
    // Functions that call functions, and names that they load late.
    (
        "# %% rate\nrate = 2\n# %% tax\ndef tax(x):\n    return x * rate\n# %% bill\ndef bill(x):\n    return x + tax(x)\n# %% shown\nshown = bill(10)\n# %% rate2\nrate = 3\n# %% again\nagain = bill(10)",
        &[
            ("rate", "rate = 4"),
            ("rate2", "rate = 5"),
            ("tax", "def tax(x):\n    return x * rate + 1"),
            ("bill", "def bill(x):\n    return tax(x)"),
        ],
    ),
    // Shared objects: whole, in part, and through an instance.
    (
        "# %% a\nxs = [1]\nys = xs\nrow = [xs, 5]\n# %% b\nys.append(2)\n# %% c\nrow[0].append(3)\n# %% d\nn = len(xs)\n# %% e\nclass Box:\n    def __init__(self, xs):\n        self.xs = xs\nbox = Box(xs)\n# %% f\nbox.xs.append(4)\n# %% g\nm = len(ys)",
        &[
            ("b", "ys.append(9)\nys.append(9)"),
            ("f", "box.xs.append(6)\nbox.xs.append(6)"),
            ("c", "row[0].append(7)"),
            ("d", "n = len(xs) + 1"),
            ("g", "m = len(ys) + 1"),
        ],
    ),
    // State that cannot be seen: closures, iterators, values of parameters.
    (
        "# %% make\ndef counter():\n    n = [0]\n    def next_one():\n        n[0] += 1\n        return n[0]\n    return next_one\nc = counter()\n# %% one\na = c()\n# %% two\nb = c()\n# %% keep\ndef kept(x, seen=[]):\n    seen.append(x)\n    return len(seen)\n# %% three\nd = kept(1)\n# %% four\ne = kept(2)\n# %% it\nit = iter([1, 2, 3])\n# %% five\nf = next(it)\n# %% six\ng = next(it)",
        &[
            ("one", "a = c() + c()"),
            ("two", "b = 10 + c()"),
            ("three", "d = kept(1) + kept(1)"),
            ("four", "e = 10 + kept(2)"),
            ("five", "f = 10 + next(it)"),
            ("six", "g = 20 + next(it)"),
        ],
    ),
    // Objects that look like others from outside.
    (
        "# %% make\nfrom collections import Counter, defaultdict, deque, namedtuple\nc = Counter('aab')\nd = defaultdict(list)\nq = deque([1, 2])\nP = namedtuple('P', ['x'])\np = P([1])\n# %% also\nr = q\n# %% more\nq.append(3)\nd['k'].append(1)\nc['a'] += 1\np.x.append(2)\n# %% n\nn = [len(r), len(d['z']), c['zz'], p.x, isinstance(p, P), c.most_common(1)]",
        &[
            ("more", "q.append(3)\nq.append(4)\np.x.append(5)"),
            ("n", "n = [r.popleft(), d['new'], c['none'], p.x]"),
            ("also", "r = deque(q)"),
        ],
    ),
    // Modules, sets, dicts, a failure, and a name that is unbound.
    (
        "# %% load\nimport math\nd = {'a': [1.5], 'b': {3, 1, 2}}\n# %% root\nr = math.sqrt(16)\n# %% put\nd['c'] = (1, 'x', None)\n# %% fail\nd['a'].append(2)\nq = d['zz']\n# %% show\nprint(sorted(d['b']), len(d['a']))\n# %% gone\ntry:\n    raise ValueError('no')\nexcept ValueError as r:\n    pass",
        &[
            ("put", "d['zz'] = 4"),
            ("fail", "q = 1"),
            ("root", "r = math.floor(2.5)"),
            ("gone", "u = 1"),
        ],
    ),
];

#[test]
fn a_selective_replay_leaves_what_a_full_run_does() {
    for (script, edits) in EDITS {
        let mut graph = graph(script);
        graph.replay().unwrap();
        let verdict = graph.verify().unwrap();
        assert!(verdict.same, "{script}: {verdict}");
        for (step, source) in edits {
            graph.edit(|program| program.replace(step, source)).unwrap();
            let report = graph.replay().unwrap();
            let verdict = graph.verify().unwrap();
            assert!(verdict.same, "{step}: {source}\n{report}\n{verdict}");
            assert!(report.untracked.is_empty(), "{report}");
        }
    }
}

#[test]
fn what_does_not_depend_on_an_edit_is_kept() {
    let mut graph = graph(EDITS[0].0);
    graph.replay().unwrap();
    graph.edit(|program| program.replace("more", "rows.append(5)")).unwrap();
    let report = graph.replay().unwrap();
    let ran: Vec<_> = report.executed().map(|step| &**step).collect();
    assert_eq!(ran, ["more", "total"]);
    assert_eq!(graph.value("n").unwrap().repr, "9");
}

#[test]
fn another_process_finds_data_and_functions() {
    let script = "# %% load\nimport math\nrows = [3.5, 1]\nalias = rows\ndef double(x):\n    return [2 * one for one in x]\n# %% use\nn = math.floor(sum(double(rows)))";
    let folder = tempfile::tempdir().unwrap();
    let mut graph = reopened(folder.path(), script);
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    let use_it = "alias.append(10)\nn = math.floor(sum(double(rows)))";
    graph.edit(|program| program.replace("use", use_it)).unwrap();
    let report = graph.replay().unwrap();
    let ran: Vec<_> = report.executed().map(|step| &**step).collect();
    assert_eq!((ran, graph.value("n").unwrap().repr), (vec!["use"], "29".to_owned()), "{report}");
}

#[test]
fn what_the_language_lacks_is_an_ending_of_its_own() {
    let lacks = |source| match ending(source, Limits::default()) {
        Ending::Unsupported { feature } => feature,
        other => panic!("{source}: {other}"),
    };
    assert_eq!(lacks("x = 1\ndel x"), "the 'del' statement");
    assert_eq!(lacks("import numpy as np"), "the module `numpy`");
    for source in
        ["def f():\n    yield 1", "match 1:\n    case 1:\n        pass", "from math import *"]
    {
        lacks(source);
    }
    // What a program raises itself is no such ending.
    let raised =
        ending("def f():\n    raise NotImplementedError('later')\n\nf()", Limits::default());
    let Ending::Raised { type_name, frames, .. } = raised else { panic!("{raised}") };
    let lines: Vec<_> = frames.iter().map(|frame| (frame.line, &*frame.function)).collect();
    assert_eq!(
        (type_name.as_str(), lines),
        ("NotImplementedError", vec![(4, "<module>"), (2, "f")])
    );
    let missing = ending("print(rwos)", Limits::default());
    assert!(matches!(missing, Ending::Raised { name: Some(name), .. } if name == "rwos"));
    let broken = ending("x = (", Limits::default());
    assert!(matches!(broken, Ending::Raised { syntax: true, .. }), "{broken}");
}

#[test]
fn steps_have_no_access_to_the_host() {
    for source in [
        "open('/etc/passwd').read()",
        "from pathlib import Path\nPath('/etc/passwd').read_text()",
        "import os\nos.getenv('HOME')",
        "import os\nos.environ",
        "from datetime import datetime\ndatetime.now()",
        "import socket",
        "import subprocess",
        "__import__('os').system('true')",
    ] {
        let ended = ending(source, Limits::default());
        assert!(!ended.is_ok(), "{source}: {ended}");
    }
}

#[test]
fn limits_hold_and_the_worker_lives() {
    let short = Limits { wall: Duration::from_millis(50), ..Limits::default() };
    assert_eq!(ending("while True:\n    pass", short), Ending::Timeout { limit: short.wall });
    let caught = "try:\n    while True:\n        pass\nexcept Exception:\n    x = 1";
    assert_eq!(ending(caught, short), Ending::Timeout { limit: short.wall });

    let small = Limits { address_space: 64 << 20, ..Limits::default() };
    for bomb in [
        "x = 'a' * 10 ** 10",
        "x = [0] * 10 ** 9",
        "x = 2 ** 10 ** 10",
        "x = []\nwhile True:\n    x.append('a' * 1000)",
    ] {
        let ended = ending(bomb, small);
        let Ending::Raised { type_name, .. } = &ended else { panic!("{bomb}: {ended}") };
        assert_eq!(type_name, "MemoryError", "{bomb}");
    }
    let deep = ending("def f(n):\n    return f(n + 1)\n\nf(0)", Limits::default());
    assert!(
        matches!(&deep, Ending::Raised { type_name, .. } if type_name == "RecursionError"),
        "{deep}"
    );

    // Each step has the whole of its time: the interpreter counts the time of the whole session.
    let mut graph = CodeGraph::new(
        Program::from_script(
            "# %% endless\nwhile True:\n    pass\n# %% next\nx = sum(range(1000))\n# %% many\nprint('a' * 3000)\nprint('b')",
        )
        .unwrap(),
        Monty::new().limits(Limits { output: 1000, ..short }).start().unwrap(),
        Blobs::memory(),
    );
    let report = graph.replay().unwrap();
    assert_eq!(report.failed.len(), 1, "{report}");
    assert_eq!(graph.value("x").unwrap().repr, "499500");
    let stdout = &graph.execution("many").unwrap().stdout;
    assert_eq!((stdout.bytes.len(), stdout.dropped), (1000, 2003));
}

#[test]
fn the_text_of_a_long_value_says_that_it_is_cut() {
    let mut graph = graph("# %% a\nxs = 'é' * 9000\nys = 'y'");
    graph.replay().unwrap();
    let repr = graph.value("xs").unwrap().repr;
    assert!(repr.starts_with("'éé") && repr.ends_with("é..."), "{repr}");
    assert_eq!(graph.value("ys").unwrap().repr, "'y'");
}

#[test]
fn builtins_that_a_step_binds_do_not_mislead_the_worker() {
    let mut graph = graph(
        "# %% a\nxs = [1]\nid = len\nisinstance = 3\nlist = 4\nValueError = 5\nstr = 6\ndict = 7\n# %% b\nys = xs\n# %% c\nys.append(2)\n# %% d\nn = xs[1] + dict",
    );
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    graph.edit(|program| program.replace("c", "ys.append(3)")).unwrap();
    assert!(graph.replay().unwrap().ok());
    assert_eq!(graph.value("n").unwrap().repr, "10");
    assert!(graph.verify().unwrap().same);
}

#[test]
fn code_of_ones_own_needs_no_limit_of_memory() {
    assert!(Monty::new().trust(Trust::Mine).start().is_ok());
}

#[test]
fn another_process_does_not_find_a_list_where_a_deque_was() {
    let script = "# %% make\nfrom collections import Counter, deque\nq = [deque([1, 2])]\nc = {'c': Counter('ab')}\n# %% use\nn = q[0][0]";
    let folder = tempfile::tempdir().unwrap();
    let mut graph = reopened(folder.path(), script);
    graph.edit(|program| program.replace("use", "n = (q[0].popleft(), c['c']['zz'])")).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    assert_eq!(graph.value("n").unwrap().repr, "(1, 0)");
}

#[test]
fn the_names_of_the_worker_are_none_of_a_program() {
    for source in ["_harness_walk = 1", "x = _harness_error"] {
        let ended = ending(source, Limits::default());
        assert!(matches!(ended, Ending::Unsupported { .. }), "{source}: {ended}");
    }
}

/// As deep as calls may be, and deeper, in a thread with a small stack.
#[test]
fn a_value_that_is_nested_deeply_ends_nothing() {
    for depth in [900, 50_000] {
        for nest in ["[x]", "(x,)", "{'a': x}"] {
            let mut graph = graph(&format!(
                "# %% a\nx = None\nfor i in range({depth}):\n    x = {nest}\n# %% b\ny = 1\n# %% c\nz = x == x"
            ));
            let report = graph.replay().unwrap();
            assert_eq!(graph.value("y").unwrap().repr, "1", "{report}");
            graph.edit(|program| program.replace("b", "y = 2")).unwrap();
            let report = graph.replay().unwrap();
            assert_eq!(graph.value("y").unwrap().repr, "2", "{report}");
        }
    }
}
