//! Pipelines from files: those that run, and those that are wrong.

#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
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
    let capitals = folder.path().join("SORT.JSON");
    std::fs::copy(&file, &capitals).unwrap();
    Pipeline::read(&capitals).unwrap();
    let harness = Pipeline::read(&file).unwrap();
    let harness = harness.build(folder.path().to_owned(), folder.path().to_owned()).unwrap();
    assert_eq!(run(&harness, 10).await.output.unwrap(), "b\nb\na\n");
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

/// Runs the shipped pipeline `unique` with something on its standard input.
fn fed(arguments: &[&str], input: &[u8]) -> Output {
    use std::io::Write as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(arguments)
        .arg(shipped("unique.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn input_comes_from_another_file_or_the_standard_input() {
    let (_folder, other) = written("other.txt", "b\na\n");
    let file = format!("input/proverbs.txt={}", other.display());
    let arguments = ["--input", &file, "--input", "input/more.txt=-"];
    assert_eq!(out(&fed(&arguments, b"c\nb\n")), "a\nb\nc\n");
    let wrong = ["--input", "input/mroe.txt=-"].map(Path::new);
    let told = pipeline(&[wrong[0], wrong[1], &shipped("unique.toml")]);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("`input/mroe.txt` (did you mean `input/more.txt`?)"), "{told}");
    let twice = ["--input", &file, "--input", &file].map(Path::new);
    let told = pipeline(&[&twice[..], &[&shipped("unique.toml")]].concat());
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("the input `input/proverbs.txt` is given twice"), "{told}");
}

/// It can be read once; whoever asks again gets the same.
#[test]
fn two_files_may_be_the_standard_input() {
    let arguments = ["--input", "input/proverbs.txt=-", "--input", "input/more.txt=-"];
    assert_eq!(out(&fed(&arguments, b"c\n")), "c\n");
}

#[test]
fn steps_are_counted_as_the_file_has_them() {
    let told = problems(
        "name = 'x'\nstart = 'a'\nstep = [1, {name = 'a', run = 'dedupe', end = true}, \
         {name = 'a', run = 'dedupe', end = true}, {name = ' ', run = 'dedupe', end = true}]",
    );
    let expected = [
        "step number 1 must be a table, but it is the number 1",
        "step number 4 has no `name`",
        "step `a` is declared twice, as step number 2 and step number 3",
    ];
    assert_told(&told, &expected);
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
        "step `filter`: `with.contains` must be text, but it is the number 7",
        "step `both` has more than one exit",
        "step `idle` has no exit",
        "step `idle` does nothing",
        "step `filter` is declared twice, as step number 2 and step number 3 (rename one of them)",
        "step `read` runs `reed`, unknown to the registry (did you mean `read`?)",
        "step `read` leads to `filtre`, which is not a step (did you mean `filter`?)",
        "step `filter` passes invalid parameters to `filter`: invalid type: integer `7`",
        "step `filter` routes by `amuont`, unknown to the registry (did you mean `amount`?)",
        "step `filter` leads to `nowhere`, which is not a step",
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
    assert!(cycle[0].starts_with("no path from step `a` ends the loop"));
    let empty = problems("name = 'x'");
    assert!(empty[0].contains("has no start") && empty[1].contains("no steps"), "{empty:?}");
}

/// Asserts that exactly these problems are told, by how they begin, in any order.
fn assert_told(told: &[String], expected: &[&str]) {
    for expected in expected {
        assert!(told.iter().any(|told| told.starts_with(expected)), "{expected}\n{told:#?}");
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    assert!(!told.iter().any(|told| told.contains(".rs")), "{told:#?}");
}

#[test]
fn wrong_types_and_unknown_keys_hide_nothing_else() {
    let told = problems(
        "name = 'x'\nstart = 'nowhere'\n[[step]]\nname = 7\nrun = 'reed'\n\
         [[step]]\nname = 'b'\nthen = 3\nthne = 'q'\n",
    );
    let expected = [
        "step number 1: `name` must be text, but it is the number 7",
        "step number 1 runs `reed`, unknown to the registry (did you mean `read`?)",
        "step number 1 has no exit",
        "step `b`: `then` must be text, but it is the number 3",
        "step `b`: key `thne` is unknown (did you mean `then`?)",
        "step `b` does nothing",
        "the start leads to `nowhere`, which is not a step",
    ];
    assert_told(&told, &expected);
    let told = problems(
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
    assert_told(&told, &expected);
    for text in ["name = 'x'\nstep = 3\nstart = 'a'", "name = 'x'\n[step]\nname = 'a'"] {
        let told = problems(text);
        assert!(told[0].starts_with("the pipeline: `step` must be a list of tables"), "{told:?}");
        assert!(!told.iter().any(|told| told.contains("no steps")), "{told:?}");
    }
}

#[test]
fn an_edge_that_cannot_be_read_breaks_no_other_rule() {
    let told = problems(
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
    assert_told(&told, &expected);
}

#[test]
fn every_parameter_of_every_step_is_checked() {
    let told = problems(
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
    assert_told(&told, &expected);
}

/// A file with this content, which lives as long as the folder.
fn written(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, content).unwrap();
    (folder, file)
}

#[test]
fn keys_that_json_repeats_are_refused() {
    let (_folder, file) = written(
        "twice.json",
        r#"{"name": "x", "name": "y", "start": "a", "step": [{"name": "a", "run": "head",
            "with": {"lines": 1, "lines": 2}, "route": "amount", "ends": ["None"],
            "to": {"Some": "zzz", "Some": "b"}}]}"#,
    );
    let told = Pipeline::read(&file).unwrap().build(PathBuf::new(), PathBuf::new());
    let expected = [
        "the pipeline: key `name` is given twice",
        "step `a`: key `with.lines` is given twice",
        "step `a`: key `to.Some` is given twice",
        "step `a` leads to `zzz`, which is not a step",
    ];
    assert_told(&told.unwrap_err().lines(), &expected);
}

