use std::time::{Duration, Instant};

use harness_esg::{Ending, Executor, WorkerProcess};

use super::{run, worker};

#[test]
fn an_unusable_process_is_reported_and_replaced() {
    // However the worker handles it, it does not pass for a successful step.
    let ending = attack(LONG, "sys.modules.clear()\n1 / 0");
    assert_ne!(ending, Ending::Ok);
}

/// Asserts that this worker or the next runs a step as usual.
fn works(python: &mut WorkerProcess, source: &str) {
    let check = "assert sorted([2, 1]) == [1, 2] and 'mark' not in dir()\nprint('well')";
    python.fresh().unwrap();
    let ran = run(python, check);
    assert_eq!(ran.ending, Ending::Ok, "after {source}");
    assert_eq!(ran.stdout.bytes, b"well\n", "after {source}");
}

fn attack(wall: Duration, source: &str) -> Ending {
    let mut python = worker(wall);
    let begun = Instant::now();
    let ran = run(&mut python, &format!("import os, sys, time\nmark = 1\n{source}"));
    assert!(begun.elapsed() < wall + Duration::from_secs(10), "{source}");
    works(&mut python, source);
    ran.ending
}

const LONG: Duration = Duration::from_secs(30);

#[test]
fn loops_and_sleeps_end_at_the_limit() {
    let limit = Duration::from_millis(500);
    for source in [
        "while True: pass",
        "print(10 ** 10 ** 8)",
        "time.sleep(1000)",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import threading\nt = threading.Thread(target=time.sleep, args=(1000,))\nt.start()\nt.join()",
    ] {
        // On a busy machine a loop waits too.
        let late = [Ending::Timeout { limit }, Ending::Stalled { limit }];
        let ending = attack(limit, source);
        assert!(late.contains(&ending), "{source}: {ending:?}");
    }
}

#[test]
fn a_flood_of_output_is_cut() {
    let mut python = worker(LONG);
    let ran = run(&mut python, "for _ in range(3000): print('x' * 1023)");
    assert_eq!(ran.ending, Ending::Ok);
    assert_eq!(ran.stdout.bytes.len(), 1 << 20);
    assert_eq!(ran.stdout.dropped, 3000 * 1024 - (1 << 20));
}

#[test]
fn what_exhausts_memory_harms_itself_only() {
    for source in [
        "bytearray(4 << 30)",
        "held = []\nwhile True: held.append(bytearray(1 << 20))",
        "x = 'a'\nwhile True: x += x",
        "def f(): f()\nf()",
    ] {
        match attack(LONG, source) {
            Ending::Raised { type_name, .. } => {
                assert!(["MemoryError", "RecursionError"].contains(&&*type_name), "{source}");
            }
            Ending::Crashed { .. } | Ending::OutOfMemory => {}
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn the_end_of_a_worker_is_reported() {
    for (source, ending) in [
        ("os._exit(3)", Ending::Crashed { signal: None, code: Some(3) }),
        ("import ctypes; ctypes.string_at(0)", Ending::Crashed { signal: Some(11), code: None }),
        ("os.kill(os.getpid(), 9)", Ending::Crashed { signal: Some(9), code: None }),
        ("os.killpg(0, 9)", Ending::Crashed { signal: Some(9), code: None }),
        (
            "if os.fork() == 0: time.sleep(60)\nos._exit(3)",
            Ending::Crashed { signal: None, code: Some(3) },
        ),
    ] {
        assert_eq!(attack(LONG, source), ending, "{source}");
    }
}

#[test]
fn descriptors_are_no_way_to_speak_for_the_worker() {
    let each = "for fd in [int(fd) for fd in os.listdir('/proc/self/fd')]:\n    try:\n        ";
    let forged = "import json, struct\nj = json.dumps({'op': 'run', 'nonce': '0' * 32, 'ending': {'kind': 'ok'}, \
                  'reads': [], 'wrote': {}, 'units': [], 'stdout': {'at': [0, 0]}, 'stderr': {'at': \
                  [0, 0]}}).encode()\nframe = struct.pack('<II', len(j), 0) + j\n";
    let end = "\n    except OSError: pass";
    // None of these may succeed: a forged reply is never accepted.
    for source in [
        format!("{forged}{each}if fd > 2: os.write(fd, frame){end}"),
        format!("{each}if fd > 2: os.write(fd, b'x' * 100){end}"),
        format!("{each}os.close(fd){end}"),
        "os.closerange(0, 4096)".to_owned(),
    ] {
        let ending = attack(LONG, &source);
        assert!(
            matches!(ending, Ending::Protocol { .. } | Ending::Crashed { .. }),
            "{source}: {ending:?}"
        );
    }
    // Low descriptors are not the worker's.
    let low = attack(LONG, "os.closerange(0, 256)");
    assert!(
        matches!(low, Ending::Ok | Ending::Protocol { .. } | Ending::Crashed { .. }),
        "{low:?}"
    );
}

#[test]
fn hooks_and_patches_stay_in_the_step() {
    for source in [
        "import builtins\nbuiltins.len = builtins.sorted = builtins.isinstance = None",
        "sys.settrace(lambda *a: 1 / 0)\nsys.setprofile(lambda *a: 1 / 0)",
        "sys.addaudithook(lambda *a: None)",
        "sys.stdout = sys.stderr = None",
        "import json, os\njson.dumps = os.write = os.read = None",
        "import signal\nfor s in range(1, 30):\n    try: signal.signal(s, signal.SIG_IGN)\n    except OSError: pass",
        "sys.exit(1)",
        "raise KeyboardInterrupt",
    ] {
        let ending = attack(LONG, source);
        assert!(matches!(ending, Ending::Ok | Ending::Raised { .. }), "{source}: {ending:?}");
    }
}
