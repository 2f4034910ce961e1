//! Files outside of scratch: a step that read one runs again when it changes, in whatever way it
//! read it, and nothing at such a path can stop the host.
use std::fs;
use std::path::Path;
use std::process::Command;

use harness_esg::CodeGraph;

use super::{graph, shown};

/// The file that most steps read, and the steps that do, each in another way.
fn readers(dir: &Path) -> Vec<(&'static str, String)> {
    let file = dir.join("data.txt");
    let shown = |path: &Path| format!("{:?}", path.display().to_string());
    let (path, dir) = (shown(&file), shown(dir));
    vec![
        ("open", format!("open_ = open({path}).read()")),
        ("relative", format!("import os\nrelative = open(os.path.relpath({path})).read()")),
        (
            "home",
            format!(
                "import os\nfolder = os.path.expanduser('~')\n\
                 home = open(os.path.expanduser('~/' + os.path.relpath({path}, folder))).read()"
            ),
        ),
        ("pathlib", format!("import pathlib\npathlib_ = pathlib.Path({path}).read_text()")),
        ("exists", format!("import os\nexists = os.path.exists({dir} + '/more')")),
        ("missing", format!("import os\nmissing = os.path.isdir({dir} + '/folder')")),
        (
            "try",
            format!(
                "try: try_ = open({dir} + '/more').read()\nexcept FileNotFoundError: try_ = 'none'"
            ),
        ),
        ("lines", format!("import linecache\nlines = linecache.getline({path}, 1)")),
        ("lines_again", format!("import linecache\nlines_again = linecache.getline({path}, 1)")),
        (
            "compare",
            format!(
                "import filecmp\nopen('same', 'w').write('one')\n\
                 compare = filecmp.cmp({path}, 'same', shallow=False)"
            ),
        ),
        (
            "descriptor",
            format!(
                "import os\nfd = os.open({path}, os.O_RDONLY)\n\
                 descriptor = os.read(fd, 9)\nos.close(fd)"
            ),
        ),
    ]
}

#[test]
fn a_change_of_a_file_elsewhere_runs_its_readers_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("data.txt"), "one").unwrap();
    let steps = readers(&dir);
    let steps: Vec<_> = steps.iter().map(|(id, source)| (*id, &**source)).collect();
    let mut graph = graph(&steps);
    let report = graph.replay().unwrap();
    assert!(report.ok() && report.untracked.is_empty(), "{report}");
    let report = graph.replay().unwrap();
    assert_eq!(report.executed().count(), 0, "{report}");

    fs::write(dir.join("data.txt"), "two").unwrap();
    fs::write(dir.join("more"), "three").unwrap();
    fs::create_dir(dir.join("folder")).unwrap();
    let plan = graph.plan();
    assert_eq!(plan.steps().count(), steps.len(), "{plan}");
    let report = graph.replay().unwrap();
    let ran: Vec<_> = report.executed().map(|step| &**step).collect();
    assert_eq!(ran, steps.iter().map(|(id, _)| *id).collect::<Vec<_>>(), "{report}");
    for (name, value) in [
        ("open_", "'two'"),
        ("relative", "'two'"),
        ("home", "'two'"),
        ("pathlib_", "'two'"),
        ("exists", "True"),
        ("missing", "True"),
        ("try_", "'three'"),
        ("lines", "'two\\n'"),
        ("lines_again", "'two\\n'"),
        ("compare", "False"),
        ("descriptor", "b'two'"),
    ] {
        assert_eq!(shown(&mut graph, name), value, "{name}");
    }
    assert_eq!(graph.verify().unwrap().differences, [""; 0]);
}

#[test]
fn a_descriptor_of_a_file_elsewhere_may_be_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = fs::canonicalize(dir.path()).unwrap().join("data.txt");
    fs::write(&file, "one").unwrap();
    let open = format!("import os\nfd = os.open({:?}, os.O_RDONLY)", file.display().to_string());
    let mut graph = graph(&[("open", &open), ("read", "import os\nx = os.read(fd, 9)")]);
    graph.replay().unwrap();
    fs::write(&file, "two").unwrap();
    let report = graph.replay().unwrap();
    assert!(report.executed().any(|step| &**step == "read"), "{report}");
}

#[test]
fn what_the_system_computes_is_no_file() {
    let mut graph = graph(&[("a", "x = open('/proc/uptime').read()"), ("b", "y = 1")]);
    let report = graph.replay().unwrap();
    let found: Vec<_> = report.untracked.iter().map(|(step, one)| (&**step, &*one.what)).collect();
    assert_eq!(found, [("a", "reads the system: /proc/uptime")]);
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
}

/// Replays a program that read `file`, after `then` has put something else in its place.
fn replaced(then: impl FnOnce(&Path)) -> (CodeGraph, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = fs::canonicalize(dir.path()).unwrap().join("data");
    fs::write(&file, "one").unwrap();
    let source = format!(
        "import os, stat\nok = os.path.isfile({0:?}) and open({0:?}).read()",
        file.display().to_string()
    );
    let mut graph = graph(&[("a", &source)]);
    graph.replay().unwrap();
    fs::remove_file(&file).unwrap();
    then(&file);
    let report = graph.replay().unwrap();
    let ran = report.executed().map(ToString::to_string).collect();
    (graph, ran)
}

#[test]
fn a_pipe_or_a_device_in_the_place_of_a_file_does_not_stop_the_host() {
    let (mut graph, ran) = replaced(|path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    });
    assert_eq!((shown(&mut graph, "ok"), ran), ("False".into(), vec!["a".to_owned()]));
    let (mut graph, ran) = replaced(|path| {
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    });
    assert_eq!((shown(&mut graph, "ok"), ran), ("False".into(), vec!["a".to_owned()]));
}

#[test]
fn a_huge_file_counts_by_its_size_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let file = fs::canonicalize(dir.path()).unwrap().join("huge");
    // Sparse: reading a terabyte would take longer than the step's limit.
    let huge = fs::File::create(&file).unwrap();
    huge.set_len(1 << 40).unwrap();
    let source = format!("x = open({:?}, 'rb').read(3)", file.display().to_string());
    let mut graph = graph(&[("a", &source)]);
    let report = graph.replay().unwrap();
    assert!(report.ok() && report.untracked.is_empty(), "{report}");
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    huge.set_len(1 << 41).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 1);
}
