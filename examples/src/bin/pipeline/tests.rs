//! Descriptions of pipelines: what is wrong with them, and how many steps they may have.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::describe::Pipeline;
use super::run;

/// The problems of a description that can be read.
fn problems_of(text: &str) -> Vec<String> {
    let parsed: Pipeline = text.parse().unwrap();
    parsed.build(PathBuf::new(), PathBuf::new()).unwrap_err().lines()
}

/// Why a description cannot be read.
fn unreadable(text: &str) -> String {
    text.parse::<Pipeline>().unwrap_err()
}

/// Asserts that these are all problems, by their beginnings, in any order.
fn assert_problems(problems: &[String], expected: &[&str]) {
    for expected in expected {
        assert!(
            problems.iter().any(|problems| problems.starts_with(expected)),
            "{expected}\n{problems:#?}"
        );
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    assert!(!problems.iter().any(|problems| problems.contains(".rs")), "{problems:#?}");
}

/// A file with this content; it exists as long as the folder value.
fn written(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, content).unwrap();
    (folder, file)
}

#[tokio::test]
async fn json_describes_pipelines_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.txt"), "b\na\nb\n").unwrap();
    let file = folder.path().join("sort.json");
    let text = r#"{"name": "sort", "start": "read", "step": [
        {"name": "read", "run": "read", "with": {"files": ["in.txt"]}, "then": "sort"},
        {"name": "sort", "run": "sort", "with": {"reverse": true}, "end": true}
    ]}"#;
    std::fs::write(&file, text).unwrap();
    let capitals = folder.path().join("SORT.JSON");
    std::fs::copy(&file, &capitals).unwrap();
    Pipeline::read(&capitals).unwrap();
    let harness = Pipeline::read(&file).unwrap();
    let harness = harness.build(folder.path().to_owned(), folder.path().to_owned()).unwrap();
    assert_eq!(run(&harness, 10).await.output.unwrap(), "b\nb\na\n");
}

#[test]
fn steps_are_counted_as_the_file_has_them() {
    let problems = problems_of(
        "name = 'x'\nstart = 'a'\nstep = [1, {name = 'a', run = 'dedupe', end = true}, \
         {name = 'a', run = 'dedupe', end = true}, {name = ' ', run = 'dedupe', end = true}]",
    );
    let expected = [
        "step number 1 must be a table, but it is the number 1",
        "step number 4 has no `name`",
        "step `a` is declared twice, as step number 2 and step number 3",
    ];
    assert_problems(&problems, &expected);
}

#[test]
fn all_problems_are_reported_at_once() {
    let problems = problems_of(
        r#"
        name = "wrong"
        start = "raed"
        finally = "off"

        [[step]]
        name = "read"
        run = "reed"
        then = "filtre"

        [[step]]
        name = "filter"
        run = "filter"
        with = { contains = 7 }
        route = "amuont"
        to = { Some = "missing" }

        [[step]]
        name = "filter"
        run = "write"
        with = { file = "../out.txt" }
        route = "amount"
        to = { Sme = "read" }

        [[step]]
        name = "both"
        run = "dedupe"
        with = { how = "fast" }
        then = "read"
        end = true

        [[step]]
        name = "idle"

        [[step]]
        name = "off"
        off = "not today"
        "#,
    );
    let expected = [
        "step `filter`: `with.contains` must be text, but it is the number 7",
        "step `both` has more than one exit",
        "step `idle` has no exit",
        "step `idle` does nothing",
        "step `filter` is declared twice, as step number 2 and step number 3 (rename one of them)",
        "step `read` runs `reed`, unknown to the registry (did you mean `read`?)",
        "step `read` leads to `filtre`, which is not a step (did you mean `filter`?)",
        "step `filter` passes invalid parameters to `filter`: invalid type: integer `7`",
        "step `filter` routes by `amuont`, unknown to the registry (did you mean `amount`?)",
        "step `filter` leads to `missing`, which is not a step",
        "step `filter` passes invalid parameters to `write`: `file` must be a path below",
        "step `filter` routes signal `Sme`, unknown to `Amount` (did you mean `Some`?)",
        "step `filter` has no target for signal `None` of `Amount`",
        "step `filter` has no target for signal `Some` of `Amount`",
        "step `both` passes invalid parameters to `dedupe`: it has no parameters",
        "the start leads to `raed`, which is not a step (did you mean `read`?)",
        "step `both` cannot be reached from `read`",
        "step `idle` cannot be reached from `read`",
        "`finally` of the loop leads to step `off`, which is off: not today",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problems, expected) in problems.iter().zip(expected) {
        assert!(problems.starts_with(expected), "{problems}\n{expected}");
        assert!(!problems.contains("declared at"), "{problems}");
    }
}

