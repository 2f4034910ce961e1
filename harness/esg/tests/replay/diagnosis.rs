//! Why a step fails, and what the rules propose.
use harness_esg::diagnosis::{FailureKind, Why};
use harness_esg::{CodeGraph, Diagnosis, RulePatcher};

use crate::{graph, pythons};

fn failing(steps: &[(&str, &str)]) -> CodeGraph {
    let mut graph = graph(&pythons()[0], steps);
    assert!(!graph.replay().unwrap().ok());
    graph
}

fn diagnosis(graph: &mut CodeGraph) -> Diagnosis {
    graph.diagnose().unwrap().expect("a step fails")
}

/// The root cause: its step, its line, and why.
fn root(diagnosis: &Diagnosis) -> (&str, Option<usize>, &Why) {
    let root = diagnosis.root.as_ref().unwrap_or_else(|| panic!("{diagnosis}"));
    (&root.at.step, root.at.line, &root.why)
}

#[test]
fn a_missing_name_has_near_names_and_blocks_its_readers() {
    for python in pythons() {
        let steps = [
            ("load", "rows = [3, 1]"),
            ("other", "x = 1"),
            ("total", "# sums\ntotal = sum(row)"),
            ("show", "print(total)"),
            ("last", "y = x"),
        ];
        let mut graph = graph(&python, &steps);
        graph.replay().unwrap();
        let found = diagnosis(&mut graph);
        assert_eq!(found.kind, FailureKind::MissingName);
        assert_eq!((&*found.failing.step, found.failing.line), ("total", Some(2)));
        assert_eq!(found.near(), ["rows", "pow"], "{found}");
        assert_eq!(found.affected, ["show".into()]);
        assert_eq!(found.involved(), ["total".into()]);
        let said =
            "step total, line 2 (`total = sum(row)`) fails: NameError: name 'row' is not defined";
        assert!(found.to_string().starts_with(said), "{found}");
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Diagnosis>(&json).unwrap(), found);
        // Nothing of the look at it stays.
        assert_eq!(graph.replay().unwrap().executed().count(), 0);
        assert!(graph.verify().unwrap().same);
    }
}

#[test]
fn a_wrong_value_is_followed_to_the_step_that_made_it() {
    let mut graph = failing(&[
        ("load", "rows = [{'v': 1, 'n': 'a'}, {'v': 2, 'n': 'b'}]"),
        ("pick", "# keeps the names\nnames = [{'n': row['n']} for row in rows]"),
        ("sort", "ordered = sorted(names, key=lambda row: row['n'])"),
        ("total", "total = sum(row['v'] for row in ordered)"),
    ]);
    let found = diagnosis(&mut graph);
    assert_eq!(found.kind, FailureKind::MissingKey);
    // `sort` only passes on what `pick` made, and `load` had the key.
    assert_eq!(root(&found), ("pick", Some(2), &Why::Wrote { name: "names".into() }));
    assert!(
        found.to_string().contains("`ordered` is a list, written by sort: [{'n': 'a'}"),
        "{found}"
    );

    let mut graph = failing(&[
        ("load", "rows = [1, None, 3]"),
        ("copy", "values = list(rows)"),
        ("total", "total = sum(values)"),
    ]);
    let found = diagnosis(&mut graph);
    assert_eq!(root(&found), ("load", Some(1), &Why::Wrote { name: "rows".into() }));
    let made = graph.execution("load").unwrap().seq;
    assert_eq!(found.root.as_ref().unwrap().execution, Some(made));
    // An edit that has not run made nothing: the cause is the execution that the failing step saw.
    graph.edit(|program| program.replace("load", "# new\nrows = [1, 2, 3]")).unwrap();
    assert_eq!(diagnosis(&mut graph).root.unwrap().execution, Some(made));
}

#[test]
fn a_name_that_a_step_should_have_bound_has_that_step_as_its_root() {
    let steps = [("load", "rows = [1]"), ("total", "total = sum(rows)")];
    let mut graph = graph(&pythons()[0], &steps);
    assert!(graph.replay().unwrap().ok());
    let version = graph.program().step("load").unwrap().version;
    graph.edit(|program| program.replace("load", "records = [1]")).unwrap();
    graph.replay().unwrap();
    let found = diagnosis(&mut graph);
    assert_eq!(root(&found), ("load", None, &Why::BoundBefore { name: "rows".into(), version }));

    let mut graph = failing(&[("a", "x = 1"), ("b", "y = 1\ndel x"), ("c", "z = x")]);
    assert_eq!(root(&diagnosis(&mut graph)), ("b", Some(2), &Why::Deleted { name: "x".into() }));

    let mut graph = failing(&[("a", "z = x"), ("b", "x = 1")]);
    assert_eq!(root(&diagnosis(&mut graph)), ("b", Some(1), &Why::BindsLater { name: "x".into() }));
}

