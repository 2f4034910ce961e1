use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness_esg_launcher::{LaunchError, Launcher, Layers, Sandbox, Spec, Status};
use serde_json::json;

use super::super::cpython::sources;
use super::super::{CPython, Executor, Isolation, Layer, Limits, StartError, Trust};
use super::{builder, interpreter, run, worker};

/// A launcher on a machine that lacks most layers.
#[derive(Debug)]
struct Weak;

impl Launcher for Weak {
    fn layers(&self) -> Result<Layers, LaunchError> {
        let by = vec!["a wall".to_owned()];
        Ok(Layers::new(vec![
            Status::new(Layer::Files, Vec::new(), Some("landlock is off".to_owned())),
            Status::new(Layer::Network, by, None),
        ]))
    }

    fn command(&self, spec: &Spec) -> Result<Command, LaunchError> {
        Ok(Command::new(&spec.program))
    }
}

#[test]
fn untrusted_code_is_refused_with_the_missing_isolation() {
    let default = || CPython::at(interpreter()).launcher(Weak);
    let said = default().start().unwrap_err().to_string();
    for word in ["lacks files (landlock is off), processes", "Trust::Mine"] {
        assert!(said.contains(word), "{said}");
    }
    assert!(!said.contains("network"), "{said}");
    let process = default().isolation(Isolation::Process).start().unwrap_err();
    assert!(matches!(process, StartError::Unprotected), "{process}");
    let kernel = builder().launcher(Weak).isolation(Isolation::Kernel).start().unwrap_err();
    assert!(matches!(kernel, StartError::Exposed { .. }), "{kernel}");
    let absent = Sandbox::at("/nowhere/launcher");
    let absent = CPython::at(interpreter()).launcher(absent).start().unwrap_err().to_string();
    assert!(absent.contains("/nowhere/launcher") && absent.contains("Trust::Mine"), "{absent}");
    assert!(builder().isolation(Isolation::Process).start().is_ok());
    assert!(builder().launcher(Weak).start().is_ok());
}

#[test]
fn all_interpreters_are_found_once_and_will_do() {
    let all = CPython::all();
    assert!(!all.is_empty(), "no CPython from 3.11 to 3.13 in PATH");
    for (index, one) in all.iter().enumerate() {
        assert!(one.path().is_absolute() && matches!(one.version(), [3, 11..=13, _]), "{one}");
        assert!(all[index + 1..].iter().all(|other| other.path() != one.path()));
    }
}

#[test]
fn an_unsuitable_interpreter_is_reported_with_the_reason() {
    let error = CPython::at("/bin/echo").trust(Trust::Mine).start().unwrap_err().to_string();
    assert!(error.contains("/bin/echo is no Python 3 that works"), "{error}");
    let error = StartError::NoPython {
        tried: vec![("/bin/python3".into(), "CPython 3.8.1 (final)".to_owned())],
    };
    assert!(error.to_string().contains("/bin/python3 is CPython 3.8.1 (final)); install one"));
    assert!(StartError::NoPython { tried: Vec::new() }.to_string().contains("found none at all"));
}

