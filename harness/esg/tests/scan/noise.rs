//! A scan succeeds for any source, and every position it reports is in the source.

use harness_esg::scan;
use proptest::prelude::*;

const SEEDS: &[&str] = &[
    "def f(a, b=c, *args, d: T = e, **kw):\n    global g\n    g = a + h\n    return [x for x in a if x]\n",
    "class A(B, metaclass=M):\n    x: int = y\n    @property\n    def p(self):\n        return __q\n",
    "for i, (j, *k) in enumerate(xs):\n    try:\n        t = f(i)\n    except E as e:\n        continue\n    finally:\n        del t\n",
    "match x:\n    case {'k': v, **rest} if v > 1:\n        y = f'{v!r:>{w}}'\n    case P(a=1) | [_, *_]:\n        z = lambda q: q\n",
    "with open(p) as fh, lock:\n    data = {k: v for k, v in fh}\n    xs[0].append(data)\n",
    "async def g():\n    async for x in y:\n        yield await x\nexec('a = b')\nglobals()['c'] = 1\n",
    "from a.b import c as d\nimport e.f\ntype X[T: U] = list[T]\nx = 1 if a else (b := c)\nwhile x:\n    break\n",
];

const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    "\n",
    "    ",
    "\t",
    "'",
    "\"\"\"",
    "f'{",
    "}",
    ".",
    ",",
    "=",
    ":=",
    "*",
    "**",
    "lambda",
    "def ",
    "class ",
    "return ",
    "yield ",
    "await ",
    "global ",
    "del ",
    "nonlocal ",
    "\\",
    "#",
    "\0",
    "é",
    "\u{2028}",
    "\u{feff}",
    "0x",
    "1e",
    "if ",
    "else:",
    "async ",
    "match ",
    "case ",
    "import ",
    "from ",
    "try:",
    "except* ",
    "finally:",
    "with ",
    "\r",
    "@",
    "->",
];

fn holds(source: &str) -> Result<(), TestCaseError> {
    let found = scan(source);
    let lines = source.split('\n').flat_map(|line| line.split('\r')).count();
    for error in &found.errors {
        prop_assert!(error.line >= 1 && error.line <= lines, "{source:?}: {error:?}");
        prop_assert!(error.column >= 1 && error.column <= source.chars().count() + 1);
    }
    for definition in &found.definitions {
        prop_assert!(source.get(definition.range.clone()).is_some(), "{definition:?}");
        prop_assert!(*definition.lines.end() <= lines && *definition.lines.start() >= 1);
    }
    prop_assert!(!found.reads.iter().any(|name| found.deferred_reads.contains(name)));
    prop_assert!(!found.writes.iter().any(|name| found.deferred_writes.contains(name)));
    prop_assert_eq!(scan(source), found);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(source in ".{0,200}") {
        holds(&source)?;
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        holds(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn python_with_something_wrong(
        seeds in proptest::collection::vec(0..SEEDS.len(), 1..4),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..8, 0..PIECES.len()), 1..12),
    ) {
        let mut source: Vec<char> = seeds.iter().flat_map(|seed| SEEDS[*seed].chars()).collect();
        for (at, gone, piece) in cuts {
            let at = at.index(source.len() + 1);
            let end = (at + gone).min(source.len());
            source.splice(at..end, PIECES[piece].chars());
        }
        holds(&source.into_iter().collect::<String>())?;
    }
}
