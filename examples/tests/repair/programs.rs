//! Notebooks, tests as targets, and what a program may do.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;

use harness::esg::sandbox::{Launcher as _, Layer, Sandbox, Spec};

use super::{Folder, repair};

#[test]
fn a_notebook_is_repaired_and_only_its_cell_is_written() {
    let json = r##"{
 "cells": [
  {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# Sums"]},
  {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "source": ["rows = [3, 1]\n", "x = 1"]},
  {"cell_type": "code", "id": "b", "metadata": {}, "outputs": [], "source": ["print(sum(rosw))"]}
 ],
 "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5
}
"##;
    let folder = Folder::with("a.ipynb", json, "4\n");
    let done = repair(["--yes", "--write", "--json", &folder.name("a.ipynb")]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let report = &done.json()[0];
    assert_eq!((&report["outcome"], &report["written"]), (&"fixed".into(), &true.into()));
    assert!(report["diff"].as_str().unwrap().contains("\n-print(sum(rosw))\n"), "{report:#}");
    assert_eq!((&report["ran"], &report["kept"]), (&3.into(), &1.into()), "{report:#}");
    assert_eq!(folder.text("a.ipynb"), json.replace("rosw", "rows"));
}

#[test]
fn a_file_is_fixed_only_if_its_tests_pass() {
    let source = "def total(rows):\n    return sum(rosw)\n\ndef half(n):\n    return n // 2\n";
    let folder = Folder::with("shop.py", source, "");
    let tests =
        "from shop import half, total\n\ndef test_total():\n    assert total([1, 2]) == 3\n";
    fs::write(folder.path("test_shop.py"), tests).unwrap();
    let (name, test) = (folder.name("shop.py"), folder.name("test_shop.py"));
    let done = repair(["--yes", "--write", "--test", &test, &name]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.out.contains("test `test_total`: NameError on line 2"), "{}", done.out);
    assert_eq!(folder.text("shop.py"), source.replace("rosw", "rows"));
    assert_eq!(folder.text("test_shop.py"), tests, "tests are never changed");

    // What no rule knows stays, whatever else is repaired.
    fs::write(folder.path("shop.py"), source).unwrap();
    fs::write(
        folder.path("test_shop.py"),
        format!("{tests}\ndef test_half():\n    assert half(3) == 1.5\n"),
    )
    .unwrap();
    let done = repair(["--yes", "--write", "--test", &test, &name]);
    assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
    assert!(
        done.out.contains("acceptable patch for: test `test_half`: AssertionError"),
        "{}",
        done.out
    );
    assert_eq!(folder.text("shop.py"), source);

    fs::write(folder.path("test_shop.py"), "import shop\n").unwrap();
    let done = repair(["--yes", "--test", &test, &name]);
    assert_eq!(done.code, Some(2), "{}{}", done.out, done.err);
    assert!(done.err.contains("write `from shop import ..`"), "{}", done.err);
}

#[test]
fn what_a_test_forgets_to_import_is_no_mistake_of_the_program() {
    let source = "import json\n\ndef area(side):\n    return side ** 2\n";
    let folder = Folder::with("shapes.py", source, "");
    let tests = "from shapes import area\n\ndef test_area():\n    assert math.sqrt(area(2)) == 2\n";
    fs::write(folder.path("test_shapes.py"), tests).unwrap();
    let (name, test) = (folder.name("shapes.py"), folder.name("test_shapes.py"));
    let done = repair(["--yes", "--write", "--test", &test, &name]);
    assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
    assert!(done.out.contains("name 'math' is not defined"), "{}", done.out);
    assert_eq!(folder.text("shapes.py"), source);
}

#[test]
fn a_program_is_in_a_sandbox_unless_it_is_mine() {
    let folder = Folder::with("a.py", "", "1\n");
    let outside = folder.path("outside");
    fs::write(folder.path("a.py"), format!("open({outside:?}, 'w').write('x')\nprint(1)\n"))
        .unwrap();
    let done = repair(["--yes", &folder.name("a.py")]);
    assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
    assert!(done.out.contains("not fixed") && !outside.exists(), "{}", done.out);
    let done = repair(["--yes", "--trust", "mine", &folder.name("a.py")]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(outside.exists());
}

/// A filter makes the system calls of the sandbox those of an older kernel.
#[test]
fn without_a_sandbox_it_asks_for_trust() {
    let folder = Folder::with("a.py", "print(1\n", "1\n");
    let done = |args: &[&str]| {
        let others = Layer::ALL.iter().filter(|layer| **layer != Layer::System);
        let program = env!("CARGO_BIN_EXE_repair");
        let older = others.fold(Sandbox::at(program), |sandbox, layer| sandbox.without(*layer));
        let mut spec = Spec::new(program);
        spec.args = args.iter().map(Into::into).collect();
        let plain = super::program();
        let mut command = older.without_namespaces().command(&spec).unwrap();
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        super::Done::of(command.stdin(Stdio::null()).output().unwrap())
    };
    let refused = done(&["--yes", &folder.name("a.py")]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    assert!(refused.err.contains("with --trust mine"), "{}", refused.err);
    let trusted = done(&["--yes", "--trust", "mine", &folder.name("a.py")]);
    assert_eq!(trusted.code, Some(0), "{}{}", trusted.out, trusted.err);
}

#[test]
fn a_model_without_a_key_is_refused_before_anything_runs() {
    let folder = Folder::with("a.py", "print(1 / 0)\n", "1\n");
    let done = repair(["--yes", "--model", "unknown/nothing", &folder.name("a.py")]);
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{}", done.err);
    assert!(done.err.contains("unknown"), "{}", done.err);
}

/// A server of Chat Completions that always replies the same, once for each connection.
fn server(reply: &str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let body = serde_json::json!({
        "id": "c-1", "object": "chat.completion", "created": 1, "model": "m-1",
        "choices": [{
            "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply},
        }],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    });
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        let asked = loop {
            let count = stream.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&request).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
            });
            if count == 0 || length.is_some_and(|length: usize| body.len() >= length) {
                break body.to_owned();
            }
        };
        let body = body.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        asked
    });
    (url, answers)
}

