use std::fmt::Write as _;

use super::{Part, Parts, cuts, margins, read, read_at, whole};
use crate::scan::Scan;
use crate::scan::answer::answer;
use crate::scan::parse::{Tree, parse};

/// Pieces that may stand before or after a cut, whole or cut themselves.
const PIECES: &[&str] = &[
    "import os\nfrom a.b import c as d\nx = os.path\n",
    "def f(a, b=c, *args):\n    global g\n    g = a + h\n\n    return [x for x in a if x]\n",
    "@decorated\n@again(1)\nclass A(B, metaclass=M):\n    x: int = y\n\n    def p(self):\n        return __q\n",
    "if a:\n    b = 1\nelif c:\n    b = 2\nelse:\n    b = 3\n",
    "try:\n    t = f(i)\nexcept E as e:\n    pass\nelse:\n    u = 1\nfinally:\n    del t\n",
    "for i in xs:\n    y = i\nelse:\n    z = 1\n",
    "while x:\n    break\nelse: z = 2\n",
    "text = '''\ndef not_a_function():\nimport nothing\nclass A: pass\n'''\n",
    "text = f\"\"\"\nclass {a}:\n{b +\nc}\n@d\n\"\"\"\n",
    "t = (a,\ndef_ ,\nb\n)\nu = {\nimport_: 1}\n",
    "f(\na,\nlambda: b\n)\n",
    "a = 1 + \\\nb\nif a and \\\r\nb:\n    pass\n",
    "match x:\n    case {'k': v, **rest} if v > 1:\n        y = v\nmatch = 1\ncase = 2\ntype = 3\n",
    "# def comment():\n# \\\nx = 1 # \\\ny = 2\n",
    "x = 1\r\nasync def g():\r\n    yield await x\r\n\r\nz = 2\r\n",
    "'a docstring'\nfrom __future__ import annotations\n_private = __name__\n",
    "type X[T: U] = list[T]\nx = 1; y = 2; \nz: int\n",
    "if a:\n\tb\n    \n\x0c\nc = 1\n",
    "exec('a = b')\nglobals()['c'] = 1\nfrom star import *\n",
    "if a: pass\nassert b\ndel c\n",
];

/// Sources whose two parts do not stand by themselves.
const CUT: &[&str] = &[
    "x = '''\na = 1\n'''\n",
    "x = (\na\n)\n",
    "x = f'''{\na\n}'''\n",
    "@a\ndef f(): pass\n",
    "class A:\n    '''\nb = 1\n    '''\n",
    "if a:\nb = 1\n",
    "match x:\ncase = 1\n",
];

fn written(tree: &Tree) -> String {
    format!("{:?} {:?} {}", tree.module.body, tree.faults, tree.deep)
}

fn scanned(parts: Parts) -> Option<Scan> {
    match parts {
        Parts::Read(scan) => Some(*scan),
        Parts::Deep(_) | Parts::No => None,
    }
}

/// Compares what is read in two parts, wherever it may be cut, with what is read as one. Answers
/// how often there was something to compare.
fn compared(source: &str) -> usize {
    let one = parse(source);
    let scan = answer(source, usize::MAX);
    let mut count = 0;
    for at in margins(source, 0..source.len()) {
        let halves = scanned(read_at(source, &[at]));
        // `whole` also merges parts of which none is deep.
        let parts = [0..at, at..source.len()].map(Part::new);
        let parts = match whole(source, parts.into()) {
            Parts::Deep(tree) => Some(tree),
            Parts::Read(_) | Parts::No => None,
        };
        assert_eq!(halves.is_some(), parts.is_some(), "cut at {at}: {source}");
        if let Some((halves, parts)) = halves.zip(parts) {
            assert_eq!(written(&parts), written(&one), "cut at {at}: {source}");
            assert!(parts.module.range == one.module.range, "cut at {at}: {source}");
            assert_eq!(halves, scan, "cut at {at}: {source}");
            count += 1;
        }
    }
    let all: Vec<usize> = margins(source, 0..source.len()).collect();
    if let Some(parts) = scanned(read_at(source, &all)) {
        assert_eq!(parts, scan, "cut at {all:?}: {source}");
    }
    count
}

#[test]
fn parts_are_what_the_whole_is() {
    let mut count = 0;
    for before in PIECES {
        for after in PIECES {
            count += compared(&format!("{before}{after}"));
        }
    }
    assert!(count > PIECES.len() * PIECES.len(), "{count} comparisons");
}

