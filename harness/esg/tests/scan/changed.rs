//! Standard functions that change what they are given: the step that reads the name next must have
//! an edge from the step that calls one of them, whether the module was imported by the same step or
//! by an earlier one.
use harness_esg::{EdgeKind, Program, scan};

/// The module to import, and a source that changes `xs`.
const CHANGES: &[(&str, &str)] = &[
    ("import random", "random.shuffle(xs)"),
    ("from random import shuffle", "shuffle(xs)"),
    ("import heapq", "heapq.heapify(xs)"),
    ("import heapq", "heapq.heappush(xs, 4)"),
    ("from heapq import heappop", "low = heappop(xs)"),
    ("import heapq as h", "h.heapreplace(xs, 4)"),
    ("import heapq", "heapq.heappushpop(xs, 4)"),
    ("import bisect", "bisect.insort(xs, 4)"),
    ("from bisect import insort_left", "insort_left(xs, 4)"),
    ("import bisect", "bisect.insort_right(xs, 4)"),
    ("import json", "json.dump({}, xs)"),
    ("import pickle", "pickle.dump({}, file=xs)"),
    ("import marshal", "marshal.dump({}, xs)"),
    ("", "print(4, file=xs)"),
    ("", "print(4, **{'file': xs})"),
    ("import pprint", "pprint.pprint(4, stream=xs)"),
    ("import operator", "operator.iadd(xs, [4])"),
    ("import operator", "ys = operator.ior(xs, {4})"),
    ("from operator import setitem", "setitem(xs, 0, 4)"),
    ("import operator", "operator.delitem(xs, 0)"),
    ("import operator", "operator.methodcaller('append', 4)(xs)"),
    ("import struct", "struct.pack_into('i', xs, 0, 4)"),
    ("import shutil", "shutil.copyfileobj(xs, out)"),
    ("import shutil", "shutil.copyfileobj(src, xs)"),
    ("from collections import deque", "deque.append(xs, 4)"),
    ("import collections", "collections.OrderedDict.move_to_end(xs, 4)"),
    ("import functools", "functools.partial(xs.append, 5)()"),
    ("from functools import partial", "f = partial(list.append, xs)\nf(5)"),
    ("import types", "types.MethodType(list.append, xs)(4)"),
    ("import itertools", "ys = list(itertools.islice(xs, 2))"),
    ("from itertools import islice", "for y in islice(xs, 2): pass"),
    ("", "y = next(xs)"),
    ("import collections", "ys = collections.Counter(xs)"),
    ("", "m = xs.append\nm(4)"),
    ("", "m = getattr(xs, 'append')\nm(4)"),
    ("", "f = lambda: xs.append(4)\nf()"),
    ("", "setattr(xs, 'a', 4)"),
    ("", "xs += [4]"),
    ("import random", "random.Random(1).shuffle(xs)"),
    ("import csv", "csv.writer(xs).writerow([1])"),
    ("import array", "array.array.append(xs, 4)"),
    ("import io", "io.TextIOWrapper.write(xs, '4')"),
    ("import contextlib", "with contextlib.redirect_stdout(xs): print(4)"),
    ("import logging", "logging.StreamHandler(xs).emit(r)"),
];

/// Whether `n`, which reads `xs`, may need the step that changes it.
fn has_edge(import: &str, change: &str, apart: bool) -> bool {
    let mut program = Program::new();
    program.push("xs", "xs = make()").unwrap();
    let change = match apart {
        true => {
            program.push("import", import).unwrap();
            change.to_owned()
        }
        false => format!("{import}\n{change}"),
    };
    program.push("change", &change).unwrap();
    program.push("n", "n = use(xs)").unwrap();
    let edges = program.edges().into("n").unwrap();
    edges
        .iter()
        .any(|edge| edge.producer.as_step() == Some("change") && edge.kind != EdgeKind::Order)
}

