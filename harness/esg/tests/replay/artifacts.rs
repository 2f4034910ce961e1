//! Artifacts: code, tests and documents as views over steps, with what each needs. A patch runs exactly the
//! tests whose inputs changed.
use std::collections::BTreeSet;

use harness_esg::{CodeGraph, Part, Patch};

use crate::{graph, pythons};

const STEPS: [(&str, &str); 8] = [
    ("total", "def total(rows):\n    return sum(row['cents'] for row in rows)"),
    ("tax", "RATE = 20\n\ndef tax(cents):\n    return cents * RATE // 100"),
    ("bill", "def bill(rows):\n    cents = total(rows)\n    return cents + tax(cents)"),
    ("test_total", "assert total([{'cents': 3}, {'cents': 1}]) == 4"),
    ("test_tax", "assert tax(200) == 40"),
    ("test_bill", "assert bill([{'cents': 100}]) == 120"),
    ("example", "shown = bill([{'cents': 250}])"),
    (
        "readme",
        "with open('README.md', 'w') as file:\n    file.write(f'A bill of 250 costs {shown}.')",
    ),
];

fn artifacts(graph: &mut CodeGraph) {
    let set = |name: &str, parts: &[&str], graph: &mut CodeGraph| {
        let parts = parts.iter().map(|step| Part::step(step)).collect::<Vec<_>>();
        graph.edit(|program| program.artifact(name, parts)).unwrap();
    };
    set("code", &["total", "tax", "bill"], graph);
    set("tests", &["test_total", "test_tax", "test_bill"], graph);
    set("document", &["example", "readme"], graph);
}

/// The steps of an artifact that ran in the last replay.
fn ran(graph: &CodeGraph, artifact: &str, executed: &BTreeSet<String>) -> Vec<String> {
    let steps = graph.program().edges().artifact(artifact).unwrap();
    steps.iter().map(|id| id.to_string()).filter(|id| executed.contains(id)).collect()
}

#[test]
fn a_patch_runs_the_tests_and_the_documents_whose_inputs_changed() {
    let cases: [(&str, &str, &str, &[&str], &[&str]); 6] = [
        // `total` is called by the bill, and by the test of the bill.
        ("total", "row['cents']", "int(row['cents'])", &["test_total", "test_bill"], &["example"]),
        ("bill", "cents + tax(cents)", "tax(cents) + cents", &["test_bill"], &["example"]),
        (
            "tax",
            "cents * RATE // 100",
            "RATE * cents // 100",
            &["test_tax", "test_bill"],
            &["example"],
        ),
        // The document says another sum then.
        ("example", "250", "350", &[], &["example", "readme"]),
        ("test_tax", "tax(200) == 40", "tax(100) == 20", &["test_tax"], &[]),
        ("total", "def total(rows):", "def total(rows):  # in cents", &[], &[]),
    ];
    for python in pythons() {
        let mut graph = graph(&python, &STEPS);
        artifacts(&mut graph);
        assert!(graph.replay().unwrap().ok());
        for (step, from, to, tests, documents) in &cases {
            let patch = Patch::search_replace(step, from, to);
            graph.edit(|program| program.patch(&patch)).unwrap();
            let report = graph.replay().unwrap();
            assert!(report.ok(), "{report}");
            let executed = report.executed().map(|step| step.to_string()).collect();
            assert_eq!(ran(&graph, "tests", &executed), *tests, "{step}: {to}");
            assert_eq!(ran(&graph, "document", &executed), *documents, "{step}: {to}");
        }
        assert!(graph.verify().unwrap().same);
    }
}

#[test]
fn an_artifact_needs_those_that_its_steps_depend_on() {
    let mut graph = graph(&pythons()[0], &STEPS);
    artifacts(&mut graph);
    graph.replay().unwrap();
    let edges = graph.program().edges();
    let needs = |name| edges.artifact_needs(name).unwrap();
    assert_eq!(needs("tests"), ["code".into()]);
    assert_eq!(needs("document"), ["code".into()]);
    assert!(needs("code").is_empty());
}
