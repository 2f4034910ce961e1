use std::time::{Duration, Instant};

use super::super::{CPython, Ending, Executor, Limits, WorkerProcess};
use super::{builder, hasty, limits, run, worker, works_afresh};

const PREFIX: &str = "import os, struct, json, time\nmark = 1\nopen('left', 'w').close()\n";

/// The ending of a step that kills its worker.
fn broke(python: &mut WorkerProcess, source: &str) -> Ending {
    let ran = run(python, &format!("{PREFIX}{source}"));
    assert!(ran.lost, "{source}: {:?}", ran.ending);
    assert!(ran.units.is_empty() && ran.wrote.is_empty() && ran.reads.is_empty());
    works_afresh(python);
    ran.ending
}

fn protocol(source: &str) -> String {
    match broke(&mut worker(), source) {
        Ending::Protocol { what } => what,
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn what_takes_too_long_is_ended() {
    let limit = Duration::from_millis(300);
    for source in [
        "while True: pass",
        "time.sleep(100)",
        "import signal; os.kill(os.getpid(), signal.SIGSTOP)",
        // Writes nothing, and leaves a child that holds the pipes.
        "os.fork(); time.sleep(100)",
        // Half of a reply.
        "wire.raw(wire.frame(wire.good())[:20]); time.sleep(100)",
        // Replies indefinitely, a byte at a time.
        "wire.raw(struct.pack('<II', 1000, 0))\nwhile True: wire.raw(b' '); time.sleep(0.01)",
        // Floods a pipe without a reader.
        "while True: os.write(2, b'x' * 65536)",
    ] {
        let begun = Instant::now();
        let ending = broke(&mut hasty(), source);
        let late = [Ending::Timeout { limit }, Ending::Stalled { limit }];
        assert!(late.contains(&ending), "{source}: {ending:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{source}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn processor_time_is_limited_on_its_own() {
    let cpu = Duration::from_millis(400);
    let limits = Limits { cpu, ..limits(Duration::from_secs(20)) };
    let mut python = builder().limits(limits).start().unwrap();
    assert_eq!(broke(&mut python, "while True: pass"), Ending::Timeout { limit: cpu });
}

#[test]
fn the_end_of_a_worker_is_reported_by_its_cause() {
    let mut python = worker();
    let crashed = |signal, code| Ending::Crashed { signal, code };
    let zero = "import ctypes; ctypes.string_at(0)";
    assert_eq!(broke(&mut python, zero), crashed(Some(11), None));
    assert_eq!(broke(&mut python, "os._exit(7)"), crashed(None, Some(7)));
    assert_eq!(broke(&mut python, "os._exit(0)"), crashed(None, Some(0)));
    assert_eq!(broke(&mut python, "os.kill(os.getpid(), 9)"), crashed(Some(9), None));
    assert_eq!(broke(&mut python, "os.killpg(0, 9)"), crashed(Some(9), None));
    assert_eq!(broke(&mut python, "os.abort()"), crashed(Some(6), None));
    // A child holds the pipes, so their end is never seen.
    let orphan = "if os.fork() == 0: time.sleep(100)\nos._exit(3)";
    assert_eq!(broke(&mut python, orphan), crashed(None, Some(3)));
    let cpu = "import signal; os.kill(os.getpid(), signal.SIGXCPU)";
    assert_eq!(broke(&mut python, cpu), Ending::Timeout { limit: Limits::default().cpu });
}

#[test]
fn memory_ends_before_the_machine_does() {
    let mut python = worker();
    for source in ["bytearray(4 << 30)", "held = []\nwhile True: held.append(bytearray(1 << 24))"] {
        match run(&mut python, source).ending {
            Ending::Raised { type_name, .. } => assert_eq!(type_name, "MemoryError"),
            other => panic!("{other:?}"),
        }
    }
    // The worker itself may have no memory left after the step.
    let source = "wire.raw(wire.frame({**wire.good(), 'error': 'MemoryError: '})); time.sleep(100)";
    assert_eq!(broke(&mut python, source), Ending::OutOfMemory);
}

#[test]
fn a_worker_that_closes_its_pipes_is_ended() {
    let closed = "it closed its output and did not end";
    let wait = "time.sleep(100)";
    assert_eq!(protocol(&format!("os.close(wire.replies); {wait}")), closed);
    assert_eq!(protocol(&format!("os.closerange(0, 256); {wait}")), closed);
    // The worker fails when it finds them closed.
    let ending = broke(&mut worker(), "os.closerange(0, 256)");
    assert!(matches!(ending, Ending::Crashed { signal: None, code: Some(1..) }), "{ending:?}");
}

#[test]
fn an_invalid_reply_ends_the_worker() {
    let wait = "; time.sleep(100)";
    for (source, what) in [
        ("wire.raw(b'hello, this is the worker')", "a message of"),
        ("wire.raw(struct.pack('<II', 2**32 - 1, 0))", "a message of 4294967295 bytes"),
        (
            "wire.raw(struct.pack('<II', 2, 2**32 - 1))",
            "a message of 2 bytes of JSON and 4294967295",
        ),
        ("wire.raw(struct.pack('<II', 2, 0) + b'no')", "not a reply to `run`"),
        ("wire.raw(struct.pack('<II', 0, 0))", "not a reply to `run`"),
        ("wire.raw(struct.pack('<II', 2, 0) + b'\\xff\\xff')", "not a reply to `run`"),
        ("wire.raw(wire.frame(wire.good(nonce='0' * 32)))", "a reply to another request"),
        ("wire.raw(wire.frame(wire.good(op='sync')))", "a reply to another request"),
        ("wire.raw(wire.frame(wire.good()) * 2)", "bytes after the end of a message"),
        ("wire.raw(wire.frame(wire.good(reads=['q:x'])))", "not a reply to `run`"),
        ("wire.raw(wire.frame(wire.good(reads=7)))", "not a reply to `run`"),
        ("wire.raw(wire.frame({'error': 'x' * 5000, **wire.good()}))", "the worker failed"),
        ("wire.raw(wire.frame(wire.good(wrote={'x:/etc': 'bound'})))", "but was written"),
        (
            "wire.raw(wire.frame(wire.good(ending={'kind': 'out_of_memory'})))",
            "only the host can determine",
        ),
        (
            "wire.raw(wire.frame(wire.good(stdout={'at': [0, 1], 'dropped': 0})))",
            "1 bytes at offset 0",
        ),
        ("wire.raw(struct.pack('<II', 99999, 0) + b'[' * 99999)", "not a reply to `run`"),
    ] {
        let said = protocol(&format!("{source}{wait}"));
        assert!(said.contains(what), "{source}: {said}");
        assert!(said.len() < 2500);
    }
}

#[test]
fn a_second_reply_is_not_taken_for_the_next() {
    // It arrives after the first reply was received, and before the next request.
    let mut python = worker();
    let source = "import threading, os\nfirst = wire.frame(wire.good())\ndef late():\n    \
                  wire.raw(first)\n    os.mkdir('said')\nwire_nonce = wire.request['nonce']\n\
                  timer = threading.Timer(0.2, late)\ntimer.start()";
    assert!(!run(&mut python, source).lost);
    let said = python.scratch().join("said");
    super::until("the second reply", || said.is_dir());
    let error = python.run(&super::step("pass")).unwrap_err();
    assert!(error.lost(), "{error}");
    assert!(error.to_string().contains("wrote without a request"), "{error}");
    works_afresh(&mut python);
}

#[test]
fn a_reply_found_through_proc_is_one_of_two() {
    // A step that guesses the pipe and does not know the request's nonce.
    let source = "for fd in os.listdir('/proc/self/fd'):\n    fd = int(fd)\n    if fd > 2:\n        \
                  try: os.write(fd, wire.frame(wire.good(nonce='f' * 32)))\n        \
                  except OSError: pass";
    assert!(matches!(broke(&mut worker(), source), Ending::Protocol { .. }));
}

#[test]
fn what_a_step_does_to_its_own_process_stays_there() {
    let mut python = worker();
    for source in [
        "import builtins; builtins.sorted = None",
        "import sys; sys.addaudithook(lambda *a: None); sys.settrace(lambda *a: None)",
        "import sys; sys.stdout = None; sys.exit(1)",
        "import signal; [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]",
        "raise RecursionError",
    ] {
        assert!(!run(&mut python, source).lost, "{source}");
    }
    python.fresh().unwrap();
    assert_eq!(run(&mut python, "sorted([])").ending, Ending::Ok);
}

#[test]
fn files_and_descriptors_are_limited() {
    let limits = Limits { file_size: 1 << 20, ..limits(Duration::from_secs(20)) };
    let mut python = builder().limits(limits).start().unwrap();
    let file = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n\
                open('big', 'wb').write(bytes(1 << 21))";
    for source in [file, "held = [open('/dev/null') for _ in range(100)]"] {
        let ending = run(&mut python, source).ending;
        assert!(matches!(&ending, Ending::Raised { type_name, .. } if type_name == "OSError"));
    }
}

#[test]
fn a_broken_interpreter_is_not_a_worker() {
    for (boot, what) in [
        ("", "it ended"),
        ("raise SystemExit(3)", "it ended"),
        ("import time; time.sleep(100)", "it took longer"),
        ("print('hello there, I am')", "exceeds the limit"),
        ("import os\nwhile True: os.write(2, b'x' * 9999)", "it took longer"),
        ("1 / 0", "ZeroDivisionError"),
    ] {
        let limits = Limits { service: Duration::from_millis(700), ..Limits::default() };
        let error = builder().limits(limits).speaking(boot, &[]).start().unwrap_err().to_string();
        assert!(error.contains(what), "{boot}: {error}");
        assert!(error.len() < 10_000);
    }
    let missing = CPython::at("/nowhere/python3").trust(super::Trust::Mine).start().unwrap_err();
    assert!(missing.to_string().contains("/nowhere/python3 is a file that fails to start"));
}
