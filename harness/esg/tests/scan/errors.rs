//! Every syntax error is reported with its position, and nothing else is.

use harness_esg::scan;

/// Each of these is refused by CPython 3.13.
const ILLEGAL: &[&str] = &[
    "return x",
    "yield x",
    "nonlocal x",
    "def f():\n    nonlocal x",
    "def f():\n    x = 1\n    global x",
    "def f():\n    print(x)\n    global x",
    "x = 1\nglobal x",
    "def f(x):\n    global x",
    "def f(x):\n    nonlocal x",
    "def f():\n    global x\n    nonlocal x",
    "def f():\n    x = 1\n    def g():\n        print(x)\n        nonlocal x",
    "def f(a, a):\n    pass",
    "lambda a, a: 1",
    "def f(a=1, b):\n    pass",
    "f(a=1, a=2)",
    "f(a=1, b)",
    "f(**a, *b)",
    "1 = x",
    "None = x",
    "True = 1",
    "__debug__ = 1",
    "def __debug__():\n    pass",
    "f() = 1",
    "f() += 1",
    "(a, b) += 1",
    "a + b = 1",
    "*a = b",
    "*a, *b = c",
    "x = *a",
    "del f()",
    "del 1",
    "(x := 1) = 2",
    "x := 1",
    "[i for i in (j := xs)]",
    "[(i := 1) for i in xs]",
    "class A:\n    ys = [(z := i) for i in xs]",
    "break",
    "continue",
    "if x:\n    break",
    "for x in y:\n    def f():\n        break",
    "for x in y:\n    class A:\n        continue",
    "class A:\n    return 1",
    "class A:\n    yield 1",
    "class A:\n    x = await f()",
    "def f():\n    await g()",
    "def f():\n    async for x in y:\n        pass",
    "def f():\n    async with x:\n        pass",
    "def f():\n    [x async for x in y]",
    "async def f():\n    yield from x",
    "async def f():\n    yield 1\n    return 2",
    "def f():\n    [(yield x) for x in y]",
    "def f():\n    from m import *",
    "class A:\n    from m import *",
    "x = 1\nfrom __future__ import annotations",
    "from __future__ import nothing",
    "from __future__ import braces",
    "match x:\n    case n:\n        pass\n    case 1:\n        pass",
    "match x:\n    case [a, a]:\n        pass",
    "match x:\n    case [a] | [b]:\n        pass",
    "match x:\n    case {'k': 1, 'k': 2}:\n        pass",
    "match x:\n    case [*a, *b]:\n        pass",
    "match x:\n    case P(a=1, a=2):\n        pass",
    "try:\n    pass\nexcept:\n    pass\nexcept E:\n    pass",
    "try:\n    pass\nexcept* E:\n    pass\nexcept F:\n    pass",
    "for i in x:\n    try:\n        pass\n    except* E:\n        break",
    "def f():\n    try:\n        pass\n    except* E:\n        return",
    "try:\n    pass",
    "x = 1\0",
    "x = (",
    "x = )",
    "if x:\npass",
    "if x:\n    a\n  b",
    "print x",
    "x = 'abc",
    "x = f'{a'",
    "x = f'{}'",
    "x = f'{a!x}'",
    "x = 012",
    "x = 1__0",
    "x = 0b2",
    "b'\u{e9}'",
    "x = '\\x1'",
    "def f[T, T]():\n    pass",
    "def f[T: (yield)]():\n    pass",
    "type X = (yield)",
    "class A[T]((x := 1)):\n    pass",
    "a, b: int",
    "(a, b): int",
    "with open(x) as 1:\n    pass",
    "for 1 in x:\n    pass",
    "import a.b as c.d",
    "from . import *, a",
    "def f():\n    x: int\n    global x",
    "def f():\n    global x\n    x: int = 1",
    "class A:\n    nonlocal x",
    "class A:\n    x = 1\n    global x",
    "lambda: (yield from x) = 1",
    "assert (yield) = 1",
    "async x",
    "a = 1 if b",
    "else:\n    pass",
    "def f(*):\n    pass",
    "def f(**a, b):\n    pass",
    "def f(a, *, **k):\n    pass",
    "raise x from",
    "x = {**a for a in b}",
    "x = [*a for a in b]",
    "f(x for x in y, 1)",
    "class A(x for x in y):\n    pass",
    "\u{2028}x = 1",
    "x = 5 \u{20ac} 6",
];

