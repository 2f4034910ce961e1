use std::fs;
use std::path::Path;

use super::super::{Ending, Executor, StartError, Sync};
use super::{builder, hasty, run, runs, step, worker};

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_twin_has_the_path_to_itself_and_gives_it_back() {
    let mut python = worker();
    let scratch = python.scratch();
    run(&mut python, "import os\nheld = open('mine', 'w')\nheld.write('before')\nx = 1");
    let mut twin = python.twin().unwrap();
    assert_eq!(twin.fingerprint(), python.fingerprint());
    let source =
        "import os\nassert os.listdir() == []\nopen('other', 'w').close()\nx = os.getcwd()";
    assert_eq!(run(&mut *twin, source).ending, Ending::Ok);
    assert_eq!(twin.value("x").unwrap().json.unwrap(), scratch.to_str().unwrap());

    // The first worker refuses requests meanwhile, without any loss.
    let errors = [
        python.run(&step("x")).unwrap_err(),
        python.sync(&Sync::default()).unwrap_err(),
        python.value("x").unwrap_err(),
        python.sweep().unwrap_err(),
        python.fresh().unwrap_err(),
        python.twin().unwrap_err(),
    ];
    for error in errors {
        assert!(!error.lost() && error.to_string().contains("drop the twin first"), "{error}");
    }
    assert!(twin.twin().unwrap_err().to_string().contains("a twin has no twin"));

    let pid = super::pid(&mut *twin);
    drop(twin);
    assert!(!runs(pid));
    let source = "held.write(' and after')\nheld.close()\nassert os.listdir() == ['mine']\n\
                  assert open('mine').read() == 'before and after' and x == 1";
    assert_eq!(run(&mut python, source).ending, Ending::Ok);
    assert!(python.twin().is_ok());
}

#[test]
fn a_twin_that_breaks_down_starts_afresh_at_the_path() {
    let mut python = hasty();
    run(&mut python, "open('mine', 'w').close()");
    let mut twin = python.twin().unwrap();
    assert!(run(&mut *twin, "open('other', 'w').close()\nwhile True: pass").lost);
    let source = "import os\nassert os.listdir() == []";
    assert_eq!(run(&mut *twin, source).ending, Ending::Ok);
    drop(twin);
    assert_eq!(names(&python.scratch()), ["mine"]);
}

#[test]
fn a_twin_may_outlive_the_first() {
    let mut python = worker();
    let scratch = python.scratch();
    let mut twin = python.twin().unwrap();
    drop(python);
    assert_eq!(run(&mut *twin, "open('other', 'w').close()").ending, Ending::Ok);
    drop(twin);
    assert!(!scratch.exists() && !scratch.parent().unwrap().exists());
}

#[test]
fn content_is_not_lost_with_a_host_that_is() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("scratch");
    let start = || builder().scratch(&root).start();
    let mut python = start().unwrap();
    run(&mut python, "open('mine', 'w').close()");
    assert!(matches!(start().unwrap_err(), StartError::Scratch { .. }), "it is in use");
    drop(python);
    assert_eq!(names(&root.join("work")), ["mine"]);
    // The state that a host leaves if it is killed while a twin works.
    fs::rename(root.join("work"), root.join("aside")).unwrap();
    fs::create_dir(root.join("work")).unwrap();
    fs::write(root.join("work/other"), "").unwrap();

    let mut python = start().unwrap();
    assert_eq!(names(&root.join("before")), ["mine"]);
    assert_eq!(names(&root), ["before", "lock", "work"]);
    assert_eq!(run(&mut python, "import os\nassert os.listdir() == []").ending, Ending::Ok);
    drop(python);
    // Nothing was left this time, so the former content stays.
    drop(start().unwrap());
    assert_eq!(names(&root.join("before")), ["mine"]);
}

#[test]
fn a_directory_with_something_else_in_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "").unwrap();
    let error = builder().scratch(dir.path()).start().unwrap_err().to_string();
    assert!(error.contains("thesis.tex") && error.contains("empty directory"), "{error}");
    assert_eq!(names(dir.path()), ["thesis.tex"]);
    let file = dir.path().join("thesis.tex");
    assert!(builder().scratch(file).start().is_err());
}