#[test]
fn what_cannot_stand_alone_is_not_cut() {
    for source in CUT {
        assert!(margins(source, 0..source.len()).next().is_some(), "{source}");
        assert_eq!(compared(source), 0, "{source}");
    }
    for source in
        ["x = 1 + \\\ny\n", "x = 1 + \\\r\ny\n", "if a: b\nelse: c\n", "f(\n)\n", "x\n y\n"]
    {
        assert_eq!(margins(source, 0..source.len()).count(), 0, "{source}");
    }
}

/// Pieces in some order, with names of their own.
fn pieces(count: usize, step: usize) -> String {
    let mut source = String::new();
    for n in 0..count {
        let _ = writeln!(source, "{}v{n} = f(v{})", PIECES[n * step % PIECES.len()], n / 2);
    }
    source
}

#[test]
fn scans_do_not_depend_on_the_parts() {
    let mut parted = 0;
    for (count, step) in [(3, 1), (50, 3), (400, 7), (3_000, 11), (3_000, 13)] {
        // One has a future import in its middle, which is a fault that the grammar does not see.
        for future in ["from __future__", "from present"] {
            let source = pieces(count, step).replace("from __future__", future);
            let whole = answer(&source, usize::MAX);
            parted += usize::from(matches!(read(&source), Parts::Read(_)));
            assert_eq!(answer(&source, 0), whole, "{count} pieces");
            assert_eq!(crate::scan::scan(&source), whole, "{count} pieces");
        }
    }
    // Most parts that were cut out of a text are put together again.
    assert!(parted >= 6, "{parted} in parts");
}

#[test]
fn faults_of_a_part_are_those_of_the_whole() {
    let pieces = pieces(60, 3);
    for fault in ["def f(:\n", "x = '''\n", "x = (\n", "return 1\n", "  y\n", "x = a b\n", "\0\n"] {
        for source in
            [format!("{fault}{pieces}"), format!("{pieces}{fault}"), pieces.replace("u = 1", fault)]
        {
            let whole = answer(&source, usize::MAX);
            assert!(!whole.errors.is_empty(), "{fault}");
            assert_eq!(answer(&source, 0), whole, "{fault}");
        }
    }
}

#[test]
fn a_deep_part_is_walked_and_dropped_where_there_is_room() {
    for links in [200, 5_000, 200_000] {
        let deep = format!("x = a{}\n", " + a".repeat(links));
        let half = "y = b\n".repeat(deep.len() / 3);
        for source in [
            format!("{deep}{half}"),
            format!("{half}{deep}"),
            format!("{deep}{half}{deep}"),
            format!("{deep}{half}x = (\n"),
            format!("x = )\n{half}{deep}"),
        ] {
            assert!(!cuts(&source).is_empty());
            assert_eq!(answer(&source, 0), answer(&source, usize::MAX), "{links} links");
        }
    }
}

#[test]
fn parts_are_put_together_that_were_cut_within_a_text() {
    let code = "def f(a):\n    return a + b\nc = f(d)\n".repeat(4);
    let line = "def not_a_function(:\n";
    let source = format!("{code}x = \"\"\"\n{}\"\"\"\n{code}", line.repeat(20));
    let text = code.len() + 8;
    let end = source.len() - code.len();
    // First one part is added, then two, four and eight.
    for (within, is_read) in [(1, true), (2, true), (15, true), (16, false)] {
        let cuts = (1..=within).map(|line_of| text + line_of * line.len());
        let cuts: Vec<usize> = [code.len()].into_iter().chain(cuts).chain([end]).collect();
        let parts = scanned(read_at(&source, &cuts));
        assert_eq!(parts.is_some(), is_read, "{within} cuts within");
        assert!(parts.is_none_or(|parts| parts == answer(&source, usize::MAX)));
    }
    let rows = |count| "x = 1\n".repeat(count);
    let source = format!("{}t = (\na,\n)\n{}", rows(2), rows(2));
    let cut = source.find("a,").unwrap_or_default();
    assert!(scanned(read_at(&source, &[cut])).is_none());
    assert!(scanned(read_at(&source, &[6, cut])).is_some());
}

#[test]
fn a_source_is_cut_where_a_definition_is_likely_to_begin() {
    let rows = "x = 1\n".repeat(10);
    let source = format!("{rows}{rows}y = 1\ndef f(): pass\n{rows}");
    let at = cuts(&source);
    assert!(at.iter().any(|at| source[*at..].starts_with("def")), "{at:?}");
    assert_eq!(cuts("x = 1\ny = 1\nz = 1\nw = 1\n"), [12]);
    assert!(cuts("x = [\n 1,\n 2,\n 3,\n 4,\n 5,\n 6]\n").is_empty());
}
