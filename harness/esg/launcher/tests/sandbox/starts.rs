use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness_esg::{
    Blobs, CPython, CodeGraph, Ending, Executor, Isolation, Limits, Program, Ran, StartError,
    Trust, WorkerProcess,
};
use harness_esg_launcher::{Launcher, Layer, Sandbox};

use super::attacks::Claims;
use super::{as_each, run};

#[test]
fn this_machine_has_every_layer() {
    as_each(|host| {
        let layers = host.sandbox().layers().unwrap();
        assert!(layers.missing().is_empty(), "{}:\n{layers}", host.name);
        println!("{}:\n{layers}", host.name);
        assert_eq!(layers.iter().count(), Layer::ALL.len());
    });
}

#[test]
fn untrusted_code_runs_in_the_sandbox() {
    as_each(|host| {
        let mut python = host.builder().start().unwrap();
        assert_eq!(python.caps().isolation, Some(Isolation::Kernel));
        assert!(python.fingerprint().contains("isolation kernel"));
        let ran = run(&mut python, "open('a', 'w').write('b')\nprint(open('a').read())");
        assert_eq!((ran.ending, &*ran.stdout.bytes), (Ending::Ok, &b"b\n"[..]), "{}", host.name);
    });
}

#[test]
fn a_launcher_that_lacks_a_layer_is_refused() {
    as_each(|host| {
        let weak = host.sandbox().without(Layer::Network);
        let error = CPython::at(&host.python).launcher(weak).start().unwrap_err();
        let StartError::Exposed { missing } = &error else { panic!("{error}") };
        assert_eq!(missing.iter().map(|one| one.layer).collect::<Vec<_>>(), [Layer::Network]);
        let none = CPython::at(&host.python).launcher(Sandbox::at("/bin/true")).start();
        assert!(matches!(none.unwrap_err(), StartError::Launcher { .. }));
    });
}

/// Descriptors that the host did not close on purpose.
#[test]
fn the_worker_inherits_no_descriptor() {
    as_each(|host| {
        let file = fs::File::open(&host.launcher).unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        let source = format!("import os\nos.fstat({})\nprint('through')", file.as_raw_fd());
        let mut sandboxed = host.builder().start().unwrap();
        let Ending::Raised { type_name, .. } = run(&mut sandboxed, &source).ending else {
            panic!("{}: it is open", host.name);
        };
        assert_eq!(type_name, "OSError", "{}", host.name);
        let mut bare = host.builder().trust(Trust::Mine).start().unwrap();
        assert_eq!(run(&mut bare, &source).ending, Ending::Ok, "{}", host.name);
    });
}

/// Cargo gives a test variables, as a host has keys in some of its own.
#[test]
fn the_worker_inherits_no_variable() {
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let source = "import os\nat_start = open('/proc/self/environ', 'rb').read()\n\
                  assert b'CARGO' not in at_start, at_start\n\
                  assert 'CARGO_MANIFEST_DIR' not in os.environ";
    as_each(|host| {
        let ran = run(&mut host.builder().start().unwrap(), source);
        assert_eq!(ran.ending, Ending::Ok, "{}", host.name);
    });
}

