use super::*;
use crate::diagnosis::{Facts, Frame, Syntax};

const SCRIPT: &str = "import os\n\nitems = [1, 2]\nprint(len(itmes), 'items')\nprint('end')\n";

fn fault() -> Fault {
    let frame = Frame { line: 4, ..Frame::default() };
    Fault { kind: "NameError".into(), frames: vec![frame], ..Fault::default() }
}

fn verdict(old: &str, new: &str) -> Result<(), Evasion> {
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
    assert_eq!(verdict("x", "y"), Err(Evasion::Unchanged));
    assert_eq!(verdict("\n\n", "\n# items\n\n\n"), Err(Evasion::Unchanged));
    assert_eq!(verdict("\n", "\r\n"), Err(Evasion::Unchanged));
}

#[test]
fn taking_the_failure_away_is_refused() {
    let line = "print(len(itmes), 'items')\n";
    let removed = Err(Evasion::Removed { line: 4 });
    assert_eq!(verdict(line, ""), Err(Evasion::Shrunk { before: 4, after: 3 }));
    assert_eq!(
        verdict(line, "# print(len(itmes), 'items')\n"),
        Err(Evasion::CommentedOut { line: 4 })
    );
    assert_eq!(verdict("print(len", "0 # print(len"), Err(Evasion::CommentedOut { line: 4 }));
    assert_eq!(verdict(line, "'''print(len(itmes), 'items')'''\n"), removed);
    assert_eq!(verdict(line, "print('2 items')\n"), removed);
    assert_eq!(verdict(line, "...\n"), removed);
    assert_eq!(verdict("print('end')\n", ""), Err(Evasion::Shrunk { before: 4, after: 3 }));
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
        assert!(matches!(answer, Err(Evasion::Guarded { .. })), "{new}: {answer:?}");
    }
    let old = "if ready:\n    run(itmes)\n";
    let answer = judge(old, &old.replace("ready", "False"), &fault());
    assert_eq!(answer, Err(Evasion::Guarded { word: "if False".into() }));
}

#[test]
fn statements_of_its_own_are_refused() {
    assert_eq!(verdict("print(len", "itmes = items\nprint(len"), Err(Evasion::Grown));
    assert_eq!(verdict("print(len", "itmes = items; print(len"), Err(Evasion::Grown));
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
fn a_misspelt_word_of_the_language_is_respelt_and_nothing_else_with_it() {
    let source = "def f(x):\n    retrun x\nprint(f(1))\n";
    let syntax = Syntax { line: 2, message: "invalid syntax".into(), ..Syntax::default() };
    let facts = Facts { syntax: Some(syntax), ..Facts::default() };
    let broken = Fault { kind: "SyntaxError".into(), facts, ..Fault::default() };
    let verdict = |new: &str| judge(source, &source.replace("retrun", new), &broken);
    assert_eq!(verdict("return"), Ok(()));
    assert!(matches!(verdict("pass"), Err(Evasion::Guarded { .. })));
    assert!(verdict("return None #").is_err());
    let both = source.replace("retrun", "return").replace("f(1)", "f(2)");
    assert!(judge(source, &both, &broken).is_err());
    // A program that runs has no such mistake.
    let runs = "def f(x):\n    rturn(x)\nf(1)\n";
    assert!(judge(runs, &runs.replace("rturn", "return"), &fault()).is_err());
}
