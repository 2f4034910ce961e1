//! The guarantees of a replay, one case each.
use harness_esg::{CodeGraph, Entity, Reason};

use crate::{graph, pythons, worker};

#[test]
fn a_step_that_fails_leaves_what_was_there() {
    for python in pythons() {
        let mut graph = graph(
            &python,
            &[
                ("log", "log = []\nk = 1"),
                ("bad", "log.append('start')\nk = 2\ny = k / 0"),
                ("read", "n = len(log) + k"),
            ],
        );
        let report = graph.replay().unwrap();
        assert_eq!(report.failed.len(), 1);
        assert_eq!(graph.value("n").unwrap().repr, "1");
        assert!(graph.value("y").is_err());
        assert!(graph.verify().unwrap().same);
    }
}

#[test]
fn a_stored_graph_resumes_in_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let python = pythons().remove(0);
    let mut first = CodeGraph::open(dir.path(), worker(&python)).unwrap();
    first.edit(|program| program.push("a", "xs = [1, 2]")).unwrap();
    first.edit(|program| program.push("b", "ys = [x * 2 for x in xs]")).unwrap();
    assert_eq!(first.replay().unwrap().ran.len(), 2);
    let other = CodeGraph::open(dir.path(), worker(&python)).unwrap_err();
    assert!(other.is_in_use(), "{other}");
    drop(first);

    let mut second = CodeGraph::open(dir.path(), worker(&python)).unwrap();
    let report = second.replay().unwrap();
    assert!(report.ran.is_empty(), "{report}");
    assert_eq!(second.value("ys").unwrap().repr, "[2, 4]");
    second.edit(|program| program.replace("b", "ys = [x * 3 for x in xs]")).unwrap();
    let report = second.replay().unwrap();
    assert_eq!(report.ran, [("b".into(), Reason::Edited)]);
    assert!(second.verify().unwrap().same);
}

#[test]
fn going_back_to_a_version_runs_nothing() {
    let python = pythons().remove(0);
    let mut graph = graph(&python, &[("a", "x = 1"), ("b", "y = x + 1")]);
    graph.replay().unwrap();
    let before = graph.program().step("a").unwrap().version;
    graph.edit(|program| program.replace("a", "x = 5")).unwrap();
    assert_eq!(graph.replay().unwrap().ran.len(), 2);
    graph.edit(|program| program.rollback(before)).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ran.is_empty(), "{report}");
    assert_eq!(graph.value("y").unwrap().repr, "2");
}

#[test]
fn an_input_is_a_channel_like_any_other() {
    let python = pythons().remove(0);
    let mut graph = graph(&python, &[("a", "n = len(names)"), ("b", "k = 3")]);
    graph.edit(|program| program.input("names", serde_json::json!(["x", "y"]))).unwrap();
    graph.replay().unwrap();
    assert_eq!(graph.value("n").unwrap().repr, "2");
    graph.edit(|program| program.input("names", serde_json::json!(["x", "y", "z"]))).unwrap();
    let report = graph.replay().unwrap();
    let ran: Vec<_> = report.executed().map(|step| &**step).collect();
    assert_eq!(ran, ["input/names", "a"]);
    assert_eq!(report.ran[1].1, Reason::Inputs(vec![Entity::name("names")]));
}

#[test]
fn answers_are_sentences() {
    let python = pythons().remove(0);
    let mut graph = graph(
        &python,
        &[("load", "rows = [3, 1]"), ("clean", "rows = sorted(rows)"), ("sum", "t = sum(rows)")],
    );
    graph.replay().unwrap();
    let chain = graph.producer_of(&Entity::name("t")).unwrap().to_string();
    assert!(
        chain.starts_with("`t` was written by sum (v2), which read `rows` from clean"),
        "{chain}"
    );
    assert_eq!(graph.why_stale("sum").unwrap(), None);
    let version = graph.edit(|program| program.replace("clean", "rows = rows[:1]")).unwrap();
    let why = graph.why_stale("sum").unwrap().unwrap();
    assert_eq!(
        why,
        "sum would run: it may read `rows`, which may change; `rows` is written by clean, which would run: its code was edited"
    );
    graph.replay().unwrap();
    let effect = graph.effect_of(version).to_string();
    assert_eq!(
        effect,
        "v3 touched:\n  clean: changed `rows`\n  sum, which read `rows`: changed `t`"
    );
    let at = graph.ran_at(1, 1).unwrap();
    assert_eq!(&*at.execution.source, "rows = sorted(rows)");
    assert_eq!(graph.value_at(1, 1, "rows").unwrap().repr, "[1, 3]");
    let plan = graph.if_changed("rows").unwrap();
    assert_eq!(plan.steps().map(|(step, _)| step).collect::<Vec<_>>(), ["sum"]);
}

#[test]
fn a_lost_value_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let python = pythons().remove(0);
    let mut first = CodeGraph::open(dir.path(), worker(&python)).unwrap();
    first.edit(|program| program.push("a", "xs = list(range(1000))")).unwrap();
    first.edit(|program| program.push("b", "xs.append(5)")).unwrap();
    first.edit(|program| program.push("c", "n = sum(xs)")).unwrap();
    first.replay().unwrap();
    drop(first);
    std::fs::remove_dir_all(dir.path().join("blobs")).unwrap();
    let mut second = CodeGraph::open(dir.path(), worker(&python)).unwrap();
    second.edit(|program| program.replace("c", "n = sum(xs) + 1")).unwrap();
    let report = second.replay().unwrap();
    assert_eq!(report.rebuilt, ["a".into(), "b".into()], "{report}");
    assert!(second.verify().unwrap().same);
}