#[test]
fn what_may_be_read_is_read_and_not_written() {
    as_each(|host| {
        let data = host.outside().join("data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("rows.csv"), "1,2\n").unwrap();
        fs::set_permissions(data.join("rows.csv"), Permissions::from_mode(0o666)).unwrap();
        let mut python = host.builder().read_only(&data).start().unwrap();
        let path = data.join("rows.csv");
        let ran = run(&mut python, &format!("print(open({path:?}).read(), end='')"));
        assert_eq!((ran.ending, &*ran.stdout.bytes), (Ending::Ok, &b"1,2\n"[..]), "{}", host.name);
        for write in ["open(PATH, 'a')", "os.remove(PATH)", "os.utime(PATH)"] {
            let ran = run(&mut python, &format!("import os\nPATH = {path:?}\n{write}"));
            assert!(matches!(ran.ending, Ending::Raised { .. }), "{}: {write}", host.name);
        }
        assert!(
            python.readable().allows(&path) && !python.readable().allows(Path::new("/etc/passwd"))
        );
    });
}

/// Root owns this file, and without landlock only its rights protect it.
#[test]
fn the_rights_of_root_are_gone() {
    as_each(|host| {
        if host.name != "root" {
            return;
        }
        let file = host.outside().join("of-root");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let source = format!("open({file:?}, 'a').write('x')");
        let mut user = Claims::start(host, &[Layer::Files]);
        assert!(matches!(run(&mut user, &source).ending, Ending::Raised { .. }));
        let mut root = Claims::start(host, &[Layer::Files, Layer::User]);
        assert_eq!(run(&mut root, &source).ending, Ending::Ok);
    });
}

#[test]
fn a_graph_replays_and_verifies_in_the_sandbox() {
    as_each(|host| {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Program::new();
        for (id, source) in [
            ("load", "rows = [3, 1, 2]\nopen('rows.txt', 'w').write('3 1 2')"),
            ("sort", "rows.sort()"),
            ("read", "text = open('rows.txt').read()"),
            ("forks", "import os\ntry: os.fork()\nexcept PermissionError: refused = True"),
        ] {
            program.push(id, source).unwrap();
        }
        let start = || host.builder().start().unwrap();
        let mut graph = CodeGraph::new(program, start(), Blobs::dir(folder.path()).unwrap());
        assert!(graph.replay().unwrap().ok(), "{}", host.name);
        graph.edit(|program| program.replace("sort", "rows.sort(reverse=True)")).unwrap();
        let report = graph.replay().unwrap();
        assert!(report.ok(), "{}: {report}", host.name);
        assert_eq!(graph.value("refused").unwrap().repr, "True");
        let verdict = graph.verify().unwrap();
        assert!(verdict.same, "{}: {verdict}", host.name);
    });
}

/// It is in the sandbox before scratch is its own.
#[test]
fn the_worker_that_waits_is_in_the_sandbox_and_takes_the_place_of_another() {
    as_each(|host| {
        let mut python = host.builder().start().unwrap();
        let write =
            "import os\nassert os.listdir() == []\nopen('a', 'w').write('b')\nprint(os.getpid())";
        let pid = |ran: Ran| String::from_utf8_lossy(&ran.stdout.bytes).trim().to_owned();
        for _ in 0..2 {
            let first = pid(run(&mut python, write));
            let children = fs::read_to_string("/proc/thread-self/children").unwrap();
            let waiting: Vec<_> =
                children.split_ascii_whitespace().filter(|child| *child != first).collect();
            python.fresh().unwrap();
            let ran = run(&mut python, write);
            assert_eq!(ran.ending, Ending::Ok, "{}", host.name);
            assert_eq!(waiting, [pid(ran)], "{}", host.name);
            let secret = host.outside().join("secret");
            fs::write(&secret, "").unwrap();
            for refused in [
                format!("open({secret:?})"),
                format!("open({:?}, 'w')", python.scratch().with_file_name("lock")),
                "import os\nos.utime('/tmp')".to_owned(),
                "import os\nos.fork()".to_owned(),
            ] {
                let ran = run(&mut python, &refused);
                assert!(matches!(ran.ending, Ending::Raised { .. }), "{}: {refused}", host.name);
            }
            python.fresh().unwrap();
        }
    });
}

/// Values run code of the step when they are loaded: in the sandbox, and never in the host.
#[test]
fn a_value_that_runs_code_runs_it_in_the_sandbox() {
    as_each(|host| {
        let loads = |python: WorkerProcess, file: &Path| {
            let source = format!(
                "class Trap:\n    def __reduce__(self):\n        return (open, ({file:?}, 'w'))\nheld = Trap()"
            );
            let mut program = Program::new();
            program.push("trap", &source).unwrap();
            program.push("use", "kind = type(held).__name__").unwrap();
            let mut graph = CodeGraph::new(program, python, Blobs::memory());
            graph.replay().unwrap();
            graph.edit(|program| program.replace("use", "kind = str(type(held))")).unwrap();
            graph.replay().unwrap();
            graph.verify().unwrap();
            file.exists()
        };
        let (contained, through) = (host.outside().join("reduced"), host.outside().join("through"));
        assert!(!loads(host.builder().start().unwrap(), &contained), "{}", host.name);
        // Loaded where files are not protected, it does what it is made for.
        let value = format!(
            "import pickle\nclass Trap:\n    def __reduce__(self):\n        return (open, ({through:?}, 'w'))\n\
             pickle.loads(pickle.dumps(Trap()))"
        );
        let ran = run(&mut Claims::start(host, &[Layer::Files]), &value);
        assert!(ran.ending == Ending::Ok && through.exists(), "{}: {:?}", host.name, ran.ending);
    });
}

/// Needs `HARNESS_VENV`, which `.ci/test` sets.
#[test]
fn programs_on_arrays_and_frames_run() {
    let Some(venv) = std::env::var_os("HARNESS_VENV").map(PathBuf::from) else {
        eprintln!("nothing is tested: `HARNESS_VENV` names no virtual environment");
        return;
    };
    let source = include_str!("data.py");
    as_each(|host| {
        let interpreter = venv.join("bin/python");
        if host.name == "user" && !super::is_open(&interpreter) {
            return;
        }
        let wall = Duration::from_secs(120);
        let limits = Limits { wall, cpu: wall, address_space: 8 << 30, ..Limits::default() };
        let python = CPython::at(interpreter).launcher(host.sandbox()).limits(limits);
        let ran = run(&mut python.start().unwrap(), source);
        let said = String::from_utf8_lossy(&ran.stdout.bytes).into_owned();
        assert_eq!((ran.ending, &*said), (Ending::Ok, "done\n"), "{}", host.name);
    });
}

const HOST: &str = "HARNESS_TEST_LAUNCHER";

/// The process that the test below kills. Does nothing when it runs as a test.
#[test]
fn a_host() {
    let Some(launcher) = std::env::var_os(HOST) else { return };
    let all = CPython::all();
    let python = CPython::at(all[0].path()).launcher(Sandbox::at(launcher));
    let mut python = python.start().unwrap();
    run(&mut python, "import os\npid = os.getpid()");
    println!("\nworker {}", python.value("pid").unwrap().repr);
    run(&mut python, "while True: pass");
}

#[test]
fn a_killed_host_leaves_no_worker() {
    let temporary = tempfile::tempdir().unwrap();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "starts::a_host", "--nocapture"])
        .env(HOST, env!("CARGO_BIN_EXE_harness-esg-launcher"))
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines().map_while(Result::ok);
    let pid = lines.find_map(|line| line.strip_prefix("worker ").map(str::to_owned)).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    let begun = Instant::now();
    // It may remain as a zombie.
    while fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap().starts_with('Z'))
    {
        assert!(begun.elapsed() < Duration::from_secs(20), "worker {pid} is still there");
        std::thread::yield_now();
    }
}
