//! Resuming after Ctrl-C and after `kill -9`, in another process.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, Mode, mkfifoat};

use super::stopping::interrupt;
use super::{Done, Folder, TWO_WAYS, program};

/// How often a script with one fault runs: it fails, fails again for the diagnosis, and succeeds.
const RUNS: usize = 3;

/// A script with a fault that records each of its runs and waits in the first one with the repair.
fn waiting(folder: &Folder) -> String {
    let (runs, running) = (folder.path("runs"), folder.path("running"));
    mkfifoat(CWD, &running, Mode::RUSR | Mode::WUSR).unwrap();
    format!(
        "open({runs:?}, 'a').write('run\\n')\n\
         items = 1\n\
         print(itmes)\n\
         if len(open({runs:?}).readlines()) == {RUNS}:\n    \
             open({running:?}, 'w').close()\n    \
             while True:\n        \
                 pass\n"
    )
}

fn runs(path: &Path) -> usize {
    fs::read_to_string(path).unwrap().lines().count()
}

/// A folder with a script that is repaired at once and one that waits, the program while it runs the
/// second, and its store.
fn while_it_runs() -> (Folder, Child, String) {
    let folder = Folder::with("first.py", TWO_WAYS, "1\n");
    let counted = folder.path("first-runs");
    let counting = format!("open({counted:?}, 'a').write('run\\n')\n{TWO_WAYS}");
    fs::write(folder.path("first.py"), counting).unwrap();
    fs::write(folder.path("a.py"), waiting(&folder)).unwrap();
    fs::write(folder.path("a.expected"), "1\n").unwrap();
    let store = folder.name("it's kept");
    let child = program()
        // The scripts write outside of their directory.
        .args(["--yes", "--write", "--trust", "mine", "--store", &store])
        .args([folder.name("first.py"), folder.name("a.py")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Until the script is in its last run.
    File::open(folder.path("running")).unwrap();
    assert_eq!((runs(&counted), runs(&folder.path("runs"))), (RUNS, RUNS));
    (folder, child, store)
}

/// Runs a command line, as a person who copied it would.
fn shell(line: &str) -> Done {
    let mut command = Command::new("sh");
    let output = command.args(["-c", line]).env("USER", "ada").stdin(Stdio::null()).output();
    Done::of(output.unwrap())
}

fn resumes(folder: &Folder, command: &str) {
    let done = shell(command);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.out.contains("2 of 2 run"), "{}", done.out);
    assert!(done.out.contains("2 files of yours were replaced"), "{}", done.out);
    assert_eq!(runs(&folder.path("first-runs")), RUNS, "a repaired script does not run again");
    // Those, and the one that repeats the interrupted one.
    assert_eq!(runs(&folder.path("runs")), RUNS + 1, "a committed step does not run again");
    assert!(folder.text("a.py").contains("print(items)"));
    let again = shell(command);
    assert_eq!(again.code, Some(2), "a finished batch is removed: {}", again.out);
    assert!(again.err.contains("no session"), "{}", again.err);
}

#[test]
fn a_killed_repair_resumes_at_the_interrupted_step() {
    let (folder, mut child, _) = while_it_runs();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let command =
        out.lines().find_map(|line| line.strip_prefix("If this is interrupted, resume with: "));
    resumes(&folder, command.unwrap());
}

/// Between any two lines that it prints: proposed, applied, run again, written.
#[test]
fn a_repair_killed_at_any_moment_ends_as_one_that_was_not() {
    let source = "items = [1]\n\nprint(len(itmes))\n\nprint(items.appnd(2), items)\n";
    let fixed = source.replace("itmes", "items").replace("appnd", "append");
    let (mut kills, mut ended) = (0, false);
    for lines in (1..).step_by(6) {
        let folder = Folder::with("a.py", source, "1\nNone [1, 2]\n");
        let (name, store) = (folder.name("a.py"), folder.name("store"));
        let mut child = program()
            .args(["--yes", "--write", "--store", &store, &name])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut shown = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let seen: Vec<String> = shown.by_ref().take(lines).collect();
        if seen.len() < lines {
            ended = true;
            assert!(child.wait().unwrap().success(), "{seen:#?}");
            assert_eq!(folder.text("a.py"), fixed);
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        let resume = "If this is interrupted, resume with: ";
        let command = seen.iter().find_map(|line| line.strip_prefix(resume));
        let Some(command) = command else {
            assert_eq!(folder.text("a.py"), source, "{seen:#?}");
            continue;
        };
        let done = shell(command);
        // It may have ended just before, and then there is nothing to resume.
        let over = done.code == Some(2) && done.err.contains("no session");
        assert!(done.code == Some(0) || over, "{lines}: {}{}", done.out, done.err);
        assert_eq!(folder.text("a.py"), fixed, "{lines}");
        assert!(over || done.out.contains("2 repairs applied"), "{lines}: {}", done.out);
    }
    assert!(ended && kills >= 5, "{kills}");
}

#[test]
fn ctrl_c_prints_the_command_that_resumes() {
    let (folder, mut child, store) = while_it_runs();
    // The second Ctrl-C does not wait for the script.
    interrupt(&child);
    let mut err = child.stderr.take().unwrap();
    let mut byte = [0];
    err.read_exact(&mut byte).unwrap();
    interrupt(&child);
    let mut printed = String::new();
    err.read_to_string(&mut printed).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{printed}");
    let command =
        printed.lines().find_map(|line| line.strip_prefix("repair: resume with: ")).unwrap();
    assert!(command.contains("--resume") && command.contains("--yes --write"), "{command}");
    assert!(command.contains(&store.replace('\'', r"'\''")), "{command}");
    resumes(&folder, command);
}

#[test]
fn an_unanswered_question_waits_for_another_process() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    let store = folder.name("store");
    let asked =
        Done::of(program().args(["--store", &store, &folder.name("a.py")]).output().unwrap());
    assert_eq!(asked.code, Some(3), "{}{}", asked.out, asked.err);
    let command = asked.err.lines().find_map(|line| line.strip_prefix("repair: resume with: "));
    let done = shell(&format!("{} --yes --json", command.unwrap()));
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert_eq!(done.json()[0]["outcome"], "fixed");
}

#[test]
fn an_unknown_session_cannot_be_resumed() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    let store = folder.name("store");
    let resume =
        |id: &str| Done::of(program().args(["--store", &store, "--resume", id]).output().unwrap());
    for id in ["nope", "", "../x"] {
        let done = resume(id);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{id:?}: {}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    }
    let both = program().args(["--resume", "x", &folder.name("a.py")]).output().unwrap();
    assert_eq!(Done::of(both).code, Some(2));
}
