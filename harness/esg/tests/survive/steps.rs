//! Steps that break what they can reach, in the middle of a program.
use std::time::Duration;

use harness_esg::{Blobs, CodeGraph, Ending, Program};

use super::{graph, push, shown, worker_of};

const BEFORE: &str = "xs = [1, 2, 3]\nys = xs\ndef twice(n): return 2 * n";

/// Uses what a step may have replaced, and what was made before it.
const AFTER: &str = "\
import json, io
zs = [twice(x) for x in ys]
class Point:
    def __init__(self, x): self.x = x
    def deep(self, n): return n if n == 0 else self.deep(n - 1) + 1
assert isinstance(Point(1), Point) and len(ys) == len(xs) and Point(1).deep(60) == 60
open('file', 'w').write(json.dumps(zs))
text = open('file').read()
print(text)";

/// Runs `step` between a step that makes something and one that uses it. Returns its ending, and
/// whether it was reported as untracked.
fn amid(step: &str, wall: Duration) -> (Ending, bool) {
    let mut graph = CodeGraph::new(Program::new(), worker_of(0, wall), Blobs::memory());
    let steps = [("before", BEFORE), ("bad", step), ("after", AFTER)];
    graph.edit(|program| push(program, &steps)).unwrap();
    let report = graph.replay().unwrap();
    let right = |graph: &mut CodeGraph, when: &str| {
        let after = graph.execution("after").unwrap();
        assert_eq!(after.ending, Ending::Ok, "{when}: {step}");
        assert_eq!(after.stdout.bytes, b"[2, 4, 6]\n", "{when}: {step}");
        assert_eq!(shown(graph, "zs"), "[2, 4, 6]", "{when}: {step}");
        assert_eq!(shown(graph, "text"), "'[2, 4, 6]'", "{when}: {step}");
        assert_eq!(shown(graph, "xs"), "[1, 2, 3]", "{when}: {step}");
    };
    right(&mut graph, "at once");
    let ending = graph.execution("bad").unwrap().ending.clone();
    // The session continues.
    graph.edit(|program| program.push("next", "n = len(xs) + zs[-1]\nprint(n)")).unwrap();
    let next = graph.replay().unwrap();
    assert_eq!(shown(&mut graph, "n"), "9", "{step}");
    assert!(next.failed.iter().all(|(id, _)| &**id == "bad"), "{step}: {next}");
    right(&mut graph, "after the next step");
    let untracked = !report.untracked.is_empty();
    if !untracked {
        let verdict = graph.verify().unwrap();
        assert!(verdict.same, "{step}: {verdict}");
    }
    (ending, untracked)
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn what_takes_the_worker_with_it_takes_nothing_else() {
    // Another graph, which must be unaffected.
    let mut other = graph(&[("a", "import os\nmade = [os.getpid()]\nhere = made[0]")]);
    other.replay().unwrap();
    let pid = shown(&mut other, "here");
    let crashed = |signal, code| Ending::Crashed { signal, code };
    for (step, wanted) in [
        ("xs.append(4)\nimport os\nos._exit(3)", crashed(None, Some(3))),
        ("xs.append(4)\nimport ctypes\nctypes.string_at(0)", crashed(Some(11), None)),
        ("del xs\nimport os\nos.abort()", crashed(Some(6), None)),
    ] {
        assert_eq!(amid(step, LONG).0, wanted, "{step}");
    }
    let limit = Duration::from_secs(3);
    let (ending, _) = amid("xs.append(4)\nwhile True: pass", limit);
    assert!([Ending::Timeout { limit }, Ending::Stalled { limit }].contains(&ending), "{ending:?}");
    for step in [
        "xs.append(4)\nheld = bytearray(4 << 30)",
        "xs.append(4)\nheld = []\nwhile True: held.append(bytearray(1 << 24))",
        "xs.append(4)\ndef f(n): return f(n + 1)\nf(0)",
    ] {
        match amid(step, LONG).0 {
            Ending::Raised { type_name, .. } => {
                assert!(["MemoryError", "RecursionError"].contains(&&*type_name), "{step}");
            }
            Ending::OutOfMemory | Ending::Crashed { .. } => {}
            ending => panic!("{step}: {ending:?}"),
        }
    }
    for step in [
        "import os\nfor fd in os.listdir('/proc/self/fd'):\n    try: os.write(int(fd), b'x' * 64)\n    except OSError: pass",
        "import os\nos.closerange(0, 4096)",
    ] {
        let (ending, _) = amid(step, LONG);
        assert_ne!(ending, Ending::Ok, "{step}");
    }
    assert_eq!(shown(&mut other, "here"), pid);
    other.edit(|program| program.push("b", "same = os.getpid() == here")).unwrap();
    let report = other.replay().unwrap();
    if report.untracked.is_empty() {
        assert_eq!(shown(&mut other, "same"), "True", "its worker was touched");
    }
}

#[test]
fn hooks_and_patches_do_not_reach_later_steps() {
    for step in [
        "import sys\nsys.settrace(lambda *a: 1 / 0)",
        "import sys\nsys.setprofile(lambda *a: 1 / 0)",
        "import sys\nsys.addaudithook(lambda event, args: None)",
        "import sys\nclass Finder:\n    def find_spec(self, *a): raise ImportError('no')\nsys.meta_path.insert(0, Finder())",
        "import sys\nsys.path_hooks.clear()\nsys.path_importer_cache.clear()\nsys.meta_path.clear()",
        "import sys\nsys.excepthook = sys.displayhook = sys.unraisablehook = None",
        "import builtins\nbuiltins.len = lambda x: 99",
        "import builtins\nbuiltins.fingerprint = lambda *a: None",
        "import builtins\nbuiltins.isinstance = lambda a, b: False",
        "import builtins\nbuiltins.__import__ = None",
        "import builtins\nbuiltins.open = None",
        "import builtins\ndel builtins.len, builtins.open, builtins.__build_class__",
        "__builtins__ = {}",
        "import sys\nsys.setrecursionlimit(10)",
        "import sys\nsys.setrecursionlimit(30)",
        "import sys\nsys.stdout = sys.stderr = None",
        "import sys, io\nsys.stdout.close()",
        "import gc\ngc.disable()\ngc.set_threshold(1)",
        "import sys\nsys.setswitchinterval(1000)\nsys.set_int_max_str_digits(640)",
        "import io, os\nos.write = os.read = os.stat = None",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
        "raise KeyboardInterrupt",
        "raise SystemExit(3)",
        "class Odd(BaseException):\n    def __str__(self): raise Odd\n    __repr__ = __str__\nraise Odd",
    ] {
        let (ending, _) = amid(step, LONG);
        assert!(matches!(ending, Ending::Ok | Ending::Raised { .. }), "{step}: {ending:?}");
    }
}
