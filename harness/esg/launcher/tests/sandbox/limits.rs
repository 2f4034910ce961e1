//! What exhausts something, and what breaks the worker itself. Only limits stop these, so each is tried
//! with more of it, too.
use std::time::Duration;

use harness_esg::{Ending, Limits, WorkerProcess};

use super::{Host, as_each, run};

const MIB: u64 = 1 << 20;

fn start(host: &Host, limits: Limits) -> WorkerProcess {
    host.builder().limits(limits).start().unwrap()
}

/// The endings of a step under these limits and under the usual ones, each followed by another step.
fn both(host: &Host, few: Limits, source: &str) -> [Ending; 2] {
    [few, Limits::default()].map(|limits| {
        let mut python = start(host, limits);
        let ran = run(&mut python, source);
        let next = run(&mut python, "print(sum([1, 2]))");
        assert_eq!((next.ending, &*next.stdout.bytes), (Ending::Ok, &b"3\n"[..]), "{source}");
        ran.ending
    })
}

fn raised(ending: &Ending) -> &str {
    match ending {
        Ending::Raised { type_name, .. } => type_name,
        _ => "",
    }
}

#[test]
fn what_exhausts_a_resource_ends_at_its_limit() {
    let usual = Limits::default();
    let short = Limits { wall: Duration::from_millis(400), ..usual };
    let blocked = "import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
until = time.monotonic() + 0.8
while time.monotonic() < until: pass";
    let late = |ending: &Ending| matches!(ending, Ending::Timeout { .. } | Ending::Stalled { .. });
    let denied = |ending: &Ending| matches!(ending, Ending::Denied { .. });
    as_each(|host| {
        let memory = Limits { address_space: 256 * MIB, ..usual };
        let [few, more] = both(host, memory, "x = bytearray(300 << 20)\nx = None");
        assert_eq!((raised(&few), more), ("MemoryError", Ending::Ok), "{}", host.name);
        // An integer is as large as a step says, too.
        let [few, more] = both(host, memory, "x = 1 << (8 * (300 << 20))\nx = None");
        assert_eq!((raised(&few), more), ("MemoryError", Ending::Ok), "{}", host.name);
        let file = Limits { file_size: MIB, ..usual };
        let [few, more] = both(host, file, "open('large', 'wb').write(bytes(2 << 20))");
        assert_eq!((raised(&few), more), ("OSError", Ending::Ok), "{}", host.name);
        let open = "held = [open('x', 'w') for _ in range(40)]\nheld = None";
        let [few, more] = both(host, Limits { open_files: 32, ..usual }, open);
        assert_eq!((raised(&few), more), ("OSError", Ending::Ok), "{}", host.name);
        let [few, more] = both(host, short, blocked);
        assert!(late(&few) && more == Ending::Ok, "{}: {few:?} {more:?}", host.name);
        let wait = "import time\ntime.sleep(0.5)";
        let space = format!("for n in range(20): open(str(n), 'wb').write(bytes(1 << 20))\n{wait}");
        let [few, more] = both(host, Limits { scratch: 8 * MIB, ..usual }, &space);
        assert!(denied(&few) && more == Ending::Ok, "{}: {few:?} {more:?}", host.name);
        let files = format!("for n in range(300): open(str(n), 'w').close()\n{wait}");
        let [few, more] = both(host, Limits { scratch_files: 200, ..usual }, &files);
        assert!(denied(&few) && more == Ending::Ok, "{}: {few:?} {more:?}", host.name);
    });
}

#[test]
fn a_flood_of_output_is_cut_at_its_limit() {
    let source = "import sys\nfor _ in range(300):\n    print('x' * 1023)\n    print('y' * 1023, file=sys.stderr)";
    as_each(|host| {
        for (output, dropped) in [(64 << 10, (300 << 10) - (64 << 10)), (MIB, 0)] {
            let mut python = start(host, Limits { output, ..Limits::default() });
            let ran = run(&mut python, source);
            assert_eq!(ran.ending, Ending::Ok, "{}", host.name);
            for text in [&ran.stdout, &ran.stderr] {
                assert_eq!(text.dropped, dropped, "{}", host.name);
                assert!(text.bytes.len() as u64 <= output, "{}", host.name);
            }
            assert_eq!(run(&mut python, "print(3)").stdout.bytes, b"3\n", "{}", host.name);
        }
    });
}

#[test]
fn what_breaks_the_worker_is_typed_and_the_session_continues() {
    let each = "import os\nfor fd in [int(n) for n in os.listdir('/proc/self/fd') if len(n) > 1]:\n    try: ";
    let short = Limits { wall: Duration::from_secs(2), ..Limits::default() };
    as_each(|host| {
        let mut python = start(host, short);
        let mut ending = |source: &str| {
            let ran = run(&mut python, source);
            let next = run(&mut python, "assert sorted([2, 1]) == [1, 2] and len('ab') == 2");
            assert_eq!(next.ending, Ending::Ok, "{}: after {source}", host.name);
            ran.ending
        };
        let crashed = |signal| Ending::Crashed { signal: Some(signal), code: None };
        assert_eq!(ending("import ctypes\nctypes.string_at(0)"), crashed(11));
        assert_eq!(ending("import os\nos.kill(os.getpid(), 9)"), crashed(9));
        assert_eq!(ending("import os\nos.abort()"), crashed(6));
        assert_eq!(raised(&ending("def f(): f()\nf()")), "RecursionError");
        // What is so deep succeeds where the interpreter's limit is higher.
        let nested = "def f(n): return n and f(n - 1)\nf(5000)";
        assert_eq!(raised(&ending(nested)), "RecursionError");
        assert_eq!(
            ending(&format!("import sys\nsys.setrecursionlimit(9000)\n{nested}")),
            Ending::Ok
        );
        let deep = "import sys\nsys.setrecursionlimit(10 ** 9)\nx = []\nfor _ in range(10 ** 6): x = [x]\nrepr(x)";
        let deep = ending(deep);
        let broken = matches!(
            deep,
            Ending::Crashed { .. } | Ending::Timeout { .. } | Ending::Stalled { .. }
        );
        assert!(broken || !raised(&deep).is_empty(), "{deep:?}");
        let huge = ending("10 ** 10 ** 8");
        assert!(matches!(huge, Ending::Timeout { .. } | Ending::Stalled { .. }), "{huge:?}");
        let flood = ending("for _ in range(3000): print('x' * 1023)");
        assert_eq!(flood, Ending::Ok);
        let forged = format!(
            "import json, struct\nreply = json.dumps({{'op': 'run', 'nonce': '0' * 32, 'ending': {{'kind': 'ok'}}, 'reads': [], \
             'wrote': {{}}, 'units': [], 'stdout': {{'at': [0, 0]}}, 'stderr': {{'at': [0, 0]}}}}).encode()\n\
             frame = struct.pack('<II', len(reply), 0) + reply\n{each}os.write(fd, frame)\n    except OSError: pass"
        );
        for (what, source) in [
            ("forged frames", forged),
            ("surplus frames", format!("{each}os.write(fd, bytes(100))\n    except OSError: pass")),
            ("closed pipes", format!("{each}os.close(fd)\n    except OSError: pass")),
        ] {
            let ending = ending(&source);
            let caught = matches!(ending, Ending::Protocol { .. } | Ending::Crashed { .. });
            assert!(caught, "{what}: {ending:?}");
        }
        let patched = ending(
            "import builtins, json, os\nbuiltins.len = builtins.sorted = None\njson.dumps = os.write = None",
        );
        assert_eq!(patched, Ending::Ok);
    });
}
