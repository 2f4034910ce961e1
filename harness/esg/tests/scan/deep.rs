//! Extremely nested or chained sources are scanned without a crash.

use harness_esg::scan;

fn refused(source: &str) {
    let errors = scan(source).errors;
    assert!(!errors.is_empty(), "{} bytes", source.len());
    assert!(errors.iter().all(|error| error.line >= 1 && error.column >= 1));
}

#[test]
fn nesting_without_measure_is_refused() {
    for (open, shut) in [("(", ")"), ("[", "]"), ("{", "}"), ("f(", ")"), ("x[", "]"), ("-", "")] {
        refused(&format!("x = {}1{}", open.repeat(10_000), shut.repeat(10_000)));
    }
    for word in ["not ", "lambda: ", "await ", "1 if x else ", "a ** ", "*", "x := "] {
        let _ = scan(&format!("x = {}1", word.repeat(10_000)));
    }
    let mut source = String::new();
    for depth in 0..1_000 {
        source.push_str(&" ".repeat(depth));
        source.push_str("if x:\n");
    }
    source.push_str(&" ".repeat(1_000));
    source.push_str("pass\n");
    refused(&source);
}

#[test]
fn chains_without_measure_are_refused() {
    refused(&format!("x = a{}", " + a".repeat(100_000)));
    refused(&format!("x = a{}", ".a".repeat(100_000)));
    refused(&format!("x = a{}", "[0]".repeat(100_000)));
    refused(&format!("x = a{}", "()".repeat(100_000)));
    refused(&format!("x = a{}", " + a".repeat(2_000_000)));
}

#[test]
fn long_but_flat_is_read() {
    let mut source = "if a:\n    x = 1\n".to_owned();
    for _ in 0..100_000 {
        source.push_str("elif b:\n    y = 2\n");
    }
    let found = scan(&source);
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    assert!(found.reads.contains("b") && found.writes.contains("y"));
    for between in [" and ", " or ", " < ", ", ", " if x else a, "] {
        let found = scan(&format!("x = [a{}]", format!("{between}a").repeat(50_000)));
        assert!(found.errors.is_empty(), "{between}: {:?}", found.errors);
        assert!(found.reads.contains("a"));
    }
    let found = scan(&format!("x = a{}", " + b".repeat(1_000)));
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    assert!(found.reads.contains("b"));
}

#[test]
fn what_cannot_be_followed_forever_is_given_up_in_time() {
    // Nested loops, nested `finally`, functions that call each other.
    for line in ["for i in x:", "while c:", "try:"] {
        let mut source = String::new();
        let depth = 18;
        for at in 0..depth {
            source.push_str(&format!(
                "{}{line}\n{}a{at} = b{at}\n",
                "  ".repeat(at),
                "  ".repeat(at + 1)
            ));
        }
        source.push_str(&format!("{}pass\n", "  ".repeat(depth)));
        if line == "try:" {
            for at in (0..depth).rev() {
                source.push_str(&format!(
                    "{}finally:\n{}z{at} = a{at}\n",
                    "  ".repeat(at),
                    "  ".repeat(at + 1)
                ));
            }
        }
        let found = scan(&source);
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        assert!(found.reads.contains("b17"), "{found:?}");
    }
    let mut source = String::new();
    for at in 0..2_000 {
        source.push_str(&format!(
            "def f{at}():\n    return f{}() + f{}() + k{at}\n",
            (at * 7 + 1) % 2_000,
            (at + 1) % 2_000
        ));
    }
    source.push_str("x = f0()\n");
    let found = scan(&source);
    assert!(found.reads.contains("k0") && found.reads.contains("k1999"));
}
