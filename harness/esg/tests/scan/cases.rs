//! Small steps, each with its reads, deferred reads, writes, mutations and deletes.
use std::collections::BTreeSet;

use harness_esg::{NameSet, scan};

/// A step, and its reads, deferred reads, writes, mutations and deletes.
type Case = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

pub(crate) fn set(listed: &str) -> BTreeSet<String> {
    listed.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn own(names: &NameSet) -> BTreeSet<String> {
    names.iter().map(str::to_owned).collect()
}

/// The step in a source that is large enough for the coarse walk.
pub(crate) fn large(source: &str) -> String {
    format!("{source}\n#{}\n", " ".repeat(70_000))
}

/// Fails with every case that differs. What escapes may also count as mutated.
pub(crate) fn check(cases: &[Case]) {
    let mut wrong = Vec::new();
    for &(source, reads, late, writes, mutates, deletes) in cases {
        let found = scan(source);
        let mutated = own(&found.mutates);
        let changed: BTreeSet<_> = mutated.difference(&own(&found.escapes)).cloned().collect();
        let complete = found.errors.is_empty()
            && own(&found.reads) == set(reads)
            && own(&found.deferred_reads) == set(late)
            && own(&found.writes) == set(writes)
            && changed.is_subset(&set(mutates))
            && set(mutates).is_subset(&mutated)
            && own(&found.deletes) == set(deletes);
        if complete {
            // The coarse walk of a large source misses nothing.
            let found = scan(&large(source));
            let read = own(&found.reads);
            let all: BTreeSet<_> = read.union(&own(&found.deferred_reads)).cloned().collect();
            let sound = found.errors.is_empty()
                && set(reads).is_subset(&read)
                && set(late).is_subset(&all)
                && set(writes) == own(&found.writes)
                && set(mutates).is_subset(&own(&found.mutates))
                && set(deletes) == own(&found.deletes);
            if !sound {
                wrong.push(format!("{source}\n  in a large source: {found:#?}"));
            }
        } else {
            wrong.push(format!("{source}\n  expected R={reads} late={late} W={writes} M={mutates} D={deletes}\n  {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn steps_that_other_analyzers_get_wrong() {
    check(&[
        ("x = 5\ny = x + 3", "", "", "x y", "", ""),
        ("y = x\nx = 1", "x", "", "x y", "", ""),
        (r#""""x = y""""#, "", "", "", "", ""),
        ("if c:\n    x = 1\nprint(x)", "c x", "", "x", "", ""),
        ("for i in xs:\n    t = i\nprint(t)", "t xs", "", "i t", "", ""),
        ("try:\n    x = f()\nexcept E:\n    pass\nprint(x)", "E f x", "", "x", "", ""),
        ("try:\n    f()\nexcept E as e:\n    print(e)", "E f", "", "e", "", "e"),
        ("with cm:\n    y = f()\nprint(y)", "cm f y", "", "y", "", ""),
        ("x += y", "x y", "", "x", "x", ""),
        ("xs.append(1)", "xs", "", "", "xs", ""),
        ("d[k] = v", "d k v", "", "", "d", ""),
        ("o.a = v", "o v", "", "", "o", ""),
        ("ys = xs\nys.append(1)", "xs", "", "ys", "xs", ""),
        ("for r in rows:\n    r.append(1)", "rows", "", "r", "rows", ""),
        ("def f():\n    xs.append(1)\nf()", "xs", "", "f", "xs", ""),
        ("def f():\n    return k", "", "k", "f", "", ""),
        ("def f():\n    return k\ny = f()\nk = 1", "k", "", "f k y", "", ""),
        ("@deco(arg)\ndef f():\n    return x", "arg deco x", "", "f", "", ""),
        ("def f(k):\n    return k\ny = f(z)", "z", "", "f y", "", ""),
        ("def f():\n    print(k)\n    k = 1", "", "", "f", "", ""),
        ("def f():\n    global total\n    total = n\nf()\ny = total", "n", "", "f total y", "", ""),
        (
            "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += step\n        return n\n    return g\nc = f()\nv = c()",
            "step",
            "",
            "c f v",
            "",
            "",
        ),
        ("def f(a=(w := q)):\n    return a", "q", "", "f w", "", ""),
        ("ys = sorted(xs, key=lambda r: r + off)", "off xs", "", "ys", "", ""),
        ("class A:\n    x = y", "y", "", "A", "", ""),
        ("class A:\n    x = 1\nprint(x)", "x", "", "A", "", ""),
        ("class A:\n    x = 1\n    def f(self):\n        return x", "", "x", "A", "", ""),
        ("class A:\n    n = 3\n    xs = [n for _ in range(2)]", "n", "", "A", "", ""),
        ("class A:\n    if c:\n        x = 1\n    y = x", "c x", "", "A", "", ""),
        ("class A:\n    def f(self):\n        return __secret", "", "_A__secret", "A", "", ""),
        ("class A:\n    def __init__(self):\n        self.v = k\na = A()", "k", "", "A a", "", ""),
        ("@register\nclass A:\n    def m(self):\n        return k", "k register", "", "A", "", ""),
        ("ys = [x for x in xs]\nprint(x)", "x xs", "", "ys", "", ""),
        ("zs = [y := i for i in xs]", "xs", "", "y zs", "", ""),
        ("zs = [y := i for i in xs]\nprint(y)", "xs y", "", "y zs", "", ""),
        ("g = (a * i for i in ys)", "ys", "a", "g", "", ""),
        ("import os.path", "", "", "os", "", ""),
        ("from pkg import *", "", "", "", "", ""),
        ("del x", "x", "", "", "", "x"),
        ("if c:\n    del x\ny = x", "c x", "", "y", "", "x"),
        ("y = list(x)\nlist = 3", "x", "", "list y", "", ""),
        ("exec('y = x + 1')", "x", "", "y", "", ""),
        ("globals()['x'] = v", "v", "", "x", "", ""),
        ("s = f'{x:{w}.{p}}'", "p w x", "", "s", "", ""),
        ("s = f'{(y := x)}'\nz = y", "x", "", "s y z", "", ""),
        ("match x:\n    case [a, *rest]:\n        y = a", "x", "", "a rest y", "", ""),
        ("match x:\n    case [a]:\n        y = 1\nprint(y)", "x y", "", "a y", "", ""),
        ("x: T", "T", "", "", "", ""),
        ("from __future__ import annotations\nx: T = v", "v", "", "annotations x", "", ""),
        ("async for i in xs:\n    t = i\nprint(t)", "t xs", "", "i t", "", ""),
        (
            "class A:\n    @property\n    def p(self):\n        return k\nv = A().p",
            "k",
            "",
            "A v",
            "",
            "",
        ),
        (
            "class V:\n    def __add__(self, o):\n        return k\nv = V() + 1",
            "k",
            "",
            "V v",
            "",
            "",
        ),
        (
            "import random\nrandom.seed(seed)\nx = random.random()",
            "seed",
            "",
            "random x",
            "random",
            "",
        ),
        ("x = a\ny = 1 / 0\nz = b", "a", "", "x", "", ""),
        ("ﬁ = 1\ny = fi", "", "", "fi y", "", ""),
    ]);
}
