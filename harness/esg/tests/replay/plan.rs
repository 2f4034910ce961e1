//! The plan contains every step that the replay then runs.
use std::collections::BTreeSet;

use harness_esg::CodeGraph;

use crate::{graph, packages, pythons};

/// A source that makes `xs` and what else is needed, and one that changes `xs`.
const CHANGES: &[(&str, &str)] = &[
    ("xs = [3, 1, 2]", "xs.append(4)"),
    ("xs = [3, 1, 2]", "m = xs.append\nm(4)"),
    ("import random\nxs = [3, 1, 2]", "random.shuffle(xs)"),
    ("import heapq\nxs = [3, 1, 2]", "heapq.heapify(xs)"),
    ("import bisect\nxs = [3, 1, 2]", "bisect.insort(xs, 4)"),
    ("import io\nxs = io.StringIO()", "print(4, file=xs)"),
    ("import io, json\nxs = io.StringIO()", "json.dump([], xs)"),
    ("import operator\nxs = [3, 1, 2]", "operator.iadd(xs, [4])"),
    ("import operator\nxs = [3, 1, 2]", "operator.methodcaller('append', 4)(xs)"),
    ("import struct\nxs = bytearray(4)", "struct.pack_into('i', xs, 0, 7)"),
    ("from collections import deque\nxs = deque([1])", "deque.append(xs, 4)"),
    ("import functools\nxs = [3, 1, 2]", "functools.partial(xs.append, 5)()"),
    ("import types\nxs = [3, 1, 2]", "types.MethodType(list.append, xs)(5)"),
    ("xs = iter([3, 1, 2])", "for x in xs: break"),
    ("xs = (x for x in [3, 1, 2])", "ys = next(xs)"),
    ("import itertools\nxs = iter([3, 1, 2])", "ys = list(itertools.islice(xs, 2))"),
    ("xs = iter([3, 1, 2])", "ys = list(zip('ab', xs))"),
    ("xs = iter([3, 1, 2])", "ys = list(map(str, xs))"),
    ("xs = iter([3, 1, 2])", "a, *b = xs"),
    ("xs = [3, 1, 2]\ndef grow(): xs.append(4)", "grow()"),
    ("xs = [3, 1, 2]\ngrow = lambda: xs.append(4)", "grow()"),
    ("xs = [3, 1, 2]\ndef grow(to): to.append(4)", "grow(xs)"),
    ("xs = [3, 1, 2]\nys = xs", "ys.append(4)"),
    ("xs = [3, 1, 2]\nheld = {'a': xs}", "held['a'].append(4)"),
    ("xs = [3, 1, 2]\ndef set_xs():\n    global xs\n    xs = [9]", "set_xs()"),
    ("xs = [3, 1, 2]", "exec('xs.append(4)')"),
    ("xs = [3, 1, 2]", "code = 'xs.append(4)'\nexec(code)"),
    ("xs = [3, 1, 2]", "globals()['x' + 's'] = [5]"),
    ("xs = [3, 1, 2]", "setattr(xs, 'a', 1) if 0 else xs.clear()"),
    ("class C: xs = [1]\nxs = C()", "C.xs = [2]"),
    ("class C: pass\nxs = C()", "C.__len__ = lambda self: 7"),
    ("xs = [3, 1, 2]", "open('f', 'w').write('1')"),
    ("xs = [3, 1, 2]", "import random\nrandom.seed(3)"),
    ("xs = [3, 1, 2]\nimport random as r", "r.seed(3)"),
    ("xs = [3, 1, 2]\nfrom random import seed as s", "s(3)"),
    ("xs = [3, 1, 2]\nimport os as o", "o.mkdir('d')"),
    ("xs = [3, 1, 2]\nfrom pathlib import Path as P\nfile = P('f')", "file.write_text('1')"),
    ("xs = [3, 1, 2]\ndef save(): open('f', 'w').write('1')", "save()"),
    (
        "xs = [3, 1, 2]\ndef save(): put()\ndef put():\n    import shutil as s\n    s.copy('f', 'g')",
        "open('f', 'w').close()\nsave()",
    ),
    (
        "xs = [3, 1, 2]\nclass Kept:\n    def save(self): file.write_text('1')\nfrom pathlib import Path\nfile = Path('f')\nkept = Kept()",
        "kept.save()",
    ),
    ("xs = [3, 1, 2]\nimport decimal as d", "d.getcontext().prec = 5"),
];

