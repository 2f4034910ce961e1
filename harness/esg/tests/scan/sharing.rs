//! What a step leaves: sure writes, names that share an object, and what its bodies mutate later.
use std::fmt::Write as _;

use harness_esg::scan;

use super::cases::{own, set};

#[test]
fn names_that_every_good_end_leaves_bound_are_sure() {
    for (source, sure) in [
        ("x = 1", "x"),
        ("if a:\n    x = 1", ""),
        ("if a:\n    x = 1\nelse:\n    x = 2", "x"),
        ("for i in xs:\n    t = i", ""),
        ("x = 1\ndel x", ""),
        ("x = 1\nif a:\n    del x", ""),
        ("try:\n    x = f()\nexcept E:\n    pass", ""),
        ("try:\n    x = f()\nexcept E:\n    x = 0", "x"),
        ("try:\n    f()\nexcept E as e:\n    pass", ""),
        ("with a as b:\n    c = b", "b"),
        ("import os, sys as s\nfrom a import b", "os s b"),
        ("def f():\n    global x\n    x = 1\nf()", "f x"),
        ("def f():\n    global x\n    del x\nx = 1\nf()", "f"),
        ("x = 1\nexec(code)", ""),
        ("if a:\n    raise E\nx = 1", "x"),
        ("while True:\n    x = f()\n    if x:\n        break", "x"),
        ("match x:\n    case [a]:\n        b = 1\n    case _:\n        b = 2", "b"),
    ] {
        assert_eq!(own(&scan(source).sure_writes), set(sure), "{source}");
    }
}

#[test]
fn names_that_share_an_object_are_tied() {
    for (source, name, others) in [
        ("y = x", "y", "x"),
        ("y = x[0]", "y", "x"),
        ("y = [x, z]", "y", "x z"),
        ("y = f(x)", "y", "x"),
        ("y = x.get(k)", "y", "k x"),
        ("y = sorted(x)", "y", "x"),
        ("y = x if c else z", "y", "x z"),
        ("for r in rows:\n    pass", "r", "rows"),
        ("with a as b:\n    pass", "b", "a"),
        ("a = []\nb = a", "b", "a"),
        ("a = []\nb = [a]", "b", "a"),
        ("import sys\np = sys.path", "p", "sys"),
        ("def f(a=x):\n    pass", "f", "x"),
        ("def mk(a):\n    def g():\n        return a\n    return g\nh = mk(x)", "h", "x"),
        ("class A:\n    xs = []\na = A()", "a", "A"),
        ("y = 1", "y", ""),
        ("y = x + 1", "y", ""),
        ("y = x < z", "y", ""),
        ("y = not x", "y", ""),
        ("y = len(x)", "y", ""),
        ("y = f'{x}'", "y", ""),
        ("class A:\n    n = 1\na = A()", "a", ""),
        ("def f():\n    return x", "f", ""),
    ] {
        let found = scan(source);
        let aliases = found.aliases.get(name).cloned().unwrap_or_default();
        assert_eq!(own(&aliases), set(others), "{source}");
    }
}

#[test]
fn mutations_by_bodies_are_reported() {
    for (source, changed) in [
        ("def f():\n    xs.append(1)", "xs"),
        ("xs = []\ndef f():\n    xs.append(1)", "xs"),
        ("def f():\n    ys = xs\n    ys.append(1)", "xs"),
        ("def f():\n    g(xs)", "xs"),
        ("def f(a=xs):\n    a.append(1)", "xs"),
        ("ys = []\ndef f(a=ys):\n    a.append(1)", "ys"),
        ("def f():\n    def g():\n        xs.append(1)\n    return g", "xs"),
        ("f = lambda: xs.pop()", "xs"),
        ("class A:\n    def m(self):\n        log.append(self)", "log"),
        ("class A:\n    n = 0\n    def m(self):\n        A.n += 1", "A"),
        ("def f(xs):\n    xs.append(1)", ""),
        ("def f():\n    xs = []\n    xs.append(1)", ""),
        ("def f():\n    return xs", ""),
    ] {
        assert_eq!(own(&scan(source).deferred_mutates), set(changed), "{source}");
    }
}

/// A step that exceeds the budget of the precise walk.
fn large(tail: &str) -> String {
    let mut source = "pool = {}\n".to_owned();
    for at in 0..400 {
        let _ = writeln!(
            source,
            "def f{at}(a, b=d{at}):\n    pool[a] = f{}(b, pool)\n    return [a, b, pool, f{}(pool, a)]\n\
             v{at} = f{at}(pool, k{at})\npool = [v{at}, pool, f{at}]",
            at * 7 % 400,
            at * 3 % 400,
        );
    }
    source + tail
}

#[test]
fn what_is_too_much_to_follow_is_answered_coarsely_but_in_full() {
    let found = scan(&large(
        "def late():\n    return unseen\ndef run():\n    global made\n    made = seen\n\
         run()\nlast = 1\nfor i in xs:\n    maybe = 1\ndel gone\n",
    ));
    assert!(found.errors.is_empty() && !found.opaque);
    for name in ["d0", "k399", "seen", "xs", "gone"] {
        assert!(found.reads.contains(name), "{name}");
        assert!(found.mutates.contains(name) && found.escapes.contains(name), "{name}");
    }
    for name in ["pool", "v0", "run", "last"] {
        assert!(!found.reads.contains(name), "{name}");
        assert!(found.sure_writes.contains(name), "{name}");
    }
    for name in ["made", "maybe", "i"] {
        assert!(found.writes.contains(name) && !found.sure_writes.contains(name), "{name}");
    }
    assert_eq!(own(&found.deferred_reads), set("unseen"));
    assert_eq!(own(&found.deletes), set("gone"));
    assert!(found.deferred_mutates.contains("pool") && found.deferred_mutates.contains("unseen"));
    // The names that share an object are linked, directly or through other names.
    let mut open = vec!["v7".to_owned()];
    let mut tied = set("");
    while let Some(name) = open.pop() {
        if tied.insert(name.clone()) {
            let to = found.aliases.get(&name).into_iter().flatten().map(str::to_owned);
            let from = found.aliases.iter().filter(|(_, others)| others.contains(&name));
            open.extend(to.chain(from.map(|(other, _)| other.to_owned())));
        }
    }
    assert!(tied.contains("pool") && tied.contains("k3") && tied.contains("v399"));
}
