//! The limits on scripts: each one holds, and no script harms its host.

use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::super::{Ending, Limits, Python, PythonError, Ran, judge, propose};
use super::{fault, limits, python, run, stubborn};

#[tokio::test]
async fn an_endless_loop_is_stopped() {
    let short = Limits { wall: Duration::from_millis(1500), ..Limits::default() };
    let script = stubborn("endless.py");
    let ran = python().run(&script.source, &script.name, &short).await.unwrap();
    assert_eq!(ran.ending, Ending::TimedOut);
    assert_eq!(ran.stdout, "searching\n");
    assert!(ran.elapsed < Duration::from_secs(10), "{:?}", ran.elapsed);
}

#[tokio::test]
async fn time_on_the_cpu_is_limited_too() {
    let short = Limits { cpu: Duration::from_millis(900), ..limits() };
    let ran = python().run("while True: pass", "loop.py", &short).await.unwrap();
    assert_eq!(ran.ending, Ending::TimedOut);
}

#[tokio::test]
async fn a_flood_of_output_is_stopped_and_not_kept() {
    let script = stubborn("flood.py");
    for cap in [0, 10_000] {
        let small = Limits { output_bytes: cap, ..limits() };
        let ran = python().run(&script.source, &script.name, &small).await.unwrap();
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
    let ran = python().run(&script.source, &script.name, &limits()).await.unwrap();
    assert_eq!(ran.ending, Ending::OutOfMemory, "{}", ran.stderr);
    assert_eq!(run("x = b'x' * (1 << 40)").await.ending, Ending::OutOfMemory);
}

#[tokio::test]
async fn endings_are_distinguished() {
    assert_eq!(run("").await.ending, Ending::Ok);
    assert_eq!(run("raise SystemExit(3)").await.ending, Ending::Exited(3));
    assert_eq!(run("import os; os._exit(1)").await.ending, Ending::Exited(1));
    assert_eq!(run("import os; os.kill(os.getpid(), 15)").await.ending, Ending::Signalled(15));
    let ran = run("print('one')\n\ndef f():\n    return 1 / 0\n\nf()\n").await;
    let Ending::Raised(fault) = &ran.ending else { panic!("{ran:?}") };
    assert_eq!(
        (fault.kind.as_str(), fault.line(), fault.frames.len()),
        ("ZeroDivisionError", 4, 2)
    );
    assert_eq!(ran.stdout, "one\n");
    assert!(ran.stderr.starts_with("Traceback"), "{}", ran.stderr);
    assert!(ran.stderr.contains("File \"script.py\", line 4, in f"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("bootstrap"), "{}", ran.stderr);
    let text = serde_json::to_string(&ran).unwrap();
    assert_eq!(serde_json::from_str::<Ran>(&text).unwrap(), ran);
}

#[tokio::test]
async fn a_script_runs_as_the_main_module_with_little_around_it() {
    let source = "import os, sys\nprint(__name__, __file__, sys.argv, len(os.environ) < 12)\n\
                  print(hash('a') == hash('a'), os.listdir('.'), sys.stdin.read() == '')\n";
    let (first, second) = (run(source).await, run("print(hash('a'))").await);
    assert_eq!(first.stdout, "__main__ script.py ['script.py'] True\nTrue ['script.py'] True\n");
    assert_eq!(second.stdout, run("print(hash('a'))").await.stdout);
    let ran = python().run("print(__file__)", "../../etc/x.py", &limits()).await.unwrap();
    assert_eq!(ran.stdout, "x.py\n");
    let ran = python().run("print(__file__)", "..", &limits()).await.unwrap();
    assert_eq!(ran.stdout, "script.py\n");
}

#[tokio::test]
async fn a_script_can_close_its_output() {
    let ran = run("import sys, os\nprint('a')\nsys.stdout.close()\nos.close(2)\n").await;
    assert_eq!((ran.ending, ran.stdout.as_str()), (Ending::Ok, "a\n"));
    let short = Limits { wall: Duration::from_millis(1500), ..Limits::default() };
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
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("alive");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    // A reader waits until a process has opened the pipe, and then until none holds it open.
    let read = || {
        let (pipe, (opened, is_open)) = (pipe.clone(), tokio::sync::oneshot::channel());
        let rest = tokio::task::spawn_blocking(move || {
            let mut file = std::fs::File::open(pipe).unwrap();
            opened.send(()).unwrap();
            std::io::read_to_string(&mut file).unwrap()
        });
        (is_open, rest)
    };
    let open = format!("import os, sys, time\npipe = open({pipe:?}, 'w')\n");
    let linger = "time.sleep(60)\npipe.write('alive')\n";

    // The child keeps the script's output open, which the run does not wait for.
    let (is_open, rest) = read();
    let child = format!("{open}os.write(int(sys.argv[1]), b'x')\n{linger}");
    let source = format!(
        "import os, subprocess, sys\nheard, say = os.pipe()\n\
         subprocess.Popen([sys.executable, '-c', {child:?}, str(say)], pass_fds=[say])\n\
         os.read(heard, 1)\nprint('started')\n"
    );
    let ran = run(&source).await;
    assert_eq!((ran.ending, ran.stdout.as_str()), (Ending::Ok, "started\n"));
    is_open.await.unwrap();
    assert_eq!(rest.await.unwrap(), "");

    // A script whose run is dropped does not survive either.
    let (is_open, rest) = read();
    let (python, limits, source) = (python(), limits(), open + linger);
    tokio::select! {
        ran = python.run(&source, "script.py", &limits) => panic!("it ended: {ran:?}"),
        opened = is_open => opened.unwrap(),
    }
    assert_eq!(rest.await.unwrap(), "");
}

#[tokio::test]
async fn a_forged_report_is_only_data() {
    for (report, raised) in [
        ("'no json'", false),
        ("'[]'", false),
        ("'{\"kind\": 3}'", false),
        ("'[' * 100000", false),
        ("'x' * 1000000", false),
        ("'{\"kind\": \"NameError\", \"frames\": [{\"line\": -1}]}'", false),
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
fn a_machine_without_python_is_an_error() {
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
    assert_eq!(fake("old", "echo 3.6.9"), "python3 is version 3.6.9, but 3.8 or later is needed");
    assert_eq!(fake("odd", "echo hello"), "python3 does not work: it does not print its version");
    assert!(fake("bad", "exit 7").starts_with("python3 does not work: it ended with exit status"));
}