#[test]
fn what_a_failed_step_wrote_to_an_open_file_is_gone() {
    for python in pythons() {
        let steps = [
            ("open", "handle = open('one.txt', 'w')"),
            ("fails", "pass"),
            ("read", "text = open('one.txt').read()"),
        ];
        let mut graph = graph(&python, &steps);
        graph.replay().unwrap();
        let sources =
            ["handle.write('3')\nundefined", "handle.write('3')\nhandle.flush()\nundefined"];
        for (at, source) in sources.into_iter().enumerate() {
            graph.edit(|program| program.replace("fails", source)).unwrap();
            graph.replay().unwrap();
            assert_eq!(graph.value("text").unwrap().repr, "''");
            let verdict = graph.verify().unwrap();
            assert!(verdict.same, "{}: {source}: {verdict}", python.display());
            let read = format!("text = open('one.txt').read()  # {at}\nlength = len(text) + {at}");
            graph.edit(|program| program.replace("read", &read)).unwrap();
            graph.replay().unwrap();
            assert_eq!(graph.value("text").unwrap().repr, "''");
            let verdict = graph.verify().unwrap();
            assert!(verdict.same, "{}: {source}: {verdict}", python.display());
        }
    }
}

/// A comment before a function runs nothing, and moves its lines.
#[test]
fn after_an_edit_of_the_layout_functions_show_their_present_lines() {
    let show = "import inspect, traceback\ntext = inspect.getsource(f)\ntry:\n    f(0)\nexcept ZeroDivisionError:\n    traceback.print_exc()";
    for python in pythons() {
        let steps = [
            (
                "define",
                "k = 1\ndef f(x):\n    return k / x\nclass C:\n    def g(self):\n        return f(0)",
            ),
            ("fails", "f(0)"),
            ("method", "C().g()"),
            ("apart", "n = k"),
            ("show", show),
        ];
        let mut graph = graph(&python, &steps);
        graph.replay().unwrap();
        let texts = [
            "k = 1\n# Divides.\n\ndef f(x):\n    # Not by zero.\n    return k / x\nclass C:\n\n    def g(self):\n        return f(0)",
            "k = 1\ndef f(x):\n    return k / x\nclass C:\n    def g(self):\n        return f(0)",
            "# A\nk = 1\ndef f(x):\n    return k / x\nclass C:\n    def g(self):\n        return f(0)",
        ];
        for text in texts {
            graph.edit(|program| program.replace("define", text)).unwrap();
            // It runs for its own sake.
            graph
                .edit(|program| program.replace("show", &format!("{show}\nn = {}", text.len())))
                .unwrap();
            let (ran, planned) = crate::plan::ran_and_planned(&mut graph);
            let python = python.display();
            assert!(!ran.contains("define") && !ran.contains("apart"), "{python}: {ran:?}");
            assert!(ran.is_subset(&planned), "{python}: ran {ran:?}, planned {planned:?}");
            let verdict = graph.verify().unwrap();
            assert!(verdict.same, "{python}: {text}: {verdict}");
            let (ran, _) = crate::plan::ran_and_planned(&mut graph);
            assert!(ran.is_empty(), "{python}: {ran:?}");
        }
        // Its own layout, too.
        graph.edit(|program| program.replace("fails", "\n\nf(0)")).unwrap();
        assert_eq!(graph.replay().unwrap().executed().count(), 1);
        assert!(graph.verify().unwrap().same);
    }
}

#[test]
fn what_another_process_loads_shows_its_present_lines() {
    let made = "def f(x):\n    return 1 / x\nclass C:\n    def g(self): pass\nclass D: n = 1\n";
    let call = "import inspect\ntext = [inspect.getsource(one) for one in (C, D)]";
    for python in pythons() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = CodeGraph::open(dir.path(), worker(&python)).unwrap();
        first.edit(|program| program.push("define", made)).unwrap();
        first.edit(|program| program.push("call", "n = f(1)")).unwrap();
        first.edit(|program| program.push("show", call)).unwrap();
        first.replay().unwrap();
        let shown = "['class C:\\n    def g(self): pass\\n', 'class D: n = 1\\n']";
        assert_eq!(first.value("text").unwrap().repr, shown);
        drop(first);
        let mut second = CodeGraph::open(dir.path(), worker(&python)).unwrap();
        let text = format!("# Divides.\n{made}");
        second.edit(|program| program.replace("define", &text)).unwrap();
        let fails = "import inspect\nsource = inspect.getsource(f)\nn = f(0)";
        second.edit(|program| program.replace("call", fails)).unwrap();
        let again = format!("{call}\nm = 1");
        second.edit(|program| program.replace("show", &again)).unwrap();
        let report = second.replay().unwrap();
        assert_eq!(report.executed().count(), 2, "{report}");
        assert_eq!(second.value("text").unwrap().repr, shown);
        assert!(second.verify().unwrap().same);
    }
}
