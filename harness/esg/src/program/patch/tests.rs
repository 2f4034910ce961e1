use super::*;

/// The error of a patch, and that it changed nothing.
fn refused(program: &mut Program, patch: &Patch) -> ProgramError {
    let before = program.clone();
    let error = program.patch(patch).unwrap_err();
    assert_eq!(*program, before);
    assert_eq!(program.accepts(patch), Err(error.clone()));
    error
}

fn refusal(program: &mut Program, patch: &Patch) -> Refusal {
    match refused(program, patch) {
        ProgramError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    }
}

fn program(source: &str) -> Program {
    let mut program = Program::new();
    program.push("s", source).unwrap();
    program
}

/// The source of a step after a patch.
#[track_caller]
fn patched(source: &str, patch: &Patch) -> String {
    let mut program = program(source);
    if let Err(error) = program.patch(patch) {
        panic!("{error}");
    }
    program.step("s").unwrap().source.to_string()
}

fn diff(source: &str, diff: &str) -> String {
    patched(source, &Patch::unified("s", diff))
}

const CLASSES: &str = "\
class A:
    def run(self):
        return 1

class B:
    def run(self):
        return 1
";

#[test]
fn text_is_replaced_where_it_is() {
    let search = |source: &str, search: &str, replace: &str| {
        patched(source, &Patch::search_replace("s", search, replace))
    };
    assert_eq!(search("a = 1\nb = a\n", "b = a\n", "b = a + 1\n"), "a = 1\nb = a + 1\n");
    assert_eq!(search("a = totl + 1", "totl", "total"), "a = total + 1");
    assert_eq!(search("a = 1\nb = 2\nc = 3", "b = 2\n", ""), "a = 1\nc = 3");
    // A whole line, not the one that contains it.
    assert_eq!(search("x = 1\nxx = 1\n", "x = 1", "x = 2"), "x = 2\nxx = 1\n");
    assert_eq!(search("", "", "x = 1\n"), "x = 1\n");
}

#[test]
fn each_rung_of_the_ladder_is_used() {
    let search = |source: &str, search: &str, replace: &str| {
        patched(source, &Patch::search_replace("s", search, replace))
    };
    // White space at the ends of lines; kept lines stay as the step has them.
    assert_eq!(search("a = 1  \nb = 2\n", "a = 1\nb = 2", "a = 1\nb = 3"), "a = 1  \nb = 3\n");
    assert_eq!(search("a = 1\r\nb = 2\r\n", "a = 1\nb = 2", "a = 1\nb = 3"), "a = 1\r\nb = 3\r\n");
    // The indentation of the whole block, to both sides.
    assert_eq!(
        search("if x:\n    a = 1\n    b = 2\n", "a = 1\nb = 2", "a = 1\nif a:\n    b = 3"),
        "if x:\n    a = 1\n    if a:\n        b = 3\n"
    );
    assert_eq!(
        search("a = 1\nb = 2\n", "    a = 1\n    b = 2", "    a = 2\n    b = 2"),
        "a = 2\nb = 2\n"
    );
    // Typographic punctuation.
    assert_eq!(
        search("a = 'x' - 1\nb = 2\n", "a = \u{2018}x\u{2019} \u{2212} 1\nb = 2", "a = 3\nb = 2"),
        "a = 3\nb = 2\n"
    );
}

#[test]
fn indentation_that_is_not_uniform_does_not_match() {
    let mut program = program("if x:\n    a = 1\n    b = 2\n");
    let patch = Patch::search_replace("s", "a = 1\n  b = 2", "a = 2\n  b = 2");
    assert!(matches!(refusal(&mut program, &patch), Refusal::NoMatch { .. }));
}

