//! What scanning a step costs, beside parsing it.

use harness::esg::scan;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};

use super::{Figure, compare};

/// Small steps of every kind that programs have.
const STEPS: &[&str] = &[
    "x = 5",
    "y = x + 3",
    "rows = [r for r in rows if r['v'] > 2]",
    "total = sum(r['v'] for r in rows)",
    "import numpy as np",
    "df['c'] = df['a'] + off",
    "def area(r):\n    return 3.14 * r ** 2",
    "a = area(3)\nprint(a)",
    "for i in xs:\n    total += i",
    "if total > limit:\n    status = 'high'",
    "xs.append(y)",
    "model.compatibility(X, y)",
    "result = {k: v for k, v in pairs.items() if v}",
    "with open(path) as fh:\n    data = fh.read()",
    "try:\n    n = int(text)\nexcept ValueError:\n    n = 0",
    "s = f'{name}: {total:.2f}'",
    "a, b = b, a",
    "assert check(result), result",
    "from math import sqrt, pi",
    "ys = sorted(xs, key=lambda r: r[0] + off)",
];

/// A large source: functions, classes and top-level code, all with different names.
fn large() -> String {
    use std::fmt::Write as _;
    let mut source = String::new();
    for n in 0..4_000 {
        let _ = write!(
            source,
            "import module_{n} as m{n}\n\n\
             def function_{n}(first, second=DEFAULT_{n}, *rest):\n    \
             \"\"\"Adds the items to the first two arguments.\"\"\"\n    \
             total = first + second * FACTOR_{n}\n    \
             for item in rest:\n        \
             if item is not None and item.value > total:\n            \
             total += item.value\n    \
             return total\n\n\
             class Class_{n}(Base_{n}):\n    \
             count = 0\n\n    \
             def method(self, value):\n        \
             self.value = helper(value)[{n}]\n        \
             return [x for x in self.value if x]\n\n\
             value_{n} = m{n}.call(value_a, {n}) + 1\n"
        );
    }
    source
}

fn parse(source: &str) {
    std::hint::black_box(parse_unchecked(source, ParseOptions::from(Mode::Module)));
}

/// Nanoseconds per small step, at most 20,000, and megabytes per second of a large source, at least 20.
pub(super) fn scans() -> Vec<Figure> {
    let small = compare(
        "esg-scan small".to_owned(),
        STEPS.len() as u64 * 20,
        || {
            for step in STEPS.iter().cycle().take(STEPS.len() * 20) {
                std::hint::black_box(scan(step));
            }
        },
        || STEPS.iter().cycle().take(STEPS.len() * 20).for_each(|step| parse(step)),
    );
    let source = large();
    let mega = source.len() as f64 / 1e6;
    let large = compare(
        format!("esg-scan {mega:.1} MB"),
        1,
        || {
            std::hint::black_box(scan(&source));
        },
        || parse(&source),
    );
    let rate = |nanos: f64| mega / nanos * 1e9;
    let (ours, floor) = (rate(large.ours), rate(large.floor));
    // The figures are rates, the ratio is still that of the times.
    vec![small, Figure { ours, floor, unit: "MB/s", ..large }]
}
