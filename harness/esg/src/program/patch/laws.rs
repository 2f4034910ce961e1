//! What holds of all patches.
use proptest::prelude::*;

use super::*;

/// Sources with few different lines, so that they repeat, and with all line ends.
fn sources() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "", "a", "b", " b", "  b ", "-- x", "++ x", "@@ x", "- c", "+ c", "a\r", "\r", "\\ x", "é",
    ]);
    let lines = prop::collection::vec(line, 0..24);
    (lines, any::<bool>()).prop_map(|(lines, ends)| lines.join("\n") + if ends { "\n" } else { "" })
}

/// Statements that define functions and classes, at the top, in blocks and in each other.
const STATEMENTS: &[&str] = &[
    "x = 1\n",
    "\n# def f\n\n",
    "def f(): pass\n",
    "def f(): pass; y = 1  # one\n",
    "def f(): pass;\n",
    "def f(): pass \\\n\n",
    "@cache\n@other(1)\ndef f(a):\n    def g():\n        return a\n    return g\n\n",
    "async def g():\n    await f()\n    # the end\n",
    "class A:\n    def f(self):\n        pass\n    class B:\n        @staticmethod\n        def f(): ...\n",
    "class A: pass\r\n",
    "if x:\n    def f(): pass\nelse:\n    class A:\n        def f(self): pass\n",
    "try:\n    import json\nexcept ImportError:\n    def g(): pass\n",
    "with open('x') as file:\n    def f(): pass\n\n",
    "text = '''\ndef f():\n    pass\n'''\n",
    "\u{e9} = 'class'\n",
];

proptest! {
    #[test]
    fn a_diff_makes_the_first_into_the_second(old in sources(), new in sources()) {
        let patch = Patch::unified("s", &unified("s", &old, &new));
        match patch.preview("s", &old) {
            Ok(made) => prop_assert_eq!(made, new),
            Err(refusal) => prop_assert!(old == new, "{}", refusal),
        }
    }

    #[test]
    fn a_diff_of_code_makes_the_first_into_the_second(
        old in prop::collection::vec(0_usize..6, 0..60),
        edits in prop::collection::vec((0_usize..60, 0_usize..6), 1..5),
    ) {
        let mut new = old.clone();
        for (at, line) in edits {
            new.insert(at.min(new.len()), line);
        }
        let text = |lines: &[usize]| lines.iter().map(|line| format!("x = {line}\n")).collect::<String>();
        let mut program = Program::new();
        program.push("s", &text(&old)).unwrap();
        program.patch(&Patch::unified("s", &unified("s", &text(&old), &text(&new)))).unwrap();
        prop_assert_eq!(&*program.step("s").unwrap().source, &*text(&new));
    }

    #[test]
    fn no_rung_chooses_between_equal_places(
        lines in prop::collection::vec(0_usize..4, 1..30),
        at in 0_usize..30,
        length in 1_usize..4,
        indent in 0_usize..2,
    ) {
        let source: Vec<String> = lines.iter().map(|line| format!("x = {line}")).collect();
        let at = at % source.len();
        let wanted = &source[at..source.len().min(at + length)];
        let places = source.windows(wanted.len()).filter(|window| *window == wanted).count();
        let indented: Vec<_> = wanted.iter().map(|line| " ".repeat(indent) + line).collect();
        let patch = Patch::search_replace("s", &indented.join("\n"), &format!("{}y = 1", " ".repeat(indent)));
        let made = patch.preview("s", &source.join("\n"));
        prop_assert_eq!(made.is_ok(), places == 1, "{:?}", made);
        if places > 1 {
            prop_assert!(matches!(made, Err(Refusal::Ambiguous { .. })), "{:?}", made);
        }
    }

    #[test]
    fn a_definition_is_found_in_the_parts_that_may_contain_it_as_in_the_whole(
        parts in prop::collection::vec(prop::sample::select(STATEMENTS.to_vec()), 0..8),
        path in prop::sample::select(vec!["f", "g", "A", "A.f", "A.B", "A.B.f", "f.g"]),
    ) {
        let source = parts.concat();
        let mut program = Program::new();
        program.push("s", &source).unwrap();
        let name = path.rsplit('.').next().unwrap();
        let patch = Patch::symbol("s", path, &format!("def {name}(new):\n    return 7\n"));
        match (program.patch(&patch), patch.preview("s", &source)) {
            (Ok(_), Ok(made)) => prop_assert_eq!(&*program.step("s").unwrap().source, &*made),
            (Err(ProgramError::Refused(one)), Err(other)) => prop_assert_eq!(one, other),
            (one, other) => prop_assert!(false, "{one:?} {other:?}\n{source}"),
        }
    }

    #[test]
    fn a_refusal_changes_nothing(
        source in sources(), search in sources(), replace in sources(), kind in 0..4,
    ) {
        let mut program = Program::new();
        program.push("s", &source).unwrap();
        let before = program.clone();
        let patch = match kind {
            0 => Patch::search_replace("s", &search, &replace),
            1 => Patch::unified("s", &search),
            2 => Patch::symbol("s", &search, &replace),
            _ => Patch::step("s", &search),
        };
        let versions = program.patch(&patch);
        prop_assert_eq!(versions.is_err(), program == before);
    }
}