#[test]
fn diffs_are_read_as_models_write_them() {
    let source = "a = 1\nb = 2\nc = 3\n";
    let wanted = "a = 1\nb = 5\nc = 3\n";
    for text in [
        "--- s\n+++ s\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 5\n c = 3\n",
        // Wrong numbers, wrong counts, none, a head that names a section, no head of the file.
        "@@ -90,3 +90,3 @@\n a = 1\n-b = 2\n+b = 5\n c = 3\n",
        "@@ -1,9 +1,7 @@\n a = 1\n-b = 2\n+b = 5\n c = 3\n",
        "@@ -1,1 +1,1 @@\n a = 1\n-b = 2\n+b = 5\n c = 3\n",
        "@@ @@\n a = 1\n-b = 2\n+b = 5\n c = 3\n\n",
        "@@\n-b = 2\n+b = 5",
        "@@ module @@\n-b = 2\n+b = 5",
        "```diff\n--- a/s.py\n+++ b/s.py\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 5\n c = 3\n```\n",
    ] {
        assert_eq!(diff(source, text), wanted, "{text}");
    }
    assert_eq!(
        diff("a = 1\r\nb = 2\r\n", "@@\n a = 1\n-b = 2\n+b = 5\n+c = 6\n"),
        "a = 1\r\nb = 5\r\nc = 6\r\n"
    );
    assert_eq!(diff("a = 1\n\nb = 2", "@@\n a = 1\n\n-b = 2\n+b = 5\n"), "a = 1\n\nb = 5");
}

#[test]
fn all_hunks_apply_or_none() {
    let source = "a = 1\nb = 2\nc = 3\n";
    let both = "@@\n-a = 1\n+a = 9\n@@\n-c = 3\n+c = 9\n";
    assert_eq!(diff(source, both), "a = 9\nb = 2\nc = 9\n");
    let one = "@@\n-a = 1\n+a = 9\n@@\n-stale = 3\n+c = 9\n";
    let refusal = refusal(&mut program(source), &Patch::unified("s", one));
    assert!(matches!(refusal, Refusal::NoMatch { edit: 2, .. }), "{refusal:?}");
    // Of several steps, too.
    let mut two = program(source);
    two.push("t", "d = 4\n").unwrap();
    let patch = Patch::step("s", "a = 2\n").and(Patch::search_replace("t", "nothing", "x"));
    refused(&mut two, &patch);
}

#[test]
fn equal_places_are_distinguished_by_lines_and_sections_only() {
    let twice =
        |head: &str| format!("{head}\n     def run(self):\n-        return 1\n+        return 2\n");
    let second = CLASSES.replace(
        "B:\n    def run(self):\n        return 1",
        "B:\n    def run(self):\n        return 2",
    );
    assert_eq!(diff(CLASSES, &twice("@@ -6,2 +6,2 @@")), second);
    assert_eq!(diff(CLASSES, &twice("@@ class B:")), second);
    for useless in ["@@ -90,2 +90,2 @@", "@@", "@@ class C:", "@@ -4,2 +4,2 @@"] {
        let refusal = refusal(&mut program(CLASSES), &Patch::unified("s", &twice(useless)));
        assert_eq!(refusal, Refusal::Ambiguous { step: "s".into(), edit: 1, at: vec![2, 6] });
    }
    let near = EditKind::SearchReplace {
        search: "return 1".into(),
        replace: "return 2".into(),
        line: Some(7),
    };
    assert_eq!(patched(CLASSES, &Patch::of("s", near)), second);
}

#[test]
fn what_does_not_match_is_named_with_the_nearest_lines() {
    let mut program = program("total = sum(rows)\nprint(total)\n");
    let patch = Patch::search_replace("s", "total = sum(row)\nprint(total)", "x = 1");
    let refusal = refusal(&mut program, &patch);
    let Refusal::NoMatch { missing, nearest, done, .. } = &refusal else { panic!("{refusal:?}") };
    assert_eq!(missing.as_deref(), Some("total = sum(row)"));
    assert_eq!(nearest[0], (1, "total = sum(rows)".to_owned()));
    assert!(!done);
    let said = "edit 1 of step `s`: what it replaces is not there: no line is `total = sum(row)` \
                (the nearest: line 1: `total = sum(rows)`";
    assert!(refusal.to_string().starts_with(said), "{refusal}");
    let again = Patch::search_replace("s", "print(totl)", "print(total)");
    assert!(matches!(self::refusal(&mut program, &again), Refusal::NoMatch { done: true, .. }));
}

