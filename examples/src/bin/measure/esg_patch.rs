//! What a patch of a long step costs. The target: at most 5 ms for one of 10,000 lines.

use std::fmt::Write as _;
use std::hint::black_box;

use harness::esg::{Patch, Program, unified};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};

use super::{Figure, failed, rounds};

const LINES: usize = 10_000;

/// Microseconds for each kind of edit, scanned and indexed: beside parsing the source once.
pub(super) fn patches() -> Vec<Figure> {
    let source = source();
    let wanted = format!("    total_{n} = first + {n}", n = LINES / 10);
    let new = wanted.replace(" + ", " - ");
    let changed = source.replace(&wanted, &new);

    let function = format!("def function_{n}(first, rest):\n    return first\n", n = LINES / 10);
    let patches = [
        ("search", Patch::search_replace("s", &wanted, &new)),
        ("indent", Patch::search_replace("s", wanted.trim(), "total = first")),
        ("symbol", Patch::symbol("s", &format!("function_{}", LINES / 10), &function)),
        ("diff", Patch::unified("s", &unified("s", &source, &changed))),
    ];
    let mut program = Program::new();
    if program.push("s", &source).is_err() || program.push("t", "y = function_1(1, [])").is_err() {
        return vec![failed("esg-patch")];
    }
    let _ = program.edges();
    let micros = |run: &mut dyn FnMut()| {
        let started = std::time::Instant::now();
        run();
        started.elapsed().as_secs_f64() * 1e6
    };
    let figure = |(kind, patch): &(&str, Patch)| {
        let case = format!("esg-patch {kind}");
        let rounds = rounds(|| {
            let mut program = program.clone();
            let mut applied = true;
            let ours = micros(&mut || applied = program.patch(patch).is_ok());
            let floor = micros(&mut || {
                black_box(parse_unchecked(&source, ParseOptions::from(Mode::Module)));
            });
            (ours, floor, applied)
        });
        if rounds.iter().any(|(.., applied)| !applied) {
            return failed(&case);
        }
        let ours = rounds.iter().map(|(ours, ..)| *ours).fold(f64::INFINITY, f64::min);
        let floor = rounds.iter().map(|(_, floor, _)| *floor).fold(f64::INFINITY, f64::min);
        Figure { case, ours, floor, unit: "us", ratio: ours / floor }
    };
    patches.iter().map(figure).collect()
}

/// Functions of five lines.
fn source() -> String {
    let mut source = String::new();
    for n in 0..LINES / 5 {
        let _ = write!(
            source,
            "def function_{n}(first, rest):\n    total_{n} = first + {n}\n    for item in rest:\n        \
             total_{n} += item\n    return total_{n}\n"
        );
    }
    source
}
