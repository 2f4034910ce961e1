use std::collections::HashMap;
use std::hash::{Hash as _, Hasher};

use super::Identity;
use crate::scan::parse::{Stmt, ast, parse};

/// The bytes that the parser's own comparison of code hashes.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

fn comparable(body: &[Stmt]) -> Vec<u8> {
    let mut bytes = Bytes::default();
    for statement in body {
        ast::comparable::ComparableStmt::from(statement).hash(&mut bytes);
    }
    bytes.0
}

fn of_tree(body: &[Stmt], source: &str) -> [u8; 32] {
    let mut identity = Identity::new(source);
    body.iter().for_each(|statement| identity.add(statement));
    identity.done().0
}

const EXPRESSIONS: &str = r#"
x|y|_x|__x|x.y|x.y.z|(x)|((x))|x()|x(1)|x(1, 2)|x(a=1)|x(*a)|x(**a)|x(1, *a)|x(*a, b=1)|x(b=1, c=1)
1|0x1|0b1|01.0|1.0|1.|1e0|1j|1.0j|2|-1|- 1|--x|+x|~x|not x|10|1_0|0.0|-0.0|0j|1e400
18446744073709551615|18446744073709551616|0x10000000000000000|254|255|256
'a'|"a"|'''a'''|r'a'|u'a'|b'a'|rb'a'|'\x61'|'a' 'b'|'ab'|'' 'ab'|b'a' b'b'|b'ab'|b''|''|'b'|'\\'|'\xff'
f''|f'a'|f'a' 'b'|f'ab'|'a' f'b'|f'{x}'|F'{x}'|f'{ x }'|f'{x!r}'|f'{x!s}'|f'{x!a}'|f'{x:a}'|f'{x:{y}}'
f'{x:{y}a}'|f'{x:a{y}}'|f'{x=}'|f'{x =}'|f'{x=!r}'|f'{x}{y}'|f'{x} {y}'|f'{x}' f'{y}'|f'{x}' 'a' f'{y}'
f'{x}a{y}'|f'{x}a' f'{y}'|f'{{'|'{'|f'a{x}'|f'{x}a'|f'' ''|f'{x:}'|f'{x,}'|f'{(x,)}'|f'{x!r:a}'
True|False|None|...|()|(x,)|(x, y)|[]|[x]|[x, y]|[x, y,]|[[x], y]|[[x, y]]|{}|{x}|{x, y}|{x: y}|{**x}
{x: y, **z}|{**z, x: y}|{None: y}|x[y]|x[y, z]|x[(y, z)]|x[:]|x[::]|x[y:]|x[:y]|x[::y]|x[y:z]|x[:y:z]|x[*y]
x+y|x-y|x*y|x@y|x/y|x//y|x%y|x**y|x<<y|x>>y|x|x&y|x^y|x+y+z|x+(y+z)|(x+y)+z|-x**y|(-x)**y|y+x
x<y|x<=y|x>y|x>=y|x==y|x!=y|x is y|x is not y|x in y|x not in y|not x in y|x<y<z|(x<y)<z|x<(y<z)
x and y|x or y|x and y and z|(x and y) and z|x and (y and z)|x or y and z|(x or y) and z
x if y else z|z if y else x|lambda: x|lambda x: x|lambda x=1: x|lambda *x: x|lambda **x: x|lambda *, x: x
lambda x, /: x|lambda x, y: x|lambda x, *y: x|lambda x, **y: x|lambda x, /, y: x|lambda x, *, y: x
[x for x in y]|{x for x in y}|{x: x for x in y}|(x for x in y)|[x for x in y if z]|[x for x in y if z if w]
[x for x in y for z in w]|[x for x, in y]|[x async for x in y]|f(x for x in y)|f((x for x in y))|(x := y)
await x|(yield)|(yield x)|(yield from x)|(yield x, y)|(yield (x, y))|[*x]|(*x,)|[*x, y]|[x, *y]
'\u00e9'|'é'|'\N{LATIN SMALL LETTER E WITH ACUTE}'|ﬁ|fi|µ|μ
"#;

const STATEMENTS: &[&str] = &[
    "%",
    "a = %",
    "a = b = %",
    "a: int = %",
    "a: %",
    "(a): %",
    "a.b: %",
    "a += %",
    "a -= %",
    "return %",
    "del a[%]",
    "raise %",
    "raise a from %",
    "assert %",
    "assert %, a",
    "assert a, %",
    "if %: pass",
    "if a: %",
    "if a: pass\nelif %: pass",
    "if a: pass\nelse: %",
    "if a: pass\nelse:\n  if %: pass",
    "if a: %\nelse: pass",
    "while %: pass",
    "while a: %",
    "while a: pass\nelse: %",
    "for a in %: pass",
    "async for a in %: pass",
    "for a in b: %",
    "for a in b: pass\nelse: %",
    "with %: pass",
    "with % as a: pass",
    "with a: %",
    "async with %: pass",
    "with a, %: pass",
    "with a:\n  with %: pass",
    "try: %\nexcept a: pass",
    "try: %\nexcept: pass",
    "try: %\nexcept a as b: pass",
    "try: %\nexcept* a: pass",
    "try: %\nfinally: pass",
    "try: pass\nexcept a: %",
    "try: pass\nexcept a: pass\nelse: %",
    "try: pass\nexcept a: pass\nfinally: %",
    "def f(): %",
    "async def f(): %",
    "def f(a=%): pass",
    "def f(a, /, b=%): pass",
    "def f(*, a=%): pass",
    "def f(a: %): pass",
    "def f(*a: %): pass",
    "def f(**a: %): pass",
    "def f() -> %: pass",
    "def f[T](): %",
    "def f[*T](): %",
    "def f[**T](): %",
    "def f[T: %](): pass",
    "def f[T = %](): pass",
    "@%\ndef f(): pass",
    "@a\n@%\ndef f(): pass",
    "class A: %",
    "class A(): %",
    "class A(%): pass",
    "class A(a=%): pass",
    "class A[T]: %",
    "@%\nclass A: pass",
    "type A = %",
    "type A[T] = %",
    "match %:\n  case _: pass",
    "match a:\n  case _ if %: pass",
    "match a:\n  case 1: %",
    "pass; %",
    "pass\n%  # why",
];