/// None of these is refused.
const LEGAL: &[&str] = &[
    "",
    "x = await f()",
    "async for x in y:\n    pass",
    "async with x as y:\n    pass",
    "[x async for x in y]",
    "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2",
    "def f():\n    def g():\n        nonlocal x\n    x = 1",
    "global x\nx = 1",
    "def f():\n    global x, y\n    x = y = 1",
    "class A:\n    global x\n    x = 1",
    "def f():\n    yield",
    "def f():\n    x = [i for i in (yield)]",
    "lambda: (yield)",
    "f(a, *b, c, d=1, *e, **g)",
    "for x in y:\n    pass\nelse:\n    pass",
    "for x in y:\n    try:\n        continue\n    finally:\n        break",
    "for x in y:\n    for z in x:\n        break\n    else:\n        continue",
    "try:\n    pass\nexcept* E:\n    for x in y:\n        break",
    "'doc'\nfrom __future__ import annotations\nx: T",
    "from __future__ import annotations, division",
    "match x:\n    case [a, *_]:\n        pass\n    case _:\n        pass",
    "match = case = type = 1",
    "def f(a, /, b, *, c, **k):\n    pass",
    "def f[T: int, *Ts, **P](a: T) -> T:\n    return a",
    "type X[T] = list[T]",
    "class A[T](B[T]):\n    pass",
    "x = f'{a!r:>{w}}' f'{b=}'",
    "*a, b = c",
    "x = *a, b",
    "print(*a, sep='')",
    "a: int\nb: int = 1\n(c): int = 2\nd.e: int = 3",
    "with (a as b, c as d):\n    pass",
    "if (n := 1) > 0:\n    pass",
    "[y := 1, y]",
    "[(y := x) for x in z]",
    "@(lambda f: f)\ndef g():\n    pass",
    "x = 1; y = 2;",
    "if x:\n\ty = 1\nelse:\n\ty = 2",
    "\u{feff}x = 1",
    "del (a), [b, c]",
    "async def f():\n    return [await x async for x in y]",
    "def f():\n    return (await x for x in y)",
    "try:\n    pass\nexcept (A, B) as e:\n    raise\nelse:\n    pass\nfinally:\n    pass",
];

#[test]
fn syntax_errors_are_reported_with_their_position() {
    let mut missed = Vec::new();
    for source in ILLEGAL {
        let errors = scan(source).errors;
        if errors.is_empty() {
            missed.push(*source);
        }
        for error in errors {
            assert!(!error.message.is_empty());
            let lines: Vec<&str> = source.split('\n').collect();
            assert!(error.line >= 1 && error.line <= lines.len(), "{source:?}: {error:?}");
            let width = lines[error.line - 1].chars().count();
            assert!(error.column >= 1 && error.column <= width + 1, "{source:?}: {error:?}");
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn nothing_else_is_refused() {
    let mut wrong = Vec::new();
    for source in LEGAL {
        let errors = scan(source).errors;
        if !errors.is_empty() {
            wrong.push((source, errors));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_place_is_a_line_and_a_column_in_characters() {
    let errors = scan("x = 1\né = ééé + return\n").errors;
    assert_eq!((errors[0].line, errors[0].column), (2, 11), "{errors:?}");
}

#[test]
fn what_parses_is_scanned_despite_errors() {
    let found = scan("import os\nx = a +\ny = b\n");
    assert!(!found.errors.is_empty());
    assert!(found.reads.contains("b") && found.writes.contains("y"), "{found:?}");
}