#[test]
fn a_step_that_parses_keeps_parsing() {
    let mut program = program("def f(x):\n    return x\n");
    let refusal = refusal(&mut program, &Patch::search_replace("s", "return x", "return (x"));
    let Refusal::DoesNotParse { line, text, .. } = &refusal else { panic!("{refusal:?}") };
    assert!((2..=3).contains(line), "{refusal}");
    assert!(text.contains("(x") || text.is_empty(), "{refusal}");
}

#[test]
fn one_of_several_syntax_errors_can_be_corrected() {
    let mut program = program("if x\n    a = 1\nif y\n    b = 1\n");
    program.patch(&Patch::search_replace("s", "if x", "if x:")).unwrap();
    // Not made worse.
    let worse = Patch::search_replace("s", "a = 1", "a = (1");
    assert!(matches!(refusal(&mut program, &worse), Refusal::DoesNotParse { .. }));
    program.patch(&Patch::search_replace("s", "if y", "if y:")).unwrap();
}

#[test]
fn edits_of_the_same_lines_overlap() {
    let source = "a = 1\nb = 2\n";
    let both = Patch::search_replace("s", "a = 1", "a = 2")
        .and(Patch::search_replace("s", "a = 1", "a = 3"));
    let refusal_of = |patch: &Patch| refusal(&mut program(source), patch);
    assert_eq!(refusal_of(&both), Refusal::Overlap { step: "s".into(), edits: (1, 2), line: 1 });
    let whole = Patch::search_replace("s", "b = 2", "b = 3").and(Patch::step("s", "a = 1\n"));
    assert!(matches!(refusal_of(&whole), Refusal::Overlap { .. }));
    let inserts = "@@\n a = 1\n+c = 1\n@@\n a = 1\n+d = 1\n";
    assert!(matches!(refusal_of(&Patch::unified("s", inserts)), Refusal::Overlap { .. }));
    // Hunks may share the lines around their changes.
    let beside = "@@\n-a = 1\n+a = 2\n b = 2\n@@\n a = 1\n-b = 2\n+b = 3\n";
    assert_eq!(diff(source, beside), "a = 2\nb = 3\n");
}

#[test]
fn what_is_no_patch_is_refused() {
    let mut one = program("a = 1\n");
    for text in [
        "Here is the fix!",
        "",
        "@@ -1 +1 @@\n",
        "@@\n a = 1\n",
        "@@\n-a = 1\n+a = 2\nand so on\n",
        "@@ -1 +1 @@\n-a = 1\n+a = 2\n--- t\n+++ t\n@@ -1 +1 @@\n-b\n+c\n",
        "@@\n+b = 1\n",
    ] {
        let refusal = refusal(&mut one, &Patch::unified("s", text));
        assert!(matches!(refusal, Refusal::Malformed { .. }), "{text}: {refusal:?}");
    }
    assert!(matches!(
        refusal(&mut one, &Patch::search_replace("s", " ", "x")),
        Refusal::Malformed { .. }
    ));
    assert_eq!(refusal(&mut one, &Patch::default()), Refusal::Empty);
    assert!(matches!(refusal(&mut one, &Patch::step("s", "a = 1\n")), Refusal::NoChange { .. }));
    let unknown = refused(&mut one, &Patch::step("z", "a = 2\n"));
    assert!(matches!(unknown, ProgramError::UnknownStep { .. }));
}

