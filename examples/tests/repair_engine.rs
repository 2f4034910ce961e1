//! The repair engine against real Python: every script that ships is repaired,
//! every limit holds, and no script gets the better of its host.
//!
//! These tests need `python3`; they fail without it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use examples::repair::{
    Ending, Fault, Limits, LoadError, Python, PythonError, Ran, Rule, Script, Verdict, judge, load,
    propose, shipped,
};

fn python() -> Python {
    Python::find().expect("the tests need python3")
}

async fn run(source: &str) -> Ran {
    python().run(source, "script.py", &limits()).await.unwrap()
}

/// More patient than the defaults, for machines with much to do.
fn limits() -> Limits {
    Limits {
        wall: Duration::from_secs(20),
        ..Limits::default()
    }
}

async fn fault(source: &str) -> Fault {
    let ran = run(source).await;
    match ran.ending {
        Ending::Raised(fault) => fault,
        other => panic!("{other:?}\n{}", ran.stderr),
    }
}

fn stubborn(name: &str) -> Script {
    load(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("scripts/stubborn")
            .join(name),
    )
    .unwrap()
}

/// The simplest loop: always the first proposal that is acceptable.
async fn repair(script: &Script) -> (Verdict, Vec<Rule>, String) {
    let python = python();
    let mut source = script.source.clone();
    let mut rules = Vec::new();
    loop {
        let ran = python.run(&source, &script.name, &limits()).await.unwrap();
        let verdict = Verdict::of(&ran, script.expected.as_deref());
        let Ending::Raised(fault) = &ran.ending else {
            return (verdict, rules, source);
        };
        let best = propose(&source, fault)
            .into_iter()
            .find(|proposal| judge(&source, &proposal.fixed, fault).is_ok());
        let Some(best) = best.filter(|_| rules.len() < 10) else {
            return (verdict, rules, source);
        };
        rules.push(best.rule);
        source = best.fixed;
    }
}