#[test]
fn a_failure_in_a_function_leads_to_the_step_that_defines_it() {
    let mut graph = failing(&[
        ("define", "import math\n\ndef area(r):\n    return math.pie * r ** 2"),
        ("use", "a = area(2)"),
    ]);
    let found = diagnosis(&mut graph);
    assert_eq!(found.failing.step, "use".into());
    assert_eq!(root(&found), ("define", Some(4), &Why::Defines { function: "area".into() }));
    let patch = &RulePatcher.patches(&found, graph.program())[0];
    assert_eq!(patch.steps().collect::<Vec<_>>(), [&"define".into()]);
    graph.edit(|program| program.patch(patch)).unwrap();
    assert!(graph.replay().unwrap().ok());
}

#[test]
fn rules_repair_a_program_of_steps() {
    let steps = [
        ("load", "rows = [{'name': 'a', 'price': 2.5}, {'name': 'b', 'price': 1.0}]"),
        ("fn", "def scaled(rows, factor=1):\n    return [row['price'] * factor for row in rows]"),
        ("names", "names = [row['nmae'].uper() for row in rows]"),
        ("syntax", "if names\n    first = names[0]"),
        ("scale", "prices = scaled(rows, facter=math.floor(2.5))"),
        ("test", "assert prices == [5.0, 2.0] and first == 'A'"),
    ];
    let mut graph = graph(&pythons()[0], &steps);
    graph.replay().unwrap();
    let mut rounds = 0;
    while let Some(found) = graph.diagnose().unwrap() {
        rounds += 1;
        let patches = RulePatcher.patches(&found, graph.program());
        let patch = patches.first().unwrap_or_else(|| panic!("{found}"));
        assert_eq!(patch.provenance.diagnosis.as_deref(), Some(found.error().as_str()));
        graph.edit(|program| program.patch(patch)).unwrap();
        let report = graph.replay().unwrap();
        assert!(report.kept.contains(&"load".into()), "{report}");
        assert!(rounds < 10);
    }
    assert_eq!(rounds, 5);
    let credit = graph.credit();
    assert_eq!(credit.len(), 5);
    let fixed: Vec<_> =
        credit.iter().flat_map(|credit| &credit.fixed).map(|step| &**step).collect();
    assert_eq!(fixed, ["names", "syntax", "scale", "test"]);
    assert!(graph.verify().unwrap().same);
}

#[test]
fn what_no_rule_knows_gets_no_patch_and_what_cannot_be_shown_no_value() {
    let mut graph =
        failing(&[("make", "items = (n for n in [1])\nitems.extra = 2"), ("use", "x = 1")]);
    let found = diagnosis(&mut graph);
    assert_eq!(found.kind, FailureKind::MissingAttribute);
    assert!(RulePatcher.patches(&found, graph.program()).is_empty());

    let mut graph = failing(&[("make", "items = (n for n in [1])"), ("use", "items[0]")]);
    let found = diagnosis(&mut graph);
    assert_eq!(found.kind, FailureKind::WrongType);
    assert!(!found.to_string().is_empty());
    assert!(graph.replay().unwrap().failed.len() == 1);
}

#[test]
fn a_mistake_in_another_step_than_the_one_that_fails_is_patched_there() {
    let sum = "def total(rows):\n    return sum(rows)";
    for (first, define, step, fixed) in [
        // What a function sees is looked up in its own step.
        ("x = 1", sum.replace("sum(rows)", "sum(rosw)"), "define", "sum(rows)"),
        ("x = 1", sum.replace("sum", "math.fsum"), "define", "import math\n"),
        // The step that raises has neither the key nor the definition.
        (
            "names = ['nmae']",
            "row = {'name': 1}\ndef total(rows):\n    return [row[n] for n in names]".into(),
            "first",
            "names = ['name']",
        ),
        (
            "class Total:\n    def of(rows): return sum(rows)",
            "total = Total()".into(),
            "first",
            "def of(self, rows)",
        ),
    ] {
        let call = if first.starts_with("class") { "a = total.of([3])" } else { "a = total([3])" };
        let steps = [("first", first), ("define", &*define), ("use", call), ("y", "y = 1")];
        let mut graph = failing(&steps);
        let found = diagnosis(&mut graph);
        assert_eq!(found.failing.step, "use".into());
        let patches = RulePatcher.patches(&found, graph.program());
        let patch = patches.first().unwrap_or_else(|| panic!("{found}"));
        assert_eq!(patch.steps().collect::<Vec<_>>(), [&step.into()]);
        graph.edit(|program| program.patch(patch)).unwrap();
        assert!(graph.program().step(step).unwrap().source.contains(fixed), "{patch:?}");
        let report = graph.replay().unwrap();
        assert!(report.ok() && report.kept.contains(&"y".into()), "{define}: {report}");
    }
    // The place is a part of the diagnosis, also as it is stored.
    let mut graph = failing(&[("define", "def f():\n    return rosw"), ("use", "f()")]);
    let found = diagnosis(&mut graph);
    let raised = found.raised.as_ref().unwrap();
    assert_eq!((&*raised.step, raised.line, found.fault.line()), ("define", Some(2), 2));
    assert!(found.involved().contains(&"define".into()));
    assert!(
        found.to_string().contains("raised by: step define, line 2 (`return rosw`)"),
        "{found}"
    );
}
