//! Programs and edits that failed in random search, minimized.
use harness_esg::CodeGraph;

use crate::{graph, pythons};

/// After the first run and after each edit the state equals that of a full run, nothing is
/// untracked, and a second replay runs nothing.
fn holds(steps: &[(&str, &str)], edits: &[&dyn Fn(&mut CodeGraph)]) {
    for python in pythons() {
        let mut graph = graph(&python, steps);
        let check = |graph: &mut CodeGraph, when: &str| {
            let report = graph.replay().unwrap();
            assert!(report.untracked.is_empty(), "Python {}, {when}:\n{report}", python.display());
            let verdict = graph.verify().unwrap();
            assert!(verdict.same, "Python {}, {when}: {verdict}\n{report}", python.display());
            let again = graph.replay().unwrap();
            assert_eq!(again.executed().count(), 0, "Python {}, {when}: {again}", python.display());
        };
        check(&mut graph, "at first");
        for (at, edit) in edits.iter().enumerate() {
            edit(&mut graph);
            check(&mut graph, &format!("after edit {at}"));
        }
    }
}

fn replace(graph: &mut CodeGraph, step: &str, source: &str) {
    graph.edit(|program| program.replace(step, source)).unwrap();
}

#[test]
fn what_a_failing_last_step_bound_is_no_part_of_a_full_run() {
    holds(
        &[("a", "k = 1"), ("bad", "xs = [4, 5]\nmissing.get()")],
        &[&|graph| replace(graph, "a", "k = 2")],
    );
}

#[test]
fn a_step_that_reads_everything_finds_unserializable_values() {
    holds(
        &[
            ("a", "k = 1 / 0"),
            ("len", "len = lambda z: 6"),
            ("all", "if 'k' not in globals():\n    k = 0\nhandle = open('one.txt', 'w')"),
        ],
        &[&|graph| replace(graph, "a", "handle = open('one.txt', 'w')")],
    );
}

#[test]
fn a_list_of_a_module_written_by_a_step_is_bound_again() {
    holds(
        &[
            ("vs", "vs = {0, 5, 9}"),
            ("write", "open('beta.py', 'w').write('K = 4\\nITEMS = [1]\\n')"),
            ("use", "import beta\nxs = beta.ITEMS"),
        ],
        &[&|graph| replace(graph, "use", "import beta\nxs = beta.ITEMS\nvs.add(6)")],
    );
}

#[test]
fn a_file_lost_by_a_failing_step_leaves_a_handle_and_a_module_alone() {
    holds(
        &[
            ("open", "handle = open('one.txt', 'w')"),
            ("bad", "b = ("),
            ("write", "open('beta.py', 'w').write('K = 6\\ndef get():\\n    return K\\n')"),
            ("use", "import beta\nhandle.close()"),
        ],
        &[&|graph| {
            replace(
                graph,
                "bad",
                "open('one.txt', 'w').write('lost')\nraise ValueError('file')\nb = (",
            )
        }],
    );
}

#[test]
fn unserializable_values_are_made_again_for_each_discarded_run() {
    holds(
        &[
            ("first", "a = L.total"),
            ("make", "import itertools\nit = itertools.count(6)"),
            ("use", "b = next(it, -1)\nglobals()['c'] = 4"),
        ],
        &[&|graph| replace(graph, "first", "extra = 2")],
    );
}

#[test]
fn a_step_that_leaves_the_tracked_world_takes_what_it_did_with_it() {
    for python in pythons() {
        let mut graph = graph(
            &python,
            &[
                ("patch", "import decimal\ndecimal.getcontext().prec = 3"),
                ("use", "import decimal\nr = str(decimal.Decimal(1) / 7)"),
            ],
        );
        graph.replay().unwrap();
        assert_eq!(graph.value("r").unwrap().repr, "'0.143'");
        graph.edit(|program| program.remove("patch")).unwrap();
        graph.replay().unwrap();
        let verdict = graph.verify().unwrap();
        assert!(verdict.same, "{verdict}");
        assert_ne!(graph.value("r").unwrap().repr, "'0.143'");
    }
}

#[test]
fn a_counter_inside_of_an_object_is_no_reason_to_make_it_again() {
    let class = "import itertools\nclass Counted:\n    def __init__(self, options):\n        \
        self.options, self.ids = options, itertools.count(1)\n    def next(self):\n        return next(self.ids)";
    for python in pythons() {
        let steps = [
            ("class", class),
            ("options", "options = {'start': 1}"),
            ("make", "counted = Counted(options)\nfirst = counted.next()"),
            ("use", "second = counted.next()"),
            ("report", "print(options, second)"),
        ];
        let mut graph = graph(&python, &steps);
        assert!(graph.replay().unwrap().ok());
        for (step, source, ran) in [
            ("report", "print(second, options)", &["report"][..]),
            ("use", "second = counted.next() + counted.next()", &["use", "report"]),
        ] {
            graph.edit(|program| program.replace(step, source)).unwrap();
            let report = graph.replay().unwrap();
            assert_eq!(report.executed().map(|step| &**step).collect::<Vec<_>>(), ran, "{report}");
            assert!(graph.verify().unwrap().same);
        }
        assert_eq!(graph.value("second").unwrap().repr, "5");
    }
}