#[test]
fn a_cycle_without_a_way_out_and_an_empty_pipeline() {
    let cycle = problems_of(
        "name = 'x'\nstart = 'a'\n[[step]]\nname = 'a'\nrun = 'sort'\nthen = 'b'\n\
         [[step]]\nname = 'b'\nrun = 'dedupe'\nthen = 'a'\n",
    );
    assert_eq!(cycle.len(), 1, "{cycle:?}");
    assert!(cycle[0].starts_with("no path from step `a` ends the loop"));
    let empty = problems_of("name = 'x'");
    assert!(empty[0].contains("no start") && empty[1].contains("no steps"), "{empty:?}");
}

#[test]
fn wrong_types_and_unknown_keys_hide_nothing_else() {
    let problems = problems_of(
        "name = 'x'\nstart = 'missing'\n[[step]]\nname = 7\nrun = 'reed'\n\
         [[step]]\nname = 'b'\nthen = 3\nthne = 'q'\n",
    );
    let expected = [
        "step number 1: `name` must be text, but it is the number 7",
        "step number 1 runs `reed`, unknown to the registry (did you mean `read`?)",
        "step number 1 has no exit",
        "step `b`: `then` must be text, but it is the number 3",
        "step `b`: key `thne` is unknown (did you mean `then`?)",
        "step `b` does nothing",
        "the start leads to `missing`, which is not a step",
    ];
    assert_problems(&problems, &expected);
    let problems = problems_of(
        "nmae = 'x'\nstart = true\nbudget = -1\ncolour = 'red'\nstep = [1, {name = 'a', run = [], \
         with = nan, retry = 'x', on_error = 1.5, end = 'yes', ends = ['a', 1, 2]}]",
    );
    let expected = [
        "the pipeline: key `nmae` is unknown (did you mean `name`?)",
        "the pipeline: `start` must be text, but it is the boolean true",
        "the pipeline: `budget` must be a whole number from 0 to 18446744073709551615, but it is \
         the number -1",
        "the pipeline: key `colour` is unknown (there are `name`, `start`,",
        "step number 1 must be a table, but it is the number 1",
        "step `a`: `run` must be text, but it is a list",
        "step `a`: `with` must be a table, but it is the number NaN",
        "step `a`: `retry` must be a whole number from 0 to 4294967295, but it is the text `x`",
        "step `a`: `on_error` must be text, but it is the number 1.5",
        "step `a`: `end` must be true or false, but it is the text `yes`",
        "step `a`: `ends` must be a list of text, but its item 2 is the number 1 (and 1 more",
        "step `a` says where signals lead, but has no `route`",
    ];
    assert_problems(&problems, &expected);
    for text in ["name = 'x'\nstep = 3\nstart = 'a'", "name = 'x'\n[step]\nname = 'a'"] {
        let problems = problems_of(text);
        assert!(
            problems[0].starts_with("the pipeline: `step` must be a list of tables"),
            "{problems:?}"
        );
        assert!(!problems.iter().any(|problems| problems.contains("no steps")), "{problems:?}");
    }
}

#[test]
fn an_edge_that_cannot_be_read_breaks_no_other_rule() {
    let problems = problems_of(
        "name = 'x'\nstart = 'a'\n[[step]]\nname = 'a'\nrun = 'sort'\nroute = 'amount'\n\
         to = { Some = 3, Non = 'b' }\n[[step]]\nname = 'b'\nrun = 'sort'\nroute = 4\n\
         to = { Some = 'lost' }\n[[step]]\nname = 'c'\nrun = 'sort'\nthen = 1979-05-27\n",
    );
    let expected = [
        "step `a`: `to.Some` must be text, but it is the number 3",
        "step `a` routes signal `Non`, unknown to `Amount` (did you mean `None`?)",
        "step `b`: `route` must be text, but it is the number 4",
        "step `b` leads to `lost`, which is not a step",
        "step `c`: `then` must be text, but it is the date 1979-05-27",
    ];
    assert_problems(&problems, &expected);
}

#[test]
fn every_parameter_of_every_step_is_checked() {
    let problems = problems_of(
        "name = 'x'\nstart = 'a'\n\
         [[step]]\nname = 'a'\nrun = 'filter'\nthen = 'b'\n\
         with = { contans = 'x', invert = 'no', ignore_case = 1, colour = 'red' }\n\
         [[step]]\nname = 'b'\nrun = 'head'\nthen = 'c'\nwith = { lines = -1 }\n\
         [[step]]\nname = 'c'\nrun = 'read'\nthen = 'd'\nwith = { files = ['a', 7] }\n\
         [[step]]\nname = 'd'\nrun = 'head'\nthen = 'e'\n\
         [[step]]\nname = 'e'\nrun = 'reed'\nthen = 'f'\nwith = inf\n\
         [[step]]\nname = 'f'\nrun = 'write'\nend = true\nwith = { file = '../x' }\n",
    );
    let expected = [
        "step `a`, `with`: key `contans` is unknown (did you mean `contains`?)",
        "step `a`: `with.invert` must be true or false, but it is the text `no`",
        "step `a`: `with.ignore_case` must be true or false, but it is the number 1",
        "step `a`, `with`: key `colour` is unknown (there are `contains`, `ignore_case`, `invert`)",
        "step `b`: `with.lines` must be a whole number from 0, but it is the number -1",
        "step `c`: `with.files` must be a list of text, but its item 2 is the number 7",
        "step `d`: `with` lacks `lines`, which must be a whole number from 0",
        "step `e`: `with` must be a table, but it is the number inf",
        "step `e` runs `reed`, unknown to the registry (did you mean `read`?)",
        "step `f` passes invalid parameters to `write`: `file` must be a path below",
    ];
    assert_problems(&problems, &expected);
}