/// With packages: a source that makes what is needed, one that changes something, one that reads it.
const FIELD: &[(&str, &str, &str)] = &[
    (
        "import pandas as pd\ndf = pd.DataFrame({'v': [1, 2]})",
        "df.to_csv('t.csv')",
        "import os, pandas\nr = len(pandas.read_csv('t.csv')) if os.path.exists('t.csv') else 0",
    ),
    ("import numpy as np", "np.random.seed(3)", "r = np.random.rand()"),
    ("from numpy.random import seed as s", "s(3)", "import numpy\nr = numpy.random.rand()"),
    ("import numpy as np", "np.set_printoptions(precision=3)", "r = str(np.array([1 / 3]))"),
    (
        "import matplotlib.pyplot as plt\nax = plt.subplots()[1]",
        "ax.plot([1, 2])",
        "r = len(plt.gca().lines)",
    ),
    (
        "import matplotlib.pyplot as plt",
        "plt.rcParams['lines.linewidth'] = 3",
        "r = plt.rcParams['lines.linewidth']",
    ),
];

#[test]
fn the_plan_contains_every_step_that_runs_because_of_packages() {
    let Some(python) = packages() else { return };
    let mut wrong = Vec::new();
    for (make, change, read) in FIELD {
        let steps = [("make", *make), ("change", "pass"), ("read", *read), ("apart", "apart = 5")];
        let mut graph = graph(&python, &steps);
        graph.replay().unwrap();
        for source in [*change, "pass"] {
            graph.edit(|program| program.replace("change", source)).unwrap();
            let plan = graph.plan();
            let planned: BTreeSet<_> = plan.steps().map(|(step, _)| step.to_owned()).collect();
            let report = graph.replay().unwrap();
            let ran: BTreeSet<_> = report.executed().map(ToString::to_string).collect();
            if !ran.is_subset(&planned) || planned.contains("apart") {
                wrong.push(format!("{make}\n{source}\nran {ran:?}, planned {planned:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} plans:\n{}", wrong.len(), wrong.join("\n--\n"));
}

/// Edits steps, and returns what ran. The plan says the same.
fn ran_as_planned(graph: &mut CodeGraph, edits: &[(&str, &str)]) -> Vec<String> {
    for (step, source) in edits {
        graph.edit(|program| program.replace(step, source)).unwrap();
    }
    let planned: Vec<_> = graph.plan().steps().map(|(step, _)| step.to_owned()).collect();
    let report = graph.replay().unwrap();
    let ran: Vec<_> = report.executed().map(ToString::to_string).collect();
    assert_eq!(ran, planned);
    assert!(graph.verify().unwrap().same);
    ran
}

/// An edited step may leave alone what it changed before: its readers need it as it was before that.
#[test]
fn what_a_step_consumed_is_planned_to_be_made_again_for_its_readers() {
    let steps =
        [("make", "g = (n for n in range(9))"), ("use", "next(g)"), ("read", "r = g is None")];
    let mut graph = graph(&pythons().remove(0), &steps);
    graph.replay().unwrap();
    assert_eq!(ran_as_planned(&mut graph, &[("use", "pass")]), ["make", "use", "read"]);
    assert_eq!(graph.value("r").unwrap().repr, "False");
}

/// The worker closes an open figure when it goes back to a step before it.
#[test]
fn an_open_figure_is_made_again_for_a_step_behind_it_only() {
    let Some(python) = packages() else { return };
    let plots =
        "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nplt.plot([1])";
    let steps = [("before", "a = 1"), ("plots", plots), ("behind", "b = 1")];
    let mut graph = graph(&python, &steps);
    graph.replay().unwrap();
    let mut edit = |edits: &[_]| ran_as_planned(&mut graph, edits);
    assert_eq!(edit(&[("before", "a = 2")]), ["before"]);
    assert_eq!(edit(&[("before", "a = 3"), ("behind", "b = 2")]), ["before", "plots", "behind"]);
    assert_eq!(edit(&[("behind", "b = 3")]), ["behind"]);
    // It is open, and does not stay so.
    assert_eq!(edit(&[("before", "a = 4"), ("behind", "b = 4")]), ["before", "plots", "behind"]);
}

/// A step that is run again for a figure reads less of its imports, and makes what it made before.
#[test]
fn a_figure_that_is_made_again_is_as_it_was_for_its_readers() {
    let Some(python) = packages() else { return };
    let plots =
        "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nplt.plot([1])";
    let count = "import matplotlib.pyplot as plt\nn = len(plt.get_fignums())";
    let mut graph = graph(&python, &[("plots", plots), ("between", "b = 1"), ("count", count)]);
    graph.replay().unwrap();
    assert_eq!(ran_as_planned(&mut graph, &[("between", "b = 2")]), ["plots", "between"]);
}

#[test]
fn the_plan_contains_every_step_that_runs() {
    let mut wrong = Vec::new();
    let python = pythons().remove(0);
    for (make, change) in CHANGES {
        for (before, after) in [("pass", *change), (*change, "pass")] {
            let steps = [
                ("make", *make),
                ("change", before),
                ("n", "n = [*xs] if hasattr(xs, '__iter__') else getattr(xs, 'xs', 0)"),
                ("m", "m = n"),
                (
                    "more",
                    "import decimal, os, random\nmore = (os.listdir(), random.random(), 1 / decimal.Decimal(7))",
                ),
                ("apart", "apart = 5"),
            ];
            let mut graph = graph(&python, &steps);
            graph.replay().unwrap();
            graph.edit(|program| program.replace("change", after)).unwrap();
            let plan = graph.plan();
            let planned: BTreeSet<_> = plan.steps().map(|(step, _)| step.to_owned()).collect();
            let report = graph.replay().unwrap();
            let ran: BTreeSet<_> = report.executed().map(ToString::to_string).collect();
            if !ran.is_subset(&planned) {
                wrong.push(format!("{make}\n{before}\n{after}\nran {ran:?}, planned {planned:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} plans:\n{}", wrong.len(), wrong.join("\n--\n"));
}

/// An import that fails is undone, also the submodules that it has loaded.
#[test]
fn readers_of_what_an_import_loads_are_planned() {
    let steps = [
        ("load", "import email.mime.text\nfrom part import one"),
        ("part", "import pathlib\npathlib.Path('part.py').write_text('one = 1')"),
        ("read", "import email\nread = hasattr(email, 'mime')"),
    ];
    let mut graph = graph(&pythons().remove(0), &steps);
    graph.replay().unwrap();
    graph.edit(|program| program.move_before("part", "load")).unwrap();
    let plan = graph.plan();
    let planned: BTreeSet<_> = plan.steps().map(|(step, _)| step.to_owned()).collect();
    let report = graph.replay().unwrap();
    let ran: BTreeSet<_> = report.executed().map(ToString::to_string).collect();
    assert!(ran.contains("read"), "{ran:?}");
    assert!(ran.is_subset(&planned), "ran {ran:?}, planned {planned:?}");
}

#[test]
fn what_is_surely_kept_is_not_planned() {
    let python = pythons().remove(0);
    let steps = [
        ("rows", "rows = [1, 2]"),
        ("copy", "other = list(rows)"),
        ("total", "total = sum(rows)"),
        ("again", "total = 3"),
        ("show", "print(total)"),
    ];
    let mut graph = graph(&python, &steps);
    graph.replay().unwrap();
    graph.edit(|program| program.replace("total", "total = max(rows)")).unwrap();
    let plan = graph.plan();
    let planned: Vec<_> = plan.steps().map(|(step, _)| step).collect();
    assert_eq!(planned, ["total"]);
}

/// What the replay after an edit runs, and what was planned for it.
pub(crate) fn ran_and_planned(graph: &mut CodeGraph) -> (BTreeSet<String>, BTreeSet<String>) {
    let planned = graph.plan().steps().map(|(step, _)| step.to_owned()).collect();
    let ran = graph.replay().unwrap().executed().map(ToString::to_string).collect();
    (ran, planned)
}

/// Steps, the step to replace, its new source, and a step that then runs.
type Missed<'a> = (&'a [(&'a str, &'a str)], (&'a str, &'a str), &'a str);

const MISSED: &[Missed<'_>] = &[
    // A new name shares the object.
    (
        &[("make", "xs = [1, 2]"), ("edited", "it = 0"), ("holds", "pair = (xs, 4)")],
        ("edited", "it = enumerate(xs)"),
        "holds",
    ),
    (
        &[("make", "xs = [1, 2]\nd = {}"), ("edited", "pass"), ("holds", "pair = (xs, 4)")],
        ("edited", "d['xs'] = xs"),
        "holds",
    ),
    // A submodule is loaded by its name in a string.
    (
        &[("edited", "pass"), ("reads", "import xml.sax.saxutils as sax\nb = hasattr(pkg, 'one')")],
        ("edited", "__import__('xml.parsers')"),
        "reads",
    ),
    (
        &[("edited", "pass"), ("reads", "import xml.sax.saxutils as sax\nb = hasattr(pkg, 'one')")],
        ("edited", "from importlib import import_module as load\nload('xml.parsers')"),
        "reads",
    ),
    // A module gets another attribute.
    (
        &[("edited", "pass"), ("reads", "import math\nturn = math.tau")],
        ("edited", "import math\nmath.tau = 1"),
        "reads",
    ),
    (
        &[("edited", "pass"), ("reads", "import math as m\nturn = m.tau")],
        ("edited", "import math\nsetattr(math, 'tau', 1)"),
        "reads",
    ),
    (
        &[
            ("make", "def shift():\n    import math\n    math.tau = 1"),
            ("edited", "pass"),
            ("reads", "import math as m\nturn = m.tau"),
        ],
        ("edited", "shift()"),
        "reads",
    ),
    // A value that cannot be stored is made again for a step that reads every name.
    (
        &[("makes", "show = (z for z in [0])"), ("edited", "show = 4")],
        ("edited", "names = sorted(dir())"),
        "makes",
    ),
    // A call changes what a function remembers.
    (
        &[
            ("makes", "from functools import lru_cache\n@lru_cache\ndef cached(z): return z + 5"),
            ("edited", "pass"),
            ("again", "@lru_cache\ndef cached(z): return z"),
            ("info", "n = cached.cache_info().currsize"),
        ],
        ("edited", "c = cached(5)"),
        "again",
    ),
];

#[test]
fn steps_that_an_edit_affects_without_a_name_are_planned() {
    let mut wrong = Vec::new();
    for python in pythons() {
        for (steps, (edited, source), runs) in MISSED {
            let mut graph = graph(&python, steps);
            graph.replay().unwrap();
            graph.edit(|program| program.replace(edited, source)).unwrap();
            let (ran, planned) = ran_and_planned(&mut graph);
            if !ran.is_subset(&planned) || !planned.contains(*runs) {
                let python = python.display();
                wrong.push(format!("{python}: {source}\nran {ran:?}, planned {planned:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} plans:\n{}", wrong.len(), wrong.join("\n--\n"));
}