const OTHERS: &str = r#"
pass|break|continue|return|raise|global a|global a, b|nonlocal a|import a|import a.b|import a as b|import a, b
from a import b|from a import b as c|from a import b, c|from a import (b, c)|from . import a|from .. import a
from .a import b|from ..a import b|from a import *|del a|del a, b|del (a, b)|del [a, b]|a: int|(a): int
"#;

const PATTERNS: &[&str] = &[
    "1",
    "-1",
    "1+2j",
    "'a'",
    "None",
    "True",
    "False",
    "x",
    "_",
    "x.y",
    "[a]",
    "(a,)",
    "a,",
    "[a, b]",
    "[a, *b]",
    "[a, *_]",
    "[*a, b]",
    "[]",
    "()",
    "{}",
    "{1: a}",
    "{1: a, **r}",
    "{**r}",
    "{1: a, 2: b}",
    "A()",
    "A(a)",
    "A(a, b)",
    "A(b=a)",
    "A(a, b=c)",
    "1 | 2",
    "2 | 1",
    "1 as x",
    "(1 | 2) as x",
    "(1)",
    "[[a], b]",
    "[[a, b]]",
    "x.y.z()",
];

fn sources() -> Vec<String> {
    let words = |text: &'static str| {
        // `|` is an operator too, always written with spaces around it.
        text.lines().flat_map(|line| line.split('|')).map(str::trim).filter(|one| !one.is_empty())
    };
    let mut all: Vec<String> = words(OTHERS).map(str::to_owned).collect();
    for expression in words(EXPRESSIONS).chain(["x | y"]) {
        all.extend(STATEMENTS.iter().map(|form| form.replace('%', expression)));
    }
    all.extend(PATTERNS.iter().map(|one| format!("match q:\n  case {one}: pass")));
    all
}

/// Code has the same identity exactly if the parser considers it equal.
#[test]
fn code_is_the_same_where_its_tree_is() {
    let mut by_tree: HashMap<Vec<u8>, ([u8; 32], String)> = HashMap::new();
    let mut by_identity: HashMap<[u8; 32], (Vec<u8>, String)> = HashMap::new();
    let mut read = 0;
    for source in sources() {
        let tree = parse(&source);
        if !tree.faults.is_empty() {
            continue;
        }
        read += 1;
        let theirs = comparable(&tree.module.body);
        let ours = of_tree(&tree.module.body, &source);
        let (before, first) =
            by_tree.entry(theirs.clone()).or_insert_with(|| (ours, source.clone()));
        assert_eq!(*before, ours, "the same code:\n{first}\n\n{source}");
        let (before, first) =
            by_identity.entry(ours).or_insert_with(|| (theirs.clone(), source.clone()));
        assert_eq!(*before, theirs, "other code:\n{first}\n\n{source}");
    }
    assert!(read > 15_000, "only {read} sources were read");
    assert!(by_tree.len() > 10_000, "only {} were distinguished", by_tree.len());
}

fn identity(source: &str) -> [u8; 32] {
    let tree = parse(source);
    assert!(tree.faults.is_empty(), "{:?}", tree.faults);
    of_tree(&tree.module.body, source)
}

/// The tree has the same character for every half of a surrogate pair.
#[test]
fn halves_of_surrogate_pairs_are_distinguished() {
    let strings = [
        r"'\ud800'",
        r"'\ud801'",
        r"'\uFFFD'",
        r"'\U0000d802'",
        r"'\ud800' 'a'",
        r"'a' '\ud800'",
        r"f'\ud800'",
        r"f'\ud801'",
        r"f'{x:\ud800}'",
        r"f'{x:\ud801}'",
    ];
    let all: std::collections::HashSet<[u8; 32]> =
        strings.iter().map(|one| identity(&format!("a = {one}"))).collect();
    assert_eq!(all.len(), strings.len());
    assert_eq!(identity(r"a = '\ud800'  # half"), identity(r"a = ('\ud800')"));
}

#[test]
fn lists_of_many_do_not_run_together() {
    let many = |count: usize, rest: &str| identity(&format!("f({}{rest})", "x, ".repeat(count)));
    for count in [252, 253, 254, 255, 256, 300] {
        assert_ne!(many(count, ""), many(count + 1, ""));
        assert_eq!(many(count + 1, ""), many(count, "x"));
    }
}