#[test]
fn what_a_standard_function_changes_has_an_edge_to_its_readers() {
    let mut missed = Vec::new();
    for (import, change) in CHANGES {
        for apart in [false, true] {
            if !has_edge(import, change, apart) {
                missed.push(format!("{import}, {apart}: {change}\n    {:?}", scan(change)));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn what_a_standard_function_surely_changes_is_mutated() {
    for (import, change) in [
        ("import random", "random.shuffle(xs)"),
        ("from random import shuffle", "shuffle(xs)"),
        ("import heapq", "low = heapq.heappop(xs)"),
        ("from heapq import heapify", "heapify(xs)"),
        ("import bisect", "bisect.insort(xs, 4)"),
        ("import json", "json.dump({}, xs)"),
        ("import json", "json.dump({}, fp=xs)"),
        ("", "print(4, file=xs)"),
        ("import operator", "operator.iadd(xs, [4])"),
        ("import operator", "operator.setitem(xs, 0, 4)"),
        ("import operator", "operator.delitem(xs, 0)"),
        ("import operator", "operator.methodcaller('append', 4)(xs)"),
        ("import struct", "struct.pack_into('i', xs, 0, 4)"),
        ("import shutil", "shutil.copyfileobj(src, xs)"),
        ("from collections import deque", "deque.append(xs, 4)"),
        ("import functools", "functools.partial(xs.append, 5)()"),
        ("import types", "types.MethodType(f, xs)()"),
        ("", "m = xs.append\nm(4)"),
    ] {
        for source in [format!("{import}\n{change}"), change.to_owned()] {
            // A class that another step imported looks like any object.
            if source.starts_with("deque") {
                continue;
            }
            let found = scan(&source);
            assert!(found.mutates.contains("xs"), "{source}: {found:?}");
        }
    }
    // A function of the same name in the same step is followed instead.
    let found = scan("def shuffle(ys): return sorted(ys)\nzs = shuffle(xs)");
    assert!(!found.mutates.contains("xs"), "{found:?}");
}

#[test]
fn a_standard_function_is_known_by_any_name_that_the_step_gives_it() {
    for source in [
        "from random import shuffle as s\ns(xs)",
        "import random as r\nr.shuffle(x=xs)",
        "import heapq\npush = heapq.heappush\npush(xs, 4)",
        "from heapq import heappush as hp\npush = hp\npush(xs, 4)",
        "import bisect\nadd = into = bisect.insort\ninto(xs, 4)",
        "from collections import deque as D\nD.append(xs, 4)",
        "import collections as c\nadd = c.deque.append\nadd(xs, 4)",
        "from operator import methodcaller as m\nm('append', 4)(xs)",
        "import numpy as np\nnp.random.shuffle(xs)",
        "import numpy as np\nnp.add(a, b, out=xs)",
        "def f():\n    from json import dump as d\n    d({}, xs)\nf()",
        "import shutil\nshutil.copyfileobj(a, fdst=xs)",
    ] {
        let found = scan(source);
        assert!(found.mutates.contains("xs"), "{source}: {found:?}");
    }
    // A function of another module is unknown, and a method of another class is no function.
    for source in ["from mine import heappush\nheappush(xs, 4)", "log.append(xs)", "box.pop(xs)"] {
        let found = scan(source);
        assert!(
            !found.mutates.contains("xs") && found.escapes.contains("xs"),
            "{source}: {found:?}"
        );
    }
}

#[test]
fn type_parameters_that_the_step_evaluates_are_read() {
    for source in [
        "class A[T: (base := Base)]: pass\nA.__type_params__[0].__bound__",
        "def f[T: Base](): pass\nb = f.__type_params__[0].__bound__",
        "def f[T: (Base, Other)](): pass\nb = f.__type_params__[0].__constraints__[0]",
        "class A[T = Base]: pass\nb = A.__type_params__[0].__default__",
        "type A[T: Base] = list[T]\nb = A.__type_params__[0].__bound__",
        "type A = Base\nb = A.__value__",
    ] {
        let found = scan(source);
        assert!(found.reads.contains("Base"), "{source}: {found:?}");
    }
    // Left alone, they are read later, if ever.
    let found = scan("def f[T: Base](): pass");
    assert!(!found.reads.contains("Base") && found.deferred_reads.contains("Base"), "{found:?}");
}
