use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command};

use harness_esg::{CPython, Ending, Executor, Limits, Ran, WorkerProcess};
use harness_esg_launcher::{LaunchError, Launcher, Layer, Layers, Sandbox, Spec, Status};

use super::cases::{CASES, Case, PRELUDE, Stopped};
use super::{Host, as_each, run};

/// A sandbox that claims to be whole.
#[derive(Debug)]
pub(super) struct Claims(Sandbox);

impl Claims {
    /// A worker without these layers.
    pub(super) fn start(host: &Host, off: &[Layer]) -> WorkerProcess {
        let weak = off.iter().fold(host.sandbox(), |sandbox, layer| sandbox.without(*layer));
        let python = CPython::at(&host.python).launcher(Self(weak)).limits(limits());
        python.start().unwrap()
    }
}

impl Launcher for Claims {
    fn layers(&self) -> Result<Layers, LaunchError> {
        let whole = |layer: &Layer| Status::new(*layer, Vec::new(), None);
        Ok(Layers::new(Layer::ALL.iter().map(whole).collect()))
    }

    fn command(&self, spec: &Spec) -> Result<Command, LaunchError> {
        self.0.command(spec)
    }
}

/// What is outside of scratch, and must stay as it is.
struct Outside {
    port: u16,
    host: Child,
    _open: (TcpListener, UnixListener, UnixDatagram),
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.host.kill().ok();
        self.host.wait().ok();
    }
}

const SECRET: &str = "a secret";

fn outside(host: &Host) -> Outside {
    let at = |name: &str| host.outside().join(name);
    for (name, content) in [("secret", SECRET), ("empty", "")] {
        fs::write(at(name), content).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(0o666)).unwrap();
    }
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let unix = UnixListener::bind(at("socket")).unwrap();
    let datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
    for name in ["socket", "datagrams"] {
        fs::set_permissions(at(name), Permissions::from_mode(0o777)).unwrap();
    }
    let other = Command::new("sleep").arg("1000").env("SECRET", SECRET).spawn().unwrap();
    Outside { port: tcp.local_addr().unwrap().port(), host: other, _open: (tcp, unix, datagrams) }
}

fn attack(host: &Host, outside: &Outside, python: &mut WorkerProcess, case: Case) -> Ran {
    let (port, other) = (outside.port, outside.host.id());
    let place = format!("OUT, PORT, HOST = {:?}, {port}, {other}\n", host.outside());
    run(python, &format!("{place}{PRELUDE}{}\nprint('through')", case.source))
}

fn limits() -> Limits {
    Limits { threads: 16, ..Limits::default() }
}

/// What is in the directory outside, without what attacks may change by reading.
fn content(host: &Host) -> Vec<(String, u32, Vec<u8>)> {
    let entries = fs::read_dir(host.outside()).unwrap().map(|entry| entry.unwrap());
    let mut all: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            let content = if name == "launcher" {
                Vec::new()
            } else {
                fs::read(entry.path()).unwrap_or_default()
            };
            (name, mode, content)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn every_attack_is_stopped_and_the_session_continues() {
    as_each(|host| stops(host, host.sandbox(), &[]));
}

/// Many containers forbid namespaces.
#[test]
fn attacks_are_stopped_without_namespaces() {
    as_each(|host| {
        let but: &[&str] = match host.name {
            // Times and attributes of files that everyone may write to.
            "root" => &["touch a file", "change an attribute"],
            // The limit would count all processes of the user.
            _ => &["many threads"],
        };
        stops(host, host.sandbox().without_namespaces(), but);
    });
}

/// Tries every attack in this sandbox, but for those by these names.
fn stops(host: &Host, sandbox: Sandbox, but: &[&str]) {
    let outside = outside(host);
    let before = content(host);
    let python = CPython::at(&host.python).launcher(sandbox).limits(limits());
    let mut python = python.start().unwrap();
    let mut faults = Vec::new();
    for case in CASES.iter().filter(|case| !but.contains(&case.name)) {
        let ran = attack(host, &outside, &mut python, *case);
        let stopped = match (&ran.ending, case.stopped) {
            (Ending::Raised { type_name, .. }, Stopped::Raised(expected)) => {
                // A permission is missing in more than one way.
                let also = expected == "OSError" && type_name == "PermissionError";
                type_name == expected || also
            }
            (Ending::Denied { .. }, Stopped::Denied) => ran.lost,
            _ => false,
        };
        if !stopped {
            faults.push(format!("{}: {:?} {:?}", case.name, ran.ending, ran.stdout));
        }
        let next = run(&mut python, "print(sum([1, 2]))");
        assert_eq!((next.ending, &*next.stdout.bytes), (Ending::Ok, &b"3\n"[..]), "{}", case.name);
    }
    assert!(faults.is_empty(), "{}:\n{}", host.name, faults.join("\n"));
    assert_eq!(content(host), before, "{}", host.name);
}

#[test]
fn every_attack_succeeds_without_its_layers() {
    as_each(|host| {
        let outside = outside(host);
        let (mut faults, mut workers) = (Vec::new(), BTreeMap::new());
        for case in CASES {
            let python = workers.entry(case.off).or_insert_with(|| Claims::start(host, case.off));
            if case.off.contains(&Layer::System) {
                // An earlier attack may have changed the process itself.
                python.fresh().unwrap();
            }
            let ran = attack(host, &outside, python, *case);
            // One that becomes another program has no say about its end.
            let through = ran.ending == Ending::Ok && ran.stdout.bytes.starts_with(b"through")
                || case.source.contains("execv(")
                    && matches!(ran.ending, Ending::Crashed { signal: None, code: Some(0) });
            if !through {
                faults.push(format!("{}: {:?}", case.name, ran.ending));
            }
        }
        assert!(faults.is_empty(), "{}:\n{}", host.name, faults.join("\n"));
    });
}