#[tokio::test]
async fn every_shipped_script_fails_and_is_repaired() {
    let scripts = shipped();
    assert!(scripts.len() >= 8);
    let mut broken = Vec::new();
    let mut used = Vec::new();
    for script in &scripts {
        let lines = script.source.lines().count();
        assert!((20..=60).contains(&lines), "{}: {lines} lines", script.name);
        let (verdict, rules, source) = repair(script).await;
        println!("{}: {rules:?}", script.name);
        if verdict != Verdict::Fixed || rules.is_empty() {
            broken.push(format!(
                "{}: {verdict:?} after {rules:?}\n{source}",
                script.name
            ));
        }
        used.extend(rules);
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    for rule in [
        Rule::MisspeltName,
        Rule::MisspeltAttribute,
        Rule::MissingImport,
        Rule::MisspeltModule,
        Rule::Indentation,
        Rule::TabsAndSpaces,
        Rule::MissingColon,
        Rule::Bracket,
        Rule::Quote,
        Rule::AssignmentInCondition,
        Rule::PrintStatement,
        Rule::MissingComma,
        Rule::MisspeltArgument,
        Rule::MissingArgument,
        Rule::MissingSelf,
        Rule::MisspeltKey,
        Rule::NumberInText,
    ] {
        assert!(used.contains(&rule), "no script needs the rule for: {rule}");
    }
}

#[tokio::test]
async fn what_no_rule_knows_is_left_alone() {
    let script = stubborn("no_rule.py");
    let (verdict, rules, source) = repair(&script).await;
    assert!(
        matches!(verdict, Verdict::StillFailing(Ending::Raised(_))),
        "{verdict:?}"
    );
    assert!(rules.is_empty());
    assert_eq!(source, script.source);
}

#[tokio::test]
async fn a_wrong_output_is_no_success() {
    let (verdict, ..) = repair(&stubborn("wrong_total.py")).await;
    let expected = Verdict::WrongOutput {
        expected: "Total: 27.06\n".into(),
        got: "Total: 24.60\n".into(),
    };
    assert_eq!(verdict, expected);
}

#[tokio::test]
async fn an_endless_loop_is_stopped() {
    let short = Limits {
        wall: Duration::from_millis(1500),
        ..Limits::default()
    };
    let script = stubborn("endless.py");
    let ran = python()
        .run(&script.source, &script.name, &short)
        .await
        .unwrap();
    assert_eq!(ran.ending, Ending::TimedOut);
    assert_eq!(ran.stdout, "searching\n");
    assert!(ran.elapsed < Duration::from_secs(10), "{:?}", ran.elapsed);
}

#[tokio::test]
async fn time_on_the_cpu_is_limited_too() {
    let short = Limits {
        cpu: Duration::from_millis(900),
        ..limits()
    };
    let ran = python()
        .run("while True: pass", "loop.py", &short)
        .await
        .unwrap();
    assert_eq!(ran.ending, Ending::TimedOut);
}

#[tokio::test]
async fn a_flood_of_output_is_stopped_and_not_kept() {
    let script = stubborn("flood.py");
    for cap in [0, 10_000] {
        let small = Limits {
            output_bytes: cap,
            ..limits()
        };
        let ran = python()
            .run(&script.source, &script.name, &small)
            .await
            .unwrap();
        assert_eq!(ran.ending, Ending::TooMuchOutput);
        assert_eq!(ran.stdout.len() + ran.stderr.len(), cap);
    }
}

#[tokio::test]
async fn a_flood_just_before_the_end_counts() {
    let ran = run("print('x' * (2 << 20))").await;
    assert_eq!(ran.ending, Ending::TooMuchOutput);
}

#[tokio::test]
async fn memory_is_limited() {
    let script = stubborn("memory_hog.py");
    let ran = python()
        .run(&script.source, &script.name, &limits())
        .await
        .unwrap();
    assert_eq!(ran.ending, Ending::OutOfMemory, "{}", ran.stderr);
    assert_eq!(
        run("x = b'x' * (1 << 40)").await.ending,
        Ending::OutOfMemory
    );
}

#[tokio::test]
async fn endings_are_told_apart() {
    assert_eq!(run("").await.ending, Ending::Ok);
    assert_eq!(run("raise SystemExit(3)").await.ending, Ending::Exited(3));
    assert_eq!(
        run("import os; os._exit(1)").await.ending,
        Ending::Exited(1)
    );
    assert_eq!(
        run("import os; os.kill(os.getpid(), 15)").await.ending,
        Ending::Signalled(15)
    );
    let ran = run("print('one')\n\ndef f():\n    return 1 / 0\n\nf()\n").await;
    let Ending::Raised(fault) = &ran.ending else {
        panic!("{ran:?}")
    };
    assert_eq!(
        (fault.kind.as_str(), fault.line(), fault.frames.len()),
        ("ZeroDivisionError", 4, 2)
    );
    assert_eq!(ran.stdout, "one\n");
    assert!(ran.stderr.starts_with("Traceback"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("File \"script.py\", line 4, in f"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("bootstrap"), "{}", ran.stderr);
    let text = serde_json::to_string(&ran).unwrap();
    assert_eq!(serde_json::from_str::<Ran>(&text).unwrap(), ran);
}

#[tokio::test]
async fn a_script_runs_as_the_main_module_with_little_around_it() {
    let source = "import os, sys\nprint(__name__, __file__, sys.argv, len(os.environ) < 12)\n\
                  print(hash('a') == hash('a'), os.listdir('.'), sys.stdin.read() == '')\n";
    let (first, second) = (run(source).await, run("print(hash('a'))").await);
    assert_eq!(
        first.stdout,
        "__main__ script.py ['script.py'] True\nTrue ['script.py'] True\n"
    );
    assert_eq!(second.stdout, run("print(hash('a'))").await.stdout);
    let ran = python()
        .run("print(__file__)", "../../etc/x.py", &limits())
        .await
        .unwrap();
    assert_eq!(ran.stdout, "x.py\n");
    let ran = python()
        .run("print(__file__)", "..", &limits())
        .await
        .unwrap();
    assert_eq!(ran.stdout, "script.py\n");
}

#[tokio::test]
async fn a_script_can_close_its_output() {
    let ran = run("import sys, os\nprint('a')\nsys.stdout.close()\nos.close(2)\n").await;
    assert_eq!((ran.ending, ran.stdout.as_str()), (Ending::Ok, "a\n"));
    let short = Limits {
        wall: Duration::from_millis(1500),
        ..Limits::default()
    };
    let endless = "import os\nos.close(1)\nos.close(2)\nwhile True: pass\n";
    let ran = python().run(endless, "closed.py", &short).await.unwrap();
    assert_eq!(ran.ending, Ending::TimedOut);
}

#[tokio::test]
async fn killing_its_group_kills_only_the_script() {
    let ran = run("import os, signal\nos.kill(0, signal.SIGKILL)\n").await;
    assert_eq!(ran.ending, Ending::Signalled(9));
    let ran = run("import os, signal\nos.killpg(os.getpgid(0), signal.SIGTERM)\n").await;
    assert_eq!(ran.ending, Ending::Signalled(15));
}

#[tokio::test]
async fn nothing_a_script_starts_outlives_it() {
    let marker = tempfile::tempdir().unwrap();
    let path = marker.path().join("alive");
    let source = format!(
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', \
         'import time; time.sleep(3); open({path:?}, \"w\")'])\nprint('started')\n"
    );
    let ran = run(&source).await;
    assert_eq!((ran.ending, ran.stdout.as_str()), (Ending::Ok, "started\n"));
    assert!(
        ran.elapsed < Duration::from_secs(3),
        "the pipe was waited for: {:?}",
        ran.elapsed
    );

    // Nor does the script itself, when nobody wants its result any more.
    let source = format!("import time\ntime.sleep(3)\nopen({path:?}, 'w')\n");
    let (python, limits) = (python(), limits());
    let abandoned = python.run(&source, "script.py", &limits);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), abandoned)
            .await
            .is_err()
    );
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_forged_report_is_only_data() {
    for (report, raised) in [
        ("'no json'", false),
        ("'[]'", false),
        ("'{\"kind\": 3}'", false),
        ("'[' * 100000", false),
        ("'x' * 1000000", false),
        (
            "'{\"kind\": \"NameError\", \"frames\": [{\"line\": -1}]}'",
            false,
        ),
        (
            "'{\"kind\": \"NameError\", \"frames\": [{\"line\": 4000000000}], \"name\": \"os\"}'",
            true,
        ),
        (
            "'{\"kind\": \"KeyError\", \"name\": \"\", \"keys\": [\"\"], \"frames\": [{\"line\": 0}]}'",
            true,
        ),
        (
            "'{\"kind\": \"TypeError\", \"message\": \"f() missing 1 \", \"callee\": {\"name\": \"open\", \"line\": 4294967295}}'",
            true,
        ),
        (
            "'{\"kind\": \"SyntaxError\", \"syntax\": {\"line\": 4294967295, \"column\": 4294967295}}'",
            true,
        ),
        (
            "'{\"kind\": \"IndentationError\", \"syntax\": {\"line\": 1, \"message\": \"unexpected indent\"}}'",
            true,
        ),
    ] {
        let source =
            format!("import os\nopen('../report.json', 'w').write({report})\nos._exit(1)\n");
        let ran = run(&source).await;
        match ran.ending {
            Ending::Raised(fault) if raised => {
                for proposal in propose(&source, &fault) {
                    let _ = judge(&source, &proposal.fixed, &fault);
                }
            }
            Ending::Exited(1) if !raised => {}
            other => panic!("{report}: {other:?}"),
        }
    }
    for special in [
        "os.mkfifo('../report.json')",
        "os.symlink('/etc/passwd', '../report.json')",
        "os.mkdir('../report.json')",
    ] {
        let ran = run(&format!("import os\n{special}\nos._exit(1)\n")).await;
        assert_eq!(ran.ending, Ending::Exited(1), "{special}");
    }
}

#[tokio::test]
async fn deep_recursion_and_odd_output_are_survived() {
    let deep = "def f(n):\n    return f(n + 1)\nf(0)\n";
    let fault = fault(deep).await;
    assert_eq!(fault.kind, "RecursionError");
    assert!(fault.frames.len() <= 16);
    let ran = run(&format!("import sys\nsys.setrecursionlimit(10**9)\n{deep}")).await;
    assert!(!matches!(ran.ending, Ending::Ok), "{ran:?}");
    let ran = run("import sys\nsys.stdout.buffer.write(bytes(range(256)) * 4)\n").await;
    assert_eq!(ran.ending, Ending::Ok);
    assert!(ran.stdout.contains('\u{fffd}'));
}

#[tokio::test]
async fn an_exception_that_cannot_be_described_is_still_one() {
    let fault =
        fault("class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n").await;
    assert_eq!((fault.kind.as_str(), fault.message.as_str()), ("E", ""));
    let ran = run("raise KeyError('\\ud800')").await;
    assert!(matches!(ran.ending, Ending::Raised(_)), "{ran:?}");
}

#[test]
fn a_machine_without_python_is_told_so() {
    let missing = Python::at(Path::new("/nowhere/python3")).unwrap_err();
    assert!(matches!(missing, PythonError::Missing), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let fake = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Python::at(&path).unwrap_err().to_string()
    };
    assert_eq!(
        fake("old", "echo 3.6.9"),
        "python3 is version 3.6.9, but 3.8 or later is needed"
    );
    assert_eq!(
        fake("odd", "echo hello"),
        "python3 does not work: it does not tell its version"
    );
    assert!(fake("bad", "exit 7").starts_with("python3 does not work: it ended with exit status"));
}

#[test]
fn files_that_are_no_scripts_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let says = |path: &Path, what: &str| {
        let error = load(path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {what}", path.display()));
    };
    says(&folder.path().join("none.py"), "no such file");
    says(folder.path(), "is a directory or device, not a script");
    says(
        Path::new("/dev/zero"),
        "is a directory or device, not a script",
    );
    says(&file("nul.py", b"a\0b"), "is no text in UTF-8");
    says(&file("latin.py", b"# caf\xe9"), "is no text in UTF-8");
    says(
        &file("big.py", &vec![b'#'; (1 << 20) + 1]),
        "is larger than 1 MiB",
    );
    assert!(load(&file("full.py", &vec![b'#'; 1 << 20])).is_ok());
    let good = file("good.py", b"print(1)\r\n");
    let script = load(&good).unwrap();
    assert_eq!((script.name.as_str(), script.expected), ("good.py", None));
    file("good.expected", b"1\n");
    assert_eq!(load(&good).unwrap().expected.as_deref(), Some("1\n"));
    file("good.expected", b"\0");
    assert!(matches!(load(&good), Err(LoadError::Binary(_))));
}

#[tokio::test]
async fn line_ends_tabs_and_the_last_line_stay_as_they_are() {
    let source = "def f(items):\r\n\tfor item in itmes:\r\n\t\tprint( item )   \r\n\r\nf([1])";
    let script = Script {
        name: "crlf.py".into(),
        source: source.into(),
        expected: Some("1\n".into()),
    };
    let (verdict, rules, fixed) = repair(&script).await;
    assert_eq!((verdict, rules), (Verdict::Fixed, vec![Rule::MisspeltName]));
    assert_eq!(fixed, source.replace("itmes", "items"));
}