#[test]
fn the_worker_is_the_same_everywhere() {
    let mut python = worker();
    let source = "import os, sys\nenv = dict(os.environ)\nset_ = list({'a', 'b', 'c', 'd', 'e'})\n\
                  flags = [sys.flags.hash_randomization, sys.flags.no_site, sys.path[:1]]\n\
                  cwd = os.getcwd()\npgrp = os.getpgrp() == os.getpid()\n\
                  mode = os.stat('.').st_mode & 0o777";
    run(&mut python, source);
    let scratch = python.scratch();
    let scratch = scratch.to_str().unwrap();
    let mut value = |name: &str| python.value(name).unwrap().json.unwrap();
    let env = json!({"HOME": scratch, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
        "PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "TMPDIR": scratch, "TZ": "UTC"});
    assert_eq!(value("env"), env);
    assert_eq!(value("cwd"), json!(scratch));
    assert_eq!(value("flags")[0], json!(0));
    assert_ne!(value("flags")[2], json!([""]));
    assert_eq!((value("pgrp"), value("mode")), (json!(true), json!(0o700)));
    let order = value("set_");
    let mut other = worker();
    run(&mut other, source);
    assert_eq!(other.value("set_").unwrap().json, Some(order));
}

#[test]
fn an_interpreter_that_differs_is_refused() {
    // The worker tests the interpreter with this module, so it finds other instructions.
    let other = |&(name, source): &(&'static str, &'static str)| match name {
        "values.bytecode" => (name, &*source.replace("2 + 2 * _CACHES[op]", "2").leak()),
        _ => (name, source),
    };
    let modules: Vec<_> = sources::MODULES.iter().map(other).collect();
    let error = builder().speaking(sources::BOOT, modules.leak()).start().unwrap_err();
    let StartError::Differs { found, .. } = &error else { panic!("{error}") };
    assert!(found.starts_with("CPython 3.1") && found.contains("bytecode"), "{error}");
}

#[test]
fn the_greeting_says_everything() {
    let mut python = builder()
        .speaking(super::FAKE, &[("z", "1"), ("a", "2")])
        .limits(Limits { value: 5, output: 6, ..Limits::default() })
        .start()
        .unwrap();
    run(&mut python, "order = list(hello['sources'])\nhello = dict(hello, nonce=0)");
    assert_eq!(python.value("order").unwrap().json, Some(json!(["z", "a"])));
    let hello = python.value("hello").unwrap().json.unwrap();
    let limits = json!({"address_space": 4u64 << 30, "cpu_seconds": 86400, "file_size": 64 << 20,
        "open_files": 64, "output_bytes": 6, "value_bytes": 5, "unit_bytes": 5});
    assert_eq!(hello["limits"], limits);
    assert_eq!(hello["protocol"], json!(1));
    assert_eq!(hello["scratch"], json!(python.scratch()));
    assert_eq!(hello["baseline"]["env"]["TZ"], json!("UTC"));
    assert_eq!(hello["baseline"]["path"], json!([]));
}

#[test]
fn the_fingerprint_distinguishes_programs_and_packages() {
    let one = worker();
    assert_eq!(one.fingerprint(), worker().fingerprint());
    assert!(one.fingerprint().starts_with("cpython 3.1"), "{}", one.fingerprint());
    let other = builder().speaking(super::FAKE, &[("a", "1")]).start().unwrap();
    assert_ne!(one.fingerprint(), other.fingerprint());

    let venv = tempfile::tempdir().unwrap();
    let [major, minor, _] = CPython::all()[0].version();
    let packages = venv.path().join(format!("lib/python{major}.{minor}/site-packages"));
    let start = || builder().venv(venv.path()).start();
    assert!(start().unwrap_err().to_string().contains("no file `pyvenv.cfg`"));
    fs::write(venv.path().join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    assert!(start().unwrap_err().to_string().contains("no packages for Python 3."));
    fs::create_dir_all(&packages).unwrap();
    let empty = start().unwrap();
    fs::create_dir(packages.join("numpy-2.1.dist-info")).unwrap();
    let mut full = start().unwrap();
    assert_ne!(one.fingerprint(), empty.fingerprint());
    assert_ne!(empty.fingerprint(), full.fingerprint());
    run(&mut full, "path = hello['baseline']['path']");
    let path = fs::canonicalize(&packages).unwrap();
    assert_eq!(full.value("path").unwrap().json, Some(json!([path])));
}

/// A launcher that claims every layer and adds none.
#[derive(Debug)]
struct Claims;

impl Launcher for Claims {
    fn layers(&self) -> Result<Layers, LaunchError> {
        let whole = |layer: &Layer| Status::new(*layer, Vec::new(), None);
        Ok(Layers::new(Layer::ALL.iter().map(whole).collect()))
    }

    fn command(&self, spec: &Spec) -> Result<Command, LaunchError> {
        let mut command = Command::new(&spec.program);
        command.args(&spec.args);
        Ok(command)
    }
}

/// What was recorded under one is not kept under another: a step may find each of them different.
#[test]
fn the_fingerprint_distinguishes_isolation_limits_and_a_lasting_scratch() {
    let of = |python: CPython| python.start().unwrap().fingerprint().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let tight = Limits { address_space: 1 << 30, ..Limits::default() };
    let all = [
        of(builder()),
        of(builder().launcher(Claims).isolation(Isolation::Kernel)),
        of(builder().limits(tight)),
        of(builder().limits(Limits { open_files: 32, ..Limits::default() })),
        of(builder().scratch(dir.path().join("scratch"))),
    ];
    for (index, one) in all.iter().enumerate() {
        assert!(!all[..index].contains(one), "{one}");
    }
    assert_eq!(of(builder().isolation(Isolation::Process)), all[0]);
}

#[test]
fn every_file_of_the_worker_goes_with_it() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/worker");
    let inside = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut files: Vec<_> = inside(Path::new(folder))
        .iter()
        .filter(|path| path.is_dir())
        .flat_map(|folder| inside(folder))
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .filter_map(|path| {
            let folder = path.parent()?.file_name()?.to_str()?;
            Some(format!("{folder}.{}", path.file_stem()?.to_str()?))
        })
        .collect();
    files.sort();
    let names: Vec<_> = sources::MODULES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, files);
}

#[test]
fn a_path_to_read_must_be_there() {
    let error = builder().read_only("/nowhere/data").start().unwrap_err();
    assert!(matches!(error, StartError::ReadOnly { .. }), "{error}");
    assert!(builder().read_only("/etc").start().is_ok());
}