#[test]
fn what_is_no_description_is_told_with_its_place_and_an_excerpt() {
    let wrong = unreadable("name = 'x'\n[[step]]\nname = \u{202e}7\n");
    assert!(wrong.starts_with("line 3, column 8: "), "{wrong}");
    assert!(wrong.ends_with("near `name = \\u{202e}7`"), "{wrong}");
    for text in ["name", "name = 'x'\nname = 'y'", "\0", "name = 'x", "[[step]"] {
        unreadable(text);
    }
    for text in ["", "[[step]]", "name = 'x'\nstep = 3"] {
        assert!(!problems(text).is_empty());
    }
    let long = format!("name = 'x'\nstart = \u{1b}\"{}\" = 3", "é".repeat(1 << 20));
    assert!(unreadable(&long).chars().count() < 400, "{}", unreadable(&long).len());
    let (_folder, file) =
        written("cut.json", "{\n  \"name\": \"\u{202e}x\",\n  \"start\": nowhere}");
    let told = Pipeline::read(&file).unwrap_err().to_string();
    assert!(told.contains("cut.json`: line 3, column 13: expected ident"), "{told}");
    assert!(told.ends_with("near `  \"start\": nowhere}`"), "{told}");
    let (_folder, file) = written("bytes.toml", b"name = '\xff'");
    let told = Pipeline::read(&file).unwrap_err().to_string();
    assert!(told.ends_with("it is not UTF-8 from byte 8 on"), "{told}");
    let lost = Pipeline::read(Path::new("no such.toml")).unwrap_err().to_string();
    assert!(lost.starts_with("cannot read the pipeline `no such.toml`: "), "{lost}");
}

#[cfg(unix)]
#[test]
fn files_without_an_end_are_not_read_to_it() {
    let told = Pipeline::read(Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(told.contains("it has more than 16777216 bytes"), "{told}");
    let (_folder, file) = written(
        "zeros.toml",
        "name = 'x'\nstart = 'a'\n[[step]]\nname = 'a'\nrun = 'read'\nend = true\n\
         with = { files = ['/dev/zero'] }\n",
    );
    let told = pipeline(&[&file]);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("`/dev/zero` is too large: all input may be 67108864 bytes"), "{told}");
}

#[test]
fn a_pipeline_is_run_and_drawn_with_its_path() {
    let traced = pipeline(&[Path::new("--trace"), &shipped("unique.toml")]);
    let drawn = out(&traced);
    for line in ["s1{\"check ×2\"}:::visited", "s2[\"dedupe ×1\"]:::visited", "s4[\"publish\"]"] {
        assert!(drawn.contains(line), "{drawn}");
    }
    let told = String::from_utf8_lossy(&traced.stderr);
    assert!(told.starts_with("# Proverbs, one a line.\nA stitch in time"), "{told}");
    let dot = out(&pipeline(&[Path::new("--trace"), Path::new("--dot"), &shipped("unique.toml")]));
    assert!(dot.contains("digraph") && dot.contains("check ×2"), "{dot}");
    let dot = out(&pipeline(&[Path::new("--dot"), &shipped("unique.toml")]));
    assert!(dot.contains("digraph") && !dot.contains('×'), "{dot}");
}

#[test]
fn a_spent_budget_names_the_limit_and_what_to_do_and_is_still_drawn() {
    let (_folder, file) = written(
        "endless.toml",
        "name = 'x'\nstart = 'a'\nbudget = 7\n[[step]]\nname = 'a'\nrun = 'sort'\n\
         route = 'amount'\nto = { None = 'a' }\nends = ['Some']\n",
    );
    let ran = pipeline(&[Path::new("--trace"), &file]);
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success());
    assert!(told.contains("its steps of 7 (raise `budget`"), "{told}");
    let drawn = String::from_utf8_lossy(&ran.stdout);
    assert!(drawn.contains("a ×7"), "{drawn}");
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
