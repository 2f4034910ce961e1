//! The glossary of `CONTRIBUTING.md`, applied to every source and document of the workspace: each
//! word of its column `not` that is found is a fault, with its file and line.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "words/glossary.rs"]
mod glossary;
#[path = "words/text.rs"]
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use glossary::{Glossary, TITLE};
use text::Kind;

/// The folders and files that still use words of the column `not`. An entry without a fault has to
/// be removed, so this list only shrinks.
const NOT_YET: &[&str] = &[];

/// Folders and files that are not checked: data of tests and programs, and past changes.
const DATA: &[&str] = &[
    "CHANGELOG.md",
    "examples/scripts",
    "harness/esg/src/scan/identity/tests.rs",
    "harness/esg/tests/worker/test_world_clean.py",
];

/// Names of folders that are not checked, wherever they are.
const DATA_FOLDERS: &[&str] = &["golden", "target", "vectors"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The files to check, each with its path from the workspace, with `/` between the parts.
fn files(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let parts = path.strip_prefix(root).unwrap().iter();
            let parts: Vec<&str> = parts.map(|part| part.to_str().unwrap()).collect();
            let (name, shown) = (parts[parts.len() - 1], parts.join("/"));
            if name.starts_with('.') || DATA.contains(&shown.as_str()) {
                continue;
            }
            if path.is_dir() {
                if !DATA_FOLDERS.contains(&name) {
                    open.push(path);
                }
            } else if Kind::of(&shown).is_some() {
                found.push((shown, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[test]
fn the_words_are_those_of_the_glossary() {
    let files = files(&workspace());
    assert!(files.len() > 300, "the sources are elsewhere");
    let contributing = fs::read_to_string(workspace().join("CONTRIBUTING.md")).unwrap();
    let glossary = Glossary::read(&contributing).unwrap();
    let mut faults = Vec::new();
    let mut waiting = vec![0; NOT_YET.len()];
    for (path, source) in &files {
        let found = glossary.faults(path, source);
        match NOT_YET.iter().position(|folder| is_below(path, folder)) {
            Some(at) => waiting[at] += found.len(),
            None => faults.extend(found),
        }
    }
    for (folder, faults_left) in NOT_YET.iter().zip(waiting) {
        if faults_left == 0 {
            faults.push(format!("{folder}: no fault is left, so remove it from NOT_YET"));
        }
    }
    let count = faults.len();
    assert!(
        faults.is_empty(),
        "\n{}\n{count} faults ({TITLE} of CONTRIBUTING.md)",
        faults.join("\n")
    );
}

mod the_check_itself {
    use super::glossary::Glossary;
    use super::is_below;

    const TABLE: &str = "# Contributing\n\nred\n\n## Glossary\n\n| say | it is | not |\n|---|---|---|\n\
                         | blue | a colour | red, dark red, turns red |\n| green | | `lime`, `Olive` |\n\
                         | grey | a colour | |\n\n## Next\n";

    fn faults(path: &str, source: &str) -> Vec<String> {
        Glossary::read(TABLE).unwrap().faults(path, source)
    }

    /// The faults of a source, without the path.
    fn of(path: &str, source: &str) -> Vec<String> {
        let found = faults(path, source);
        found.into_iter().map(|fault| fault.replacen(&format!("{path}:"), "", 1)).collect()
    }

    #[test]
    fn a_fault_names_file_line_word_and_replacement() {
        assert_eq!(faults("a/b.rs", "fn f() {}\n// It is red.\n"), ["a/b.rs:2: `red` (say: blue)"]);
    }

    #[test]
    fn words_are_found_in_comments_messages_and_identifiers() {
        for source in [
            "// the red one",
            "/// The RED one.",
            "/* a\n * red one */",
            "let s = \"the red one\";",
            "let s = \"a \\\"red\\\" one\";",
            "let s = r#\"a \"red\" one\"#;",
            "fn is_red() {}",
            "struct RedOne;",
            "const RED_ONE: u8 = 1;",
            "let c = '\"'; let red = 1;",
            "fn f<'a>(red: &'a str) {}",
        ] {
            let found = of("x.rs", source);
            assert!(
                found.len() == 1 && found[0].ends_with(": `red` (say: blue)"),
                "{source}: {found:?}"
            );
        }
    }

    #[test]
    fn other_words_data_and_parts_of_words_are_no_fault() {
        for source in [
            "// reduce, bored, Fred",
            "let s = \"red\";",
            "let s = \"{\\\"red\\\":1}\";",
            "fn reduce() {}",
            "let c = 'r'; // dark",
            "// lime",
            "let s = \"colour.red is called\";",
        ] {
            assert_eq!(of("x.rs", source), [""; 0], "{source}");
        }
    }

    #[test]
    fn a_phrase_may_cross_a_line_but_no_punctuation() {
        let phrase = |source: &str| of("x.rs", source).join(", ");
        assert_eq!(phrase("/// When it turns\n    /// red again."), "1: `turns red` (say: blue)");
        assert_eq!(phrase("fn it_turns_red() {}"), "1: `turns red` (say: blue)");
        assert_eq!(phrase("/// It turns.\n///\n/// Redder."), "");
        assert_eq!(phrase("/// It turns, reduced."), "");
        assert_eq!(phrase("// It turns\nfn f() {}\n// reduced"), "");
        assert_eq!(phrase("let s = \"it turns \\\n    red\";"), "1: `turns red` (say: blue)");
    }

    #[test]
    fn words_in_backticks_are_only_identifiers() {
        assert_eq!(of("x.rs", "let lime_juice = 1;"), ["1: `lime` (say: green)"]);
        assert_eq!(of("x.rs", "struct Lime;"), ["1: `lime` (say: green)"]);
        // With a capital, only the whole identifier.
        assert_eq!(of("x.rs", "struct Olive;"), ["1: `Olive` (say: green)"]);
        assert_eq!(of("x.rs", "struct OliveOil; let olive = 1; // Lime, Olive"), [""; 0]);
    }

    #[test]
    fn python_and_markdown_are_read_too() {
        for source in [
            "# the red one",
            "'''The red\none.'''",
            "\"\"\"The red one.\"\"\"",
            "x = f'the red one {y}'",
            "def is_red(): pass",
        ] {
            assert_eq!(of("x.py", source), ["1: `red` (say: blue)"], "{source}");
        }
        // Attributes are the names of libraries.
        assert_eq!(of("x.py", "x.red('red')"), [""; 0]);
        assert_eq!(of("x.md", "# One\n\nIt is `red` and\nturns\nred.\n").len(), 2);
        // The glossary itself is not checked, the other text of its file is.
        assert_eq!(faults("CONTRIBUTING.md", TABLE), ["CONTRIBUTING.md:3: `red` (say: blue)"]);
    }

    #[test]
    fn names_of_files_are_checked() {
        assert_eq!(faults("a/red/b.rs", ""), ["a/red/b.rs: `red` (say: blue)"]);
        assert_eq!(faults("a/dark_red.rs", ""), ["a/dark_red.rs: `dark red` (say: blue)"]);
    }

    #[test]
    fn a_glossary_without_its_table_is_an_error() {
        assert!(Glossary::read("# Contributing\n").is_err());
        assert!(Glossary::read("## Glossary\n\n| say | it is |\n|---|---|\n| a | b |\n").is_err());
        assert!(Glossary::read("## Glossary\n\n| say | not |\n|---|---|\n").is_err());
    }

    #[test]
    fn a_folder_of_the_list_is_a_whole_folder_or_file() {
        assert!(is_below("a/b/c.rs", "a/b") && is_below("a/b.rs", "a/b.rs"));
        assert!(!is_below("a/bc.rs", "a/b"));
    }
}
