//! Pipelines from files: those that run, and those that are wrong.

#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use examples::pipeline::{Pipeline, Problems, run};

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines").join(file)
}

fn pipeline(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pipeline")).args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What is wrong with a description that can be read.
fn problems(text: &str) -> Vec<String> {
    let parsed: Pipeline = text.parse().unwrap();
    parsed.build(PathBuf::new(), PathBuf::new()).unwrap_err().lines()
}

/// Why a description cannot be read.
fn unreadable(text: &str) -> String {
    text.parse::<Pipeline>().unwrap_err()
}

#[test]
fn words_are_counted_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let ran = pipeline(&[Path::new("--out"), folder.path(), &shipped("words.toml")]);
    let file = folder.path().join("words.txt");
    assert_eq!(out(&ran), format!("wrote {}\n", file.display()));
    let words = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[..2], ["     4 time", "     4 the"]);
    assert!(!words.contains("proverbs"), "{words}");
}

#[test]
fn a_cycle_runs_until_nothing_repeats() {
    let lines = out(&pipeline(&[&shipped("unique.toml")]));
    assert_eq!(
        lines,
        "# Proverbs, one a line.\nA stitch in time saves nine\nBetter late than never\n\
         The early bird catches the worm\nThe pen is mightier than the sword\n\
         Time and tide wait for no man\nTime heals all wounds\n"
    );
}

#[test]
fn a_pipeline_is_drawn_instead_of_run() {
    let drawn = out(&pipeline(&[Path::new("--draw"), &shipped("unique.toml")]));
    for line in [
        "start([\"unique\"]) --> s0",
        "s1{\"check\"}",
        "s1 -- \"Repeated\" --> s2",
        "s4[\"publish\"]",
        "style s4 fill",
    ] {
        assert!(drawn.contains(line), "{drawn}");
    }
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
    let harness = Pipeline::read(&file).unwrap();
    let harness = harness.build(folder.path().to_owned(), folder.path().to_owned()).unwrap();
    assert_eq!(run(&harness).await.unwrap(), "b\nb\na\n");
}

#[test]
fn a_missing_input_fails_the_run_and_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lost.toml");
    let text = "name = 'x'\nstart = 'a'\n[[step]]\nname = 'a'\nrun = 'read'\n\
                with = { files = ['gone.txt'] }\nend = true\n";
    std::fs::write(&file, text).unwrap();
    let ran = pipeline(&[&file]);
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && told.contains("gone.txt"), "{told}");
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let told = problems(
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
        to = { Some = "nowhere" }

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
        "step `both` has more than one exit",
        "step `idle` has no exit",
        "step `idle` does nothing",
        "step `filter` is declared twice",
        "step `read` runs `reed`, unknown to the registry (did you mean `read`?)",
        "step `read` leads to `filtre`, which is no step (did you mean `filter`?)",
        "step `filter` gives `filter` parameters that it does not take: invalid type: integer `7`",
        "step `filter` routes by `amuont`, unknown to the registry (did you mean `amount`?)",
        "step `filter` leads to `nowhere`, which is no step",
        "step `filter` gives `write` parameters that it does not take: `file` must be a path below",
        "step `filter` routes signal `Sme`, unknown to `Amount` (did you mean `Some`?)",
        "step `filter` does not say where signal `None` of `Amount` leads",
        "step `filter` does not say where signal `Some` of `Amount` leads",
        "step `both` gives `dedupe` parameters that it does not take: it takes none",
        "the start leads to `raed`, which is no step (did you mean `read`?)",
        "step `both` cannot be reached from `read`",
        "step `idle` cannot be reached from `read`",
        "`finally` of the loop leads to step `off`, which is off: not today",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
        assert!(!told.contains("declared at"), "{told}");
    }
}

#[test]
fn a_cycle_without_a_way_out_and_an_empty_pipeline() {
    let cycle = problems(
        "name = 'x'\nstart = 'a'\n[[step]]\nname = 'a'\nrun = 'sort'\nthen = 'b'\n\
         [[step]]\nname = 'b'\nrun = 'dedupe'\nthen = 'a'\n",
    );
    assert_eq!(cycle.len(), 1, "{cycle:?}");
    assert!(cycle[0].starts_with("no way from step `a` ends the loop"));
    let empty = problems("name = 'x'");
    assert!(empty[0].contains("where it starts") && empty[1].contains("no steps"), "{empty:?}");
}

#[test]
fn what_is_no_description_is_told_with_its_line() {
    let wrong = unreadable("name = 'x'\n[[step]]\nname = 7\n");
    assert!(wrong.contains("line 3") && wrong.contains("expected a string"), "{wrong}");
    let unknown = unreadable("name = 'x'\n[[step]]\nname = 'a'\nthne = 'b'\n");
    assert!(unknown.contains("unknown field `thne`") && unknown.contains("`then`"), "{unknown}");
    for text in ["", "name", "name = 'x'\nname = 'y'", "[[step]]", "\0", "name = 'x'\nstep = 3"] {
        unreadable(text);
    }
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
    let harness = long.build(PathBuf::new(), PathBuf::new()).unwrap();
    assert_eq!(run(&harness).await.unwrap(), "");
    // Far above what it takes, for slow machines without optimisation.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn hostile_names_are_told_bounded_and_in_one_line() {
    let huge = "x".repeat(1 << 20);
    let text = format!(
        "name = \"\\u001b[2J\"\nstart = \"{huge}\"\n[[step]]\nname = \"a\\n\\\"]\\u202e\"\n\
         run = \"{huge}\"\nthen = \"{huge}\"\nend = true\n"
    );
    let parsed: Pipeline = text.parse().unwrap();
    let found: Problems = parsed.build(PathBuf::new(), PathBuf::new()).unwrap_err();
    for line in found.lines() {
        assert!(line.len() < 500, "{}", line.len());
        assert!(
            !line.contains(|letter: char| letter.is_control() || letter == '\u{202e}'),
            "{line}"
        );
    }
    assert!(found.to_string().len() < 4_000);
}