#[test]
fn functions_and_classes_are_replaced_with_their_decorators() {
    let source = "import m\n\nclass A:\n    @m.cached\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n\nx = A()\n";
    let new = "def f(self):\n    if self:\n        return 3\n\n    return 4\n";
    assert_eq!(
        patched(source, &Patch::symbol("s", "A.f", new)),
        "import m\n\nclass A:\n    def f(self):\n        if self:\n            return 3\n\n        return 4\n\n    def g(self):\n        return 2\n\nx = A()\n"
    );
    // Indented as it was, and in a fence.
    let fenced = "```python\n    def f(self):\n        return 3\n```";
    assert!(
        patched(source, &Patch::symbol("s", "A.f", fenced))
            .contains("    def f(self):\n        return 3\n\n    def g")
    );
    let refuse =
        |path: &str, new: &str| refusal(&mut program(source), &Patch::symbol("s", path, new));
    assert_eq!(
        refuse("A.ff", new),
        Refusal::UnknownSymbol { step: "s".into(), path: "A.ff".into(), near: Some("A.f".into()) }
    );
    for other in ["def g(self):\n    pass\n", "x = 1\n", "def f(self:\n", "I cannot do that."] {
        assert!(matches!(refuse("A.f", other), Refusal::NotTheSymbol { .. }), "{other}");
    }
    // A string over several lines would change.
    let text = "def f(self):\n    return '''a\nb'''\n";
    assert!(matches!(refuse("A.f", text), Refusal::NotTheSymbol { .. }));
    let twice = "if x:\n    def f(): pass\nelse:\n    def f(): pass\n";
    let refusal = refusal(&mut program(twice), &Patch::symbol("s", "f", "def f(): return 1\n"));
    assert_eq!(refusal, Refusal::Ambiguous { step: "s".into(), edit: 1, at: vec![2, 4] });
}

#[test]
fn provenance_is_recorded_with_the_parent_of_each_step() {
    let mut program = program("a = 1\n");
    program.push("t", "b = 1\n").unwrap();
    let first = program.step("s").unwrap().version;
    let sign = Provenance::new(ProvenanceKind::Patched)
        .agent("fixer")
        .run("r-7")
        .call("c-3")
        .diagnosis("wrong");
    let patch = Patch::step("s", "a = 2\n")
        .and(Patch::step("t", "b = 2\n"))
        .signed(sign.clone())
        .pinned(&program);
    let versions = program.patch(&patch).unwrap();
    assert_eq!(program.version(versions[0]).unwrap().provenance, sign.parent(first));
    assert_eq!(program.version(versions[1]).unwrap().provenance.call.as_deref(), Some("c-3"));
    // It was made for versions that are not current any more.
    let outdated = refused(&mut program, &patch);
    assert!(matches!(outdated, ProgramError::Outdated { .. }), "{outdated}");
    program.rollback(first).unwrap();
    program.rollback(program.version(versions[1]).unwrap().parent.unwrap()).unwrap();
    program.patch(&patch).unwrap();
    assert_eq!(&*program.step("s").unwrap().source, "a = 2\n");
}

#[test]
fn patches_are_data() {
    let mut program = program("a = 1\n");
    let patch = Patch::search_replace("s", "1", "2").agent("x").why("because").pinned(&program);
    let json = serde_json::to_string(&patch).unwrap();
    assert_eq!(serde_json::from_str::<Patch>(&json).unwrap(), patch);
    let versions = program.patch(&patch).unwrap();
    // A stored program is the same.
    assert_eq!(Program::fold(program.operations(0).to_vec()).unwrap(), program);
    assert_eq!(versions.len(), 1);
}

#[test]
fn a_part_of_a_line_and_the_end_of_the_last_one_are_replaced() {
    let source = "a = 1\nb = 2\n";
    for (search, replace, wanted) in [
        ("= 2\n", "= 3\n", "a = 1\nb = 3\n"),
        ("= 2\n", "= 3", "a = 1\nb = 3"),
        ("\nb = 2\n", "", "a = 1"),
        ("= 1\nb = 2\n", "= 4\nc = 5\n", "a = 4\nc = 5\n"),
    ] {
        let patch = Patch::search_replace("s", search, replace);
        assert_eq!(patch.preview("s", source).unwrap(), wanted, "{search:?}");
    }
}
