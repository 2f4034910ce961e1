//! Long programs, large and unusual values and output, and invalid sources.
use std::time::Duration;

use harness_esg::{Blobs, CPython, CodeGraph, Ending, Limits, Program, Trust, scan};

use super::{graph, interpreters, shown, worker};

#[test]
fn a_syntax_error_is_reported_with_its_line() {
    for (source, line) in [
        ("x = 1\ny = = 2", 2),
        ("x = 1\n\nif x:\n", 4),
        ("def f():\n    return (1,\n", 3),
        ("x = 'abc", 1),
        ("for i in range(3):\nprint(i)", 2),
        ("x = 1\nreturn x", 2),
        ("def f(a, a): pass", 1),
        ("x = \u{201c}text\u{201d}", 1),
        ("if 1:\n\tx = 1\n        y = 2", 3),
        ("x = 1\0", 1),
        ("nonlocal x", 1),
        ("break", 1),
    ] {
        let found = scan(source);
        let mut program = Program::new();
        program.push("a", "k = 1").unwrap();
        let pushed = program.push("bad", source);
        if pushed.is_err() {
            assert!(!found.errors.is_empty(), "{source:?} was refused without an error");
            continue;
        }
        program.push("b", "n = k + 1").unwrap();
        let mut graph = CodeGraph::new(program, worker(), Blobs::memory());
        let report = graph.replay().unwrap();
        let [(step, Ending::Raised { syntax, line: at, type_name, .. })] = &*report.failed else {
            panic!("{source:?}: {report}");
        };
        assert_eq!((&**step, *syntax), ("bad", true), "{source:?}: {type_name}");
        if let Some(at) = at {
            assert!(at.abs_diff(line) <= 1, "{source:?}: line {at}, not {line}");
        } else {
            assert!(source.contains('\0'), "{source:?} without a line");
        }
        if let Some(error) = found.errors.first() {
            assert!(error.line.abs_diff(line) <= 1, "{source:?}: {error:?}");
        }
        assert_eq!(shown(&mut graph, "n"), "2");
        assert!(graph.verify().unwrap().same);
    }
}

/// The CPU time of this thread, if the system reports it, which excludes other threads and
/// processes.
fn now() -> Duration {
    static BEGUN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = times.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}

/// The time to push, to plan and to replay a step in a chain of `steps`.
fn chain(steps: usize) -> Vec<(&'static str, Duration)> {
    let each = |begun: Duration| (now() - begun) / u32::try_from(steps).unwrap();
    let mut graph = CodeGraph::new(Program::new(), worker(), Blobs::memory());
    let begun = now();
    graph
        .edit(|program| {
            program.push("s0", "x0 = 0")?;
            (1..steps).try_for_each(|at| {
                program.push(&format!("s{at}"), &format!("x{at} = x{} + 1", at - 1)).map(drop)
            })
        })
        .unwrap();
    let push = each(begun);
    let begun = now();
    assert_eq!(graph.plan().steps().count(), steps);
    let plan = each(begun);
    let begun = now();
    let report = graph.replay().unwrap();
    let replay = each(begun);
    assert!(report.ok() && report.ran.len() == steps && report.widened == 0, "{report}");
    let begun = now();
    assert_eq!(graph.replay().unwrap().kept.len(), steps);
    let again = each(begun);
    assert_eq!(shown(&mut graph, &format!("x{}", steps - 1)), (steps - 1).to_string());
    vec![("push", push), ("plan", plan), ("replay", replay), ("replay nothing", again)]
}

#[test]
fn a_step_of_a_long_program_costs_what_one_of_a_short_program_does() {
    // Twice, in case the machine is busy once.
    let runs: Vec<_> = (0..2).map(|_| (chain(250), chain(2000))).collect();
    for at in 0..runs[0].0.len() {
        let what = runs[0].0[at].0;
        let short = runs.iter().map(|(short, _)| short[at].1).min().unwrap();
        let long = runs.iter().map(|(_, long)| long[at].1).min().unwrap();
        println!("{what}: {short:?} a step of 250, {long:?} a step of 2000");
        let floor = short.max(Duration::from_micros(20));
        assert!(long < 3 * floor, "{what}: {short:?} a step of 250, {long:?} a step of 2000");
    }
}

#[test]
fn a_program_of_ten_thousand_steps_is_planned_run_and_kept() {
    for (what, each) in chain(10_000) {
        println!("{what}: {each:?} a step of 10000");
    }
}

