//! Steps that are kept although something has changed that shares objects with what they bound.
use harness_esg::CodeGraph;

use crate::{graph, pythons, worker};

const STEPS: &[(&str, &str)] = &[
    (
        "make",
        "class Order:\n    def __init__(self, number):\n        self.number, self.tags = number, []\n\
         orders = [Order(number) for number in range(4)]",
    ),
    ("first", "first = orders[0]"),
    ("last", "print('last')\nlast = orders[-1]"),
    (
        "many",
        "many = [one for one in orders if one.number > 1]\nby_number = {one.number: one for one in orders}",
    ),
    ("count", "print(len(many))"),
    ("tag", "last.tags.append('late')"),
    (
        "report",
        "print(first.number, last.number, by_number[3].tags, many[-1] is last, first in many)",
    ),
];

/// What a replay ran. Nothing may differ from a full run.
fn ran(graph: &mut CodeGraph) -> Vec<String> {
    let report = graph.replay().unwrap();
    assert!(report.ok() && report.untracked.is_empty(), "{report}");
    let ran = report.executed().map(ToString::to_string).collect();
    let verdict = graph.verify().unwrap();
    assert!(verdict.same, "{verdict}\n{report}");
    ran
}

fn edit(graph: &mut CodeGraph, step: &str, source: &str) -> Vec<String> {
    graph.edit(|program| program.replace(step, source)).unwrap();
    ran(graph)
}

fn printed(graph: &CodeGraph, step: &str) -> String {
    let output = &graph.execution(step).unwrap().stdout.bytes;
    String::from_utf8_lossy(output).into_owned()
}

#[test]
fn a_step_that_takes_an_object_out_is_kept_when_another_takes_another() {
    for python in pythons() {
        let mut graph = graph(&python, STEPS);
        assert_eq!(ran(&mut graph).len(), STEPS.len());
        assert_eq!(edit(&mut graph, "first", "first = orders[2]"), ["first", "tag", "report"]);
        assert_eq!(printed(&graph, "report"), "2 3 ['late'] True True\n");
        assert_eq!(printed(&graph, "last"), "last\n");
        // What the step read has changed.
        let after = edit(&mut graph, "many", "many = orders[:1]\nby_number = {3: orders[3]}");
        assert_eq!(after, ["many", "count", "tag", "report"]);
        let made = STEPS[0].1.replace("range(4)", "range(5)");
        assert!(edit(&mut graph, "make", &made).contains(&"last".to_owned()));
    }
}

#[test]
fn a_new_name_for_an_object_leaves_the_others() {
    let mut graph = graph(&pythons()[0], STEPS);
    assert_eq!(ran(&mut graph).len(), STEPS.len());
    graph.edit(|program| program.insert_before("last", "middle", "middle = orders[1]")).unwrap();
    // `tag` changes an object that they share.
    assert_eq!(ran(&mut graph), ["middle", "tag"]);
    graph.edit(|program| program.remove("first")).unwrap();
    graph.edit(|program| program.replace("report", "print(last.number)")).unwrap();
    assert_eq!(ran(&mut graph), ["tag", "report"]);
}

#[test]
fn what_was_kept_so_is_known_to_a_later_process() {
    let dir = tempfile::tempdir().unwrap();
    let open = || CodeGraph::open(dir.path(), worker(&pythons()[0])).unwrap();
    let mut graph = open();
    graph
        .edit(|program| {
            STEPS.iter().try_for_each(|(id, source)| program.push(id, source).map(drop))
        })
        .unwrap();
    assert_eq!(ran(&mut graph).len(), STEPS.len());
    drop(graph);
    // The worker of this process loads all of it.
    let mut graph = open();
    assert_eq!(edit(&mut graph, "first", "first = orders[1]"), ["first", "tag", "report"]);
    drop(graph);
    let mut graph = open();
    assert!(ran(&mut graph).is_empty());
    assert_eq!(edit(&mut graph, "count", "print(len(many) + 1)"), ["count"]);
}

#[test]
fn a_step_that_takes_less_time_than_its_values_take_to_read_runs() {
    let steps = [
        ("make", "rows = [[row] * 50 for row in range(5000)]"),
        ("first", "first = rows[0]"),
        ("last", "last = rows[-1]"),
    ];
    let mut graph = graph(&pythons()[0], &steps);
    assert_eq!(ran(&mut graph).len(), steps.len());
    assert_eq!(edit(&mut graph, "first", "first = rows[1]"), ["first", "last"]);
}