#[test]
fn a_model_is_asked_at_its_server_where_no_rule_knows_a_patch() {
    let source = "rows = [3, 1]\nprint(sum(rosw) / 0)\n";
    let folder = Folder::with("a.py", source, "2.0\n");
    let (url, answers) = server(
        "The sum is divided by zero.\n\nSTEP part1\n<<<<<<< SEARCH\nprint(sum(rows) / 0)\n=======\n\
         print(sum(rows) / len(rows))\n>>>>>>> REPLACE\n",
    );
    let mut command = super::program();
    command.env("OPENAI_COMPATIBLE_BASE_URL", url).args(["--yes", "--write", "--json"]);
    command.args(["--model", "openai-compatible/m-1", &folder.name("a.py")]);
    let done = super::Done::of(command.output().unwrap());
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let tried = &done.json()[0]["tried"];
    assert!(tried[0]["by"] == "rules" && tried[1]["by"] != "rules", "{tried:#}");
    assert_eq!(tried[1]["explanation"], "The sum is divided by zero.");
    let asked = answers.join().unwrap();
    assert!(asked.contains("ZeroDivisionError") && asked.contains("m-1"), "{asked}");
    assert_eq!(folder.text("a.py"), "rows = [3, 1]\nprint(sum(rows) / len(rows))\n");
}

#[test]
fn it_needs_no_launcher_beside_it() {
    let folder = Folder::with("a.py", "print(1)\n", "1\n");
    // Somewhere without the programs that are built beside it.
    let alone = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let copy = alone.path().join("repair");
    fs::hard_link(env!("CARGO_BIN_EXE_repair"), &copy).unwrap();
    let mut command = std::process::Command::new(copy);
    command.arg(folder.name("a.py")).arg("--store").arg(alone.path().join("store"));
    let done = super::Done::of(command.stdin(std::process::Stdio::null()).output().unwrap());
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
}

#[test]
fn programs_run_in_the_python_that_is_named_or_active() {
    let folder = Folder::with("a.py", "import sys\n\nprint(sys.executable != '')\n", "True\n");
    let name = folder.name("a.py");
    let missing = folder.name("no-python");
    let done = repair(["--python", &missing, &name]);
    assert_eq!(done.code, Some(2), "{}{}", done.out, done.err);
    assert!(done.err.contains("no-python"), "{}", done.err);

    // An environment without packages is enough to see which one runs.
    let venv = folder.path("venv");
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&venv)
        .status();
    assert!(made.unwrap().success());
    let site = fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path();
    fs::write(site.join("site-packages/only_here.py"), "x = 7\n").unwrap();
    fs::write(folder.path("a.py"), "import only_here\n\nprint(only_here.x)\n").unwrap();
    fs::write(folder.path("a.expected"), "7\n").unwrap();
    let done = repair(["--yes", &name]);
    assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
    let mut active = super::program();
    let done = super::Done::of(active.env("VIRTUAL_ENV", &venv).arg(&name).output().unwrap());
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
}

#[test]
fn programs_run_in_the_directory_of_their_data() {
    let source = "from pathlib import Path\n\ntext = open(\"row.txt\").read()\n\n\
                  print(text, Path(__file__).name)\n";
    let folder = Folder::with("a.py", source, "seven a.py\n");
    fs::write(folder.path("rows.txt"), "seven").unwrap();
    let (name, data) = (folder.name("a.py"), folder.0.path().display().to_string());
    let done = repair(["--yes", &name]);
    assert_eq!(done.code, Some(1), "without it there is no such file: {}{}", done.out, done.err);
    assert!(done.out.contains("an empty directory (see --data)"), "{}", done.out);
    let done = repair(["--yes", "--write", "--data", &data, &name]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.out.contains("line 3, misspelt file"), "{}", done.out);
    assert_eq!(folder.text("a.py"), source.replace("row.txt", "rows.txt"));

    // To read is not to write, and no patch changes how the directory is entered.
    fs::write(folder.path("a.py"), "open(\"out.txt\", \"w\").close()\n").unwrap();
    fs::write(folder.path("a.expected"), "").unwrap();
    let done = repair(["--yes", "--data", &data, &name]);
    assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
    assert!(!folder.path("out.txt").exists());

    let missing = folder.name("nowhere");
    let done = repair(["--yes", "--data", &missing, &name]);
    assert_eq!(done.code, Some(2), "{}{}", done.out, done.err);
    assert!(done.err.contains("nowhere"), "{}", done.err);
}

#[test]
fn an_empty_program_runs_as_it_is() {
    let folder = Folder::with("a.py", "", "");
    let done = repair(["--yes", &folder.name("a.py")]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.out.contains("runs as it is"), "{}", done.out);
}