#[test]
fn output_of_any_kind_arrives_and_too_much_is_counted() {
    let mut graph = graph(&[
        ("bytes", "import sys\nsys.stdout.buffer.write(bytes(range(256)))"),
        ("text", "print('\\U0001f600 \\u202e \\x00 \\ud800 ende')"),
        ("flood", "line = 'x' * 1023\nfor _ in range(5000): print(line)"),
        ("aside", "import sys\nprint('e' * (3 << 20), file=sys.stderr)"),
        ("one", "print('y' * (5 << 20))"),
        ("last", "print('still here')"),
    ]);
    let report = graph.replay().unwrap();
    assert!(report.failed.iter().all(|(step, _)| &**step == "text"), "{report}");
    let (stdout, limit) = (|step| graph.execution(step).unwrap().stdout.clone(), 1_usize << 20);
    assert_eq!(stdout("bytes").bytes, (0..=255).collect::<Vec<u8>>());
    assert!(String::from_utf8_lossy(&stdout("text").bytes).starts_with('\u{1f600}'));
    assert_eq!(stdout("flood").bytes.len(), limit);
    assert_eq!(stdout("flood").dropped, 5000 * 1024 - limit as u64);
    let stderr = &graph.execution("aside").unwrap().stderr;
    assert_eq!((stderr.bytes.len(), stderr.dropped), (limit, (2 << 20) + 1));
    assert_eq!(stdout("one").dropped, (4 << 20) + 1);
    assert_eq!(stdout("last").bytes, b"still here\n");
    assert!(graph.verify().unwrap().same);
}

#[test]
fn values_of_any_kind_come_back() {
    let steps = [
        (
            "kinds",
            "b = bytes(range(256))\nu = '\\U0001f600\\x00\\ud800'\nf = float('nan')\nz = -0.0",
        ),
        ("int", "i = 7 ** 20000\nc = complex(-0.0, float('inf'))"),
        ("deep", "d = []\nfor _ in range(5000): d = [d]"),
        ("round", "r = [1]\nr.append(r)\nk = {'r': r}"),
        ("names", "\u{fc}ber = {'\u{fc}': '\u{65e5}\u{672c}'}\nglobals_ = 3"),
        ("check", "ok = (len(b), len(u), f != f, str(z), i % 10 ** 6, c.imag)"),
    ];
    let mut graph = graph(&steps);
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    let wanted = format!("(256, 3, True, '-0.0', {}, inf)", seven());
    assert_eq!(shown(&mut graph, "ok"), wanted);
    // In a fresh worker, from stored values; unserializable ones are made again.
    let verdict = graph.verify().unwrap();
    assert!(verdict.same, "{verdict}");
    for (round, use_it) in [
        "n = (b[-1], u[0], z, k['r'] is r, r[1] is r)",
        "n = (i.bit_length(), c)",
        "n = len(d)\nd = d[0]",
        "n = \u{fc}ber['\u{fc}']",
    ]
    .iter()
    .enumerate()
    {
        graph.edit(|program| program.push(&format!("use{round}"), use_it)).unwrap();
        assert!(graph.replay().unwrap().ok(), "{use_it}");
        let verdict = graph.verify().unwrap();
        assert!(verdict.same, "{use_it}: {verdict}");
    }
}

/// The last digits of 7 to the 20000th.
fn seven() -> u64 {
    (0..20_000).fold(1, |power, _| power * 7 % 1_000_000)
}

#[test]
fn a_value_over_the_limit_is_made_again() {
    let limits = Limits { value: 100_000, ..Limits::default() };
    let python = CPython::at(&interpreters()[0]).limits(limits).trust(Trust::Mine);
    let mut program = Program::new();
    program.push("make", "big = list(range(100000))\nsmall = [1]").unwrap();
    program.push("grow", "big.append(small)\nsmall.append(2)").unwrap();
    program.push("other", "k = 1").unwrap();
    program.push("use", "n = len(big)").unwrap();
    let mut graph = CodeGraph::new(program, python.start().unwrap(), Blobs::memory());
    assert!(graph.replay().unwrap().ok());
    // Its version before `grow` is not stored, but needed again.
    graph.edit(|program| program.replace("grow", "big.append(small)\nsmall.append(3)")).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    let ran: Vec<_> = report.executed().map(|step| &**step).collect();
    assert!(!ran.contains(&"other"), "{report}");
    assert_eq!(shown(&mut graph, "small"), "[1, 3]");
    assert_eq!(shown(&mut graph, "n"), "100001");
    assert!(graph.verify().unwrap().same);
}
