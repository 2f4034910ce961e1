//! Untracked constructs, and tracked ones that look similar: each is replayed correctly or
//! reported.
use harness_esg::{Blobs, CodeGraph, Executor, Program, RunStep};

use crate::{pythons, worker};

/// The expectation for a construct.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Tracked,
    Untracked,
}

/// A step with the construct, and one that uses its result. Both may use `n`, a number that an edit
/// changes.
const CONSTRUCTS: &[(&str, Is, &str, &str)] = &[
    (
        "a sentinel",
        Is::Tracked,
        "missing = object()\nd = {'m': missing}",
        "r = d['m'] is missing, n",
    ),
    (
        "lru_cache",
        Is::Tracked,
        "from functools import lru_cache\n@lru_cache\ndef f(z):\n    return z + n",
        "r = f(1), f.cache_info().hits",
    ),
    (
        "an open handle",
        Is::Tracked,
        "h = open('a.txt', 'w')\nh.write('x' * n)",
        "h.close()\nr = len(open('a.txt').read())",
    ),
    (
        "a stash in a module",
        Is::Tracked,
        "import math\nmath.stash = [n]",
        "math.stash.append(1)\nr = math.stash",
    ),
    ("a generator", Is::Tracked, "g = (z for z in range(9))\nnext(g)", "r = next(g) + n"),
    (
        "a late import",
        Is::Tracked,
        "def f():\n    import json\n    return json.dumps([n])",
        "r = f()",
    ),
    (
        "an exception kept",
        Is::Tracked,
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    k = e.args",
        "r = k, n",
    ),
    ("a decimal", Is::Tracked, "from decimal import Decimal\nq = Decimal('1.50')", "r = q * n"),
    ("a logger's name", Is::Tracked, "import logging\nlogging.basicConfig(level=10)", "r = n"),
    (
        "the decimal context",
        Is::Tracked,
        "import decimal\ndecimal.getcontext().prec = 4",
        "r = decimal.Decimal(n) / 7",
    ),
    (
        "sys.modules",
        Is::Untracked,
        "import sys\nsys.modules['fake'] = sys",
        "import fake\nr = fake is sys, n",
    ),
    (
        "__subclasses__",
        Is::Untracked,
        "class A: pass\nclass B(A): pass\nk = len(A.__subclasses__())",
        "r = k + n",
    ),
    (
        "a weak reference",
        Is::Untracked,
        "import weakref\nclass A: pass\na = A()\nw = weakref.ref(a)",
        "r = w() is a, n",
    ),
    ("id", Is::Untracked, "xs = []\nk = id(xs) == id(xs)", "r = k, n"),
    (
        "a thread",
        Is::Tracked,
        "import threading\nxs = []\nt = threading.Thread(target=xs.append, args=(n,))\nt.start()\nt.join()\ndel t",
        "r = xs",
    ),
    ("gc", Is::Untracked, "import gc\nk = gc.isenabled()", "r = k, n"),
    ("__globals__", Is::Untracked, "def f(): pass\nf.__globals__['z'] = n", "r = z"),
    ("a frame", Is::Untracked, "import sys\nsys._getframe().f_globals['z'] = n", "r = z"),
    (
        "a finalizer",
        Is::Untracked,
        "out = []\nclass A:\n    def __del__(self):\n        out.append(n)\na = A()",
        "del a\nr = out",
    ),
    (
        "an abstract class of the library",
        Is::Untracked,
        "from collections.abc import Sized\nclass A: pass\nSized.register(A)",
        "r = isinstance(A(), Sized), n",
    ),
    ("a process", Is::Tracked, "import subprocess\nsubprocess.run(['true'])", "r = n"),
    ("a locale", Is::Tracked, "import locale\nlocale.setlocale(locale.LC_ALL, 'C')", "r = n"),
    ("atexit", Is::Untracked, "import atexit\natexit.register(print)", "r = n"),
    ("a trace function", Is::Untracked, "import sys\nsys.settrace(None)", "r = n"),
    ("a builtin replaced", Is::Untracked, "import builtins\nbuiltins.len = lambda z: n", "r = n"),
    (
        "the time of a file",
        Is::Untracked,
        "import os\nopen('a.txt', 'w').close()\nk = os.stat('a.txt').st_mtime > 0",
        "r = k, n",
    ),
    ("a file elsewhere", Is::Untracked, "open('/tmp/harness-fuzz-out', 'w').close()", "r = n"),
];

#[test]
fn every_construct_is_right_or_reported() {
    let pythons = pythons();
    let mut wrong = Vec::new();
    for (at, (what, is, first, second)) in CONSTRUCTS.iter().enumerate() {
        let python = &pythons[at % pythons.len()];
        let mut program = Program::new();
        for (id, source) in
            [("n", "n = 1"), ("first", *first), ("second", *second), ("other", "o = n")]
        {
            program.push(id, source).unwrap();
        }
        let mut graph = CodeGraph::new(program, worker(python), Blobs::memory());
        graph.replay().unwrap();
        for edit in ["n = 2", "n = 3"] {
            graph.edit(|program| program.replace("n", edit)).unwrap();
            let report = graph.replay().unwrap();
            let found = if report.untracked.is_empty() { Is::Tracked } else { Is::Untracked };
            if found != *is {
                wrong.push(format!("{what}, {}: {found:?}\n{report}", python.display()));
            }
            if *is == Is::Untracked && report.executed().count() != 4 {
                wrong.push(format!("{what}: not everything behind the edit ran\n{report}"));
            }
            if !report.ok() {
                wrong.push(format!("{what}: a step failed\n{report}"));
            }
            let verdict = graph.verify().unwrap();
            if !verdict.same {
                wrong.push(format!("{what}, {}: {verdict}\n{report}", python.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_steps_and_readings_give_the_same_prints_in_every_process() {
    const STEPS: [&str; 5] = [
        "import random\nxs = [3, 1.5, -0.0, 'q', {'k': (1, 2)}]\nus = {'a', 'b', 3, (4, 'c')}",
        "class K:\n    shared = [xs]\n    def get(self):\n        return len(xs)\no = K()\nf = lambda: o.get()",
        "import time\nt = time.time()\nr = f() + random.random() + t",
        "import os\nopen('a.txt', 'w').write(str(r))\nprint(sorted(map(str, us)), os.listdir('.'))",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    v: int = 1\np = [P(), P(2)]\nq = p[0]",
    ];
    let times = crate::setting("HARNESS_FUZZ_TIMES").unwrap_or(100);
    let mut worker = worker(&pythons()[0]);
    let mut readings = vec![None; STEPS.len()];
    let mut first = Vec::new();
    for time in 0..times {
        worker.fresh().unwrap();
        let mut seen = Vec::new();
        for (at, source) in STEPS.iter().enumerate() {
            let given: Option<Vec<_>> = readings[at].clone();
            let ran = worker
                .run(&RunStep {
                    seq: u64::try_from(at).unwrap() + 1,
                    step: "s",
                    source,
                    bind: None,
                    readings: given.as_deref(),
                })
                .unwrap();
            assert!(ran.ending.is_ok(), "{}", ran.ending);
            readings[at].get_or_insert(ran.readings);
            let units: Vec<_> =
                ran.units.iter().map(|(unit, _)| (&unit.members, &unit.share)).collect();
            seen.push(format!("{:?} {:?} {units:?} {:?}", ran.reads, ran.wrote, ran.stdout));
        }
        if time == 0 {
            first = seen;
        } else {
            assert_eq!(first, seen, "time {time}");
        }
    }
}
