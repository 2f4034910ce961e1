use super::super::fault::{Facts, Frame, Syntax};
use super::*;

const SCRIPT: &str = "import os\n\nitems = [1, 2]\nprint(len(itmes), 'items')\nprint('end')\n";

fn fault() -> Fault {
    let frame = Frame { line: 4, ..Frame::default() };
    Fault { kind: "NameError".into(), frames: vec![frame], ..Fault::default() }
}

fn verdict(old: &str, new: &str) -> Result<(), Refusal> {
    judge(SCRIPT, &SCRIPT.replace(old, new), &fault())
}

#[test]
fn a_repair_of_the_failing_statement_is_accepted() {
    assert_eq!(verdict("itmes", "items"), Ok(()));
    assert_eq!(verdict("import os\n", "import os\nimport sys\n"), Ok(()));
    assert_eq!(verdict("items = ", "itmes = "), Ok(()));
}

#[test]
fn what_only_looks_different_is_refused() {
    assert_eq!(verdict("x", "y"), Err(Refusal::Unchanged));
    assert_eq!(verdict("\n\n", "\n# items\n\n\n"), Err(Refusal::Unchanged));
    assert_eq!(verdict("\n", "\r\n"), Err(Refusal::Unchanged));
}

#[test]
fn taking_the_failure_away_is_refused() {
    let line = "print(len(itmes), 'items')\n";
    let removed = Err(Refusal::Removed { line: 4 });
    assert_eq!(verdict(line, ""), Err(Refusal::Shrunk { before: 4, after: 3 }));
    assert_eq!(
        verdict(line, "# print(len(itmes), 'items')\n"),
        Err(Refusal::CommentedOut { line: 4 })
    );
    assert_eq!(verdict("print(len", "0 # print(len"), Err(Refusal::CommentedOut { line: 4 }));
    assert_eq!(verdict(line, "'''print(len(itmes), 'items')'''\n"), removed);
    assert_eq!(verdict(line, "print('2 items')\n"), removed);
    assert_eq!(verdict(line, "...\n"), removed);
    assert_eq!(verdict("print('end')\n", ""), Err(Refusal::Shrunk { before: 4, after: 3 }));
}

#[test]
fn hiding_the_failure_is_refused() {
    let line = "print(len(itmes), 'items')\n";
    for new in [
        "try:\n    print(len(itmes), 'items')\nexcept NameError:\n    pass\n",
        "if False:\n    print(len(itmes), 'items')\n",
        "if 'itmes' in globals(): print(len(itmes), 'items')\n",
        "import sys; sys.exit()\nprint(len(itmes), 'items')\n",
        "raise SystemExit\nprint(len(itmes), 'items')\n",
        "def later():\n    print(len(itmes), 'items')\n",
        "(lambda: print(len(itmes), 'items'))\n",
        "pass\n",
    ] {
        let answer = verdict(line, new);
        assert!(matches!(answer, Err(Refusal::Guarded { .. })), "{new}: {answer:?}");
    }
    let old = "if ready:\n    run(itmes)\n";
    let answer = judge(old, &old.replace("ready", "False"), &fault());
    assert_eq!(answer, Err(Refusal::Guarded { word: "if False".into() }));
}

#[test]
fn statements_of_its_own_are_refused() {
    assert_eq!(verdict("print(len", "itmes = items\nprint(len"), Err(Refusal::Grown));
    assert_eq!(verdict("print(len", "itmes = items; print(len"), Err(Refusal::Grown));
}

#[test]
fn code_set_free_from_an_open_string_is_not_new() {
    let open = "\"\"\"About.\n\ndef f():\n    return 1\n";
    let closed = open.replace("About.", "About.\"\"\"");
    let facts = Facts { syntax: Some(Syntax::default()), ..Facts::default() };
    let fault = Fault { kind: "SyntaxError".into(), facts, ..Fault::default() };
    assert_eq!(judge(open, &closed, &fault), Ok(()));
    assert!(judge(open, &closed, &Fault::default()).is_err());
    let more = closed.replace("return 1", "return 2");
    assert!(judge(open, &more, &fault).is_err());
    let apostrophe = "print('It's done', f(x))\n";
    let escaped = apostrophe.replace("t's", "t\\'s");
    assert_eq!(judge(apostrophe, &escaped, &fault), Ok(()));
}

#[test]
fn only_the_expected_output_is_a_success() {
    let mut ran = Ran {
        ending: Ending::Ok,
        stdout: "1\n".into(),
        stderr: String::new(),
        elapsed: Duration::ZERO,
    };
    assert_eq!(Verdict::of(&ran, None), Verdict::Fixed);
    assert_eq!(Verdict::of(&ran, Some("1\n")), Verdict::Fixed);
    let wrong = Verdict::WrongOutput { expected: "1".into(), got: "1\n".into() };
    assert_eq!(Verdict::of(&ran, Some("1")), wrong);
    ran.ending = Ending::Exited(3);
    assert_eq!(Verdict::of(&ran, Some("1\n")), Verdict::StillFailing(Ending::Exited(3)));
}

#[test]
fn the_same_fault_again_is_no_progress() {
    let before = fault();
    assert!(progressed(&before, &Ending::Ok));
    assert!(!progressed(&before, &Ending::Raised(Box::new(before.clone()))));
    let mut other = before.clone();
    other.message = "another".into();
    assert!(progressed(&before, &Ending::Raised(Box::new(other.clone()))));
    other.facts.syntax = Some(Syntax::default());
    assert!(!progressed(&before, &Ending::Raised(Box::new(other))));
}