#[test]
fn keys_that_json_repeats_are_refused() {
    let (_folder, file) = written(
        "twice.json",
        r#"{"name": "x", "name": "y", "start": "a", "step": [{"name": "a", "run": "head",
            "with": {"lines": 1, "lines": 2}, "route": "amount", "ends": ["None"],
            "to": {"Some": "zzz", "Some": "b"}}]}"#,
    );
    let problems = Pipeline::read(&file).unwrap().build(PathBuf::new(), PathBuf::new());
    let expected = [
        "the pipeline: key `name` is given twice",
        "step `a`: key `with.lines` is given twice",
        "step `a`: key `to.Some` is given twice",
        "step `a` leads to `zzz`, which is not a step",
    ];
    assert_problems(&problems.unwrap_err().lines(), &expected);
}

#[test]
fn a_file_that_cannot_be_parsed_is_reported_with_line_column_and_excerpt() {
    let wrong = unreadable("name = 'x'\n[[step]]\nname = \u{202e}7\n");
    assert!(wrong.starts_with("line 3, column 8: "), "{wrong}");
    assert!(wrong.ends_with("near `name = \\u{202e}7`"), "{wrong}");
    for text in ["name", "name = 'x'\nname = 'y'", "\0", "name = 'x", "[[step]"] {
        unreadable(text);
    }
    for text in ["", "[[step]]", "name = 'x'\nstep = 3"] {
        assert!(!problems_of(text).is_empty());
    }
    let long = format!("name = 'x'\nstart = \u{1b}\"{}\" = 3", "é".repeat(1 << 20));
    assert!(unreadable(&long).chars().count() < 400, "{}", unreadable(&long).len());
    let (_folder, file) =
        written("cut.json", "{\n  \"name\": \"\u{202e}x\",\n  \"start\": nowhere}");
    let problems = Pipeline::read(&file).unwrap_err().to_string();
    assert!(problems.contains("cut.json`: line 3, column 13: expected ident"), "{problems}");
    assert!(problems.ends_with("near `  \"start\": nowhere}`"), "{problems}");
    let (_folder, file) = written("bytes.toml", b"name = '\xff'");
    let problems = Pipeline::read(&file).unwrap_err().to_string();
    assert!(problems.ends_with("it is not UTF-8 from byte 8 on"), "{problems}");
    let lost = Pipeline::read(Path::new("no such.toml")).unwrap_err().to_string();
    assert!(lost.starts_with("cannot read the pipeline `no such.toml`: "), "{lost}");
}

/// A straight pipeline of very many steps.
fn long(steps: usize) -> String {
    let mut text = format!("name = 'long'\nstart = 'step 0'\nbudget = {}\n", steps + 1);
    for step in 0..steps {
        let exit = match step + 1 == steps {
            true => "end = true".to_owned(),
            false => format!("then = 'step {}'", step + 1),
        };
        writeln!(text, "[[step]]\nname = 'step {step}'\nrun = 'dedupe'\n{exit}").unwrap();
    }
    text
}

#[tokio::test]
async fn ten_thousand_steps_run() {
    let started = Instant::now();
    let long: Pipeline = long(10_000).parse().unwrap();
    let budget = long.budget();
    let harness = long.build(PathBuf::new(), PathBuf::new()).unwrap();
    assert_eq!(run(&harness, budget).await.output.unwrap(), "");
    // Far above the usual time, for slow machines without optimisation.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn hostile_names_are_shown_bounded_and_in_one_line() {
    let huge = "x".repeat(1 << 20);
    let text = format!(
        "name = \"\\u001b[2J\"\nstart = \"{huge}\"\n[[step]]\nname = \"a\\n\\\"]\\u202e\"\n\
         run = \"{huge}\"\nthen = \"{huge}\"\nend = true\n"
    );
    let parsed: Pipeline = text.parse().unwrap();
    let found = parsed.build(PathBuf::new(), PathBuf::new()).unwrap_err();
    for line in found.lines() {
        assert!(line.len() < 500, "{}", line.len());
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line}");
    }
    assert!(found.to_string().len() < 4_000);
}
