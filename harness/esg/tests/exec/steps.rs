use std::time::Duration;

use harness_esg::{CPython, Ending, Entity, Executor, Load, RunStep, Sync, Trust, Wrote};
use serde_json::json;

use super::{builder, interpreters, run, worker};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_step_says_what_it_did_on_every_python() {
    for path in interpreters() {
        let mut python = CPython::at(path).trust(Trust::Mine).start().unwrap();
        let ran = run(&mut python, "x = [1]\ny = x\nprint('made')");
        assert_eq!(ran.ending, Ending::Ok);
        assert_eq!(ran.stdout.bytes, b"made\n");
        assert_eq!(ran.wrote[&Entity::name("x")], Wrote::Bound);
        let unit = &ran.units[0].0;
        assert_eq!((ran.units.len(), unit.members.len(), unit.share.len()), (1, 2, 1));
        let ran = run(&mut python, "x.append(2)");
        assert!(ran.reads.contains(&Entity::name("x")));
        assert_eq!(ran.wrote[&Entity::name("y")], Wrote::Mutated);
        let ran = run(&mut python, "row = rows[0]");
        let Ending::Raised { type_name, name, line, .. } = ran.ending else { panic!("it raised") };
        assert_eq!((&*type_name, name.as_deref(), line), ("NameError", Some("rows"), Some(1)));
        assert!(!ran.lost);
        assert_eq!(python.value("y").unwrap().json, Some(json!([1, 2])));
        assert!(!python.value("rows").unwrap_err().lost());
        assert_eq!(python.sweep().unwrap().units.len(), 1);
    }
}

#[test]
fn a_unit_comes_back_in_another_worker() {
    let mut python = worker(LONG);
    let ran = run(&mut python, "x = {'a': [1, 2.5, 'b']}\ny = x['a']");
    let (unit, blob) = ran.units.into_iter().next().unwrap();
    let members: Vec<Entity> = unit.members.iter().map(|member| member.entity.clone()).collect();
    let load = Load {
        key: unit.key.clone(),
        take: members.clone(),
        members,
        blob: blob.unwrap(),
        refs: unit.refs.clone(),
    };
    python.fresh().unwrap();
    let synced = python.sync(&Sync { load: vec![load], ..Sync::default() }).unwrap();
    assert!(synced.failed.is_empty(), "{synced:?}");
    let ran = run(&mut python, "y.append(x['a'] is y)");
    assert_eq!(ran.ending, Ending::Ok);
    assert_eq!(python.value("x").unwrap().json, Some(json!({"a": [1, 2.5, "b", true]})));
}

#[test]
fn a_value_is_bound_as_a_step_would_bind_it() {
    let mut python = worker(LONG);
    for value in [json!("a text"), json!([1, {"b": null}]), json!("[1]"), json!(2.5), json!(null)] {
        let text = value.to_string();
        let bind = Some(("input", &*text));
        let seq = u64::MAX / 2;
        let step = RunStep { seq, step: "", source: "", bind, readings: None };
        let ran = python.run(&step).unwrap();
        assert_eq!(ran.ending, Ending::Ok);
        assert_eq!(ran.wrote[&Entity::name("input")], Wrote::Bound);
        assert_eq!(python.value("input").unwrap().json, Some(value).filter(|v| !v.is_null()));
        python.fresh().unwrap();
    }
}

#[test]
fn packages_of_an_environment_are_imported_and_reported() {
    let venv = tempfile::tempdir().unwrap();
    let [major, minor, _] = CPython::all()[0].version();
    let packages = venv.path().join(format!("lib/python{major}.{minor}/site-packages"));
    std::fs::create_dir_all(packages.join("tiny-1.2.dist-info")).unwrap();
    std::fs::write(venv.path().join("pyvenv.cfg"), "").unwrap();
    std::fs::write(packages.join("tiny.py"), "answer = 42").unwrap();
    // The standard library takes precedence.
    std::fs::write(packages.join("json.py"), "1 / 0").unwrap();
    std::fs::create_dir(venv.path().join("bin")).unwrap();
    let interpreter = venv.path().join("bin/python");
    std::os::unix::fs::symlink(CPython::all()[0].path(), &interpreter).unwrap();
    // The environment is named, or follows from the interpreter.
    for python in [builder().venv(venv.path()), CPython::at(&interpreter).trust(Trust::Mine)] {
        let mut python = python.start().unwrap();
        let ran = run(&mut python, "import json\nimport tiny\nx = tiny.answer");
        assert_eq!(ran.ending, Ending::Ok);
        assert_eq!(python.value("x").unwrap().json, Some(json!(42)));
    }
}
