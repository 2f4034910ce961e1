//! The house rules that no compiler checks, read off the sources: which module may name which, how
//! long a file may be, and that everything public is documented.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "layers/circles.rs"]
mod circles;
#[path = "layers/docs.rs"]
mod docs;
#[path = "layers/imports.rs"]
mod imports;
#[path = "layers/methods.rs"]
mod methods;

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of `harness`, from the bottom. A module names only itself and modules of the rows
/// that stand before its own in this table; those of one row do not name each other.
const LAYERS: &[&[&str]] = &[
    // Leaves: plain data, traits.
    &["clock", "text"],
    &["id", "rule"],
    &["llm", "store"],
    // The model: no runtime, no I/O.
    &["state"],
    &["context", "signal", "question"],
    &["step"],
    &["graph"],
    &["session"],
    &["compat", "observe"],
    // Execution.
    &["inbox"],
    &["journal"],
    &["run"],
    // What enters a session, reads it, and makes a harness.
    &["recovery", "inspect", "declare"],
    // The front door.
    &["agent"],
    // Prebuilt parts, of what any program can use.
    &["approval", "code", "engine", "worker"],
    &["loops"],
    // The facade: names everything, and nothing names it.
    &["lib", "prelude", "testing", "__private", "_guide"],
];

/// The files of the rooms in which a run is made and driven, from the bottom. What is inside a file
/// may name it, and the other way round.
const ROOMS: &[(&str, &[&[&str]])] = &[
    (
        "run",
        &[
            &["conclusion", "elsewhere", "error", "outcome::child", "parent", "stop", "transition"],
            &["call_error", "keys", "reports", "slots", "spans"],
            &["breakpoints", "core", "outcome"],
            &["effects", "publish", "timers"],
            &["outcome::request"],
            &["child", "handle", "outcome::rest"],
            &["outcome::queued"],
            &["attempt", "begin", "boundary", "call"],
            &["driver"],
            &["each", "input", "settle", "sleep"],
            &["commit"],
        ],
    ),
    ("agent", &[&["call", "history", "check", "edit", "stored", "work"]]),
];

/// The most of the lines of `harness/src` that one room may have: one in so many.
const LARGEST_ROOM: usize = 5;

/// The most lines of a source file: prose goes to `docs/`, tests to files of their own.
const MAX_LINES: usize = 500;

/// The most lines of a source file of `harness-store`.
const MAX_STORE_LINES: usize = 400;

/// The most methods of a store: its author must get each of them right under crashes and
/// races, so what can be made of others is none of its own. One of them has an implementation that is
/// right for every store.
const MAX_STORE_METHODS: usize = 10;

/// The packages of the workspace.
const PACKAGES: &[&str] = &[
    "harness",
    "harness/esg",
    "harness/macros",
    "harness-store",
    "harness-providers",
    "harness-otel",
    "harness-otel/inspector",
    "examples",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The Rust files below `folder`, each with its path from there.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found: Vec<_> = found
        .into_iter()
        .map(|(path, text)| (path.strip_prefix(folder).unwrap().to_owned(), text))
        .collect();
    found.sort();
    found
}

/// Whether the file is only compiled for tests.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

fn check(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn imports_go_down() {
    let files = sources(&workspace().join("harness/src"));
    assert!(files.len() > 50, "the sources are elsewhere");
    let faults: Vec<String> = files
        .iter()
        .filter(|(path, _)| !is_test(path))
        .flat_map(|(path, text)| imports::faults(LAYERS, path, text))
        .collect();
    check(&faults);
}

fn without_tests(package: &str) -> Vec<(PathBuf, String)> {
    let mut files = sources(&workspace().join(package).join("src"));
    files.retain(|(path, _)| !is_test(path));
    files
}

#[test]
fn imports_go_down_inside_the_rooms_of_a_run() {
    let files = circles::Files::of(&without_tests("harness"));
    let faults: Vec<String> =
        ROOMS.iter().flat_map(|(room, rows)| files.faults(room, rows)).collect();
    check(&faults);
}

#[test]
fn no_files_need_each_other() {
    for package in ["harness", "harness/esg", "harness-store"] {
        let files = circles::Files::of(&without_tests(package));
        check(&files.circles());
        check(&files.circles_beyond_a_family());
    }
}

#[test]
fn no_room_is_too_large() {
    let rooms = circles::lines(&without_tests("harness"));
    let all: usize = rooms.values().sum();
    let faults: Vec<String> = rooms
        .into_iter()
        .filter(|(_, lines)| lines * LARGEST_ROOM > all)
        .map(|(room, lines)| format!("{room}: {lines} of {all} lines"))
        .collect();
    check(&faults);
}

#[test]
fn no_file_is_too_long() {
    let mut faults = Vec::new();
    for package in PACKAGES {
        for part in ["src", "tests"] {
            for (path, text) in sources(&workspace().join(package).join(part)) {
                let lines = text.lines().count();
                if lines > MAX_LINES {
                    let path = path.display();
                    faults.push(format!("{package}/{part}/{path}: {lines} lines"));
                }
            }
        }
    }
    check(&faults);
}

#[test]
fn the_tests_of_programs_are_run() {
    let examples = workspace().join("examples");
    let manifest = fs::read_to_string(examples.join("Cargo.toml")).unwrap();
    let untested: Vec<_> = manifest
        .split("[[bin]]\n")
        .filter_map(|entry| entry.strip_prefix("name = \"")?.split_once("\"\ntest = false\n"))
        .map(|(name, _)| name)
        .collect();
    assert!(untested.len() > 5, "the manifest says otherwise which programs have no tests");
    let faults: Vec<_> = sources(&examples.join("src/bin"))
        .into_iter()
        .filter(|(path, text)| {
            let program = path.components().next().unwrap().as_os_str().to_str().unwrap();
            untested.contains(&program.trim_end_matches(".rs"))
                && (text.contains("#[test]") || text.contains("#[tokio::test"))
        })
        .map(|(path, _)| {
            format!("{} has a test, and Cargo.toml says `test = false`", path.display())
        })
        .collect();
    check(&faults);
}

#[test]
fn everything_public_is_documented() {
    let files = sources(&workspace().join("harness/src"));
    let faults: Vec<String> = files
        .iter()
        .filter(|(path, _)| !is_test(path))
        .flat_map(|(path, text)| {
            docs::faults(text).into_iter().map(move |fault| format!("{}: {fault}", path.display()))
        })
        .collect();
    check(&faults);
}

#[test]
fn the_files_of_the_stores_are_short() {
    let files = sources(&workspace().join("harness-store/src"));
    let files: Vec<_> = files.iter().filter(|(path, _)| !is_test(path)).collect();
    assert!(files.len() > 15, "the sources are elsewhere");
    let mut faults = Vec::new();
    for (path, text) in files {
        let lines = text.lines().count();
        if lines > MAX_STORE_LINES {
            faults.push(format!("harness-store/src/{}: {lines} lines", path.display()));
        }
    }
    check(&faults);
}

#[test]
fn a_store_is_small() {
    let text = fs::read_to_string(workspace().join("harness/src/store/mod.rs")).unwrap();
    let found = methods::of("SessionStore", &text).unwrap();
    assert!(!found.is_empty() && found.len() <= MAX_STORE_METHODS, "{}: {found:?}", found.len());
}

/// Names that the derive reserves for the builders of a context, which `Cx` need not have.
const OF_BUILDERS: &[&str] = &["build", "builder"];

/// A slot is read as `cx.slot`, and a method of `Cx` is called in the same place: a new method must
/// not break the slot of a user.
#[test]
fn methods_of_cx_are_reserved_and_nothing_else_is() {
    let read = |file: &str| fs::read_to_string(workspace().join(file)).unwrap();
    let mut methods: Vec<String> = sources(&workspace().join("harness/src"))
        .iter()
        .flat_map(|(_, text)| methods::of_type("Cx", text))
        .collect();
    methods.extend(OF_BUILDERS.iter().map(|name| (*name).to_owned()));
    methods.sort();
    let mut reserved = methods::texts("RESERVED", &read("harness/macros/src/context/parse.rs"))
        .expect("the derive has a list of reserved names");
    reserved.sort();
    assert_eq!(methods, reserved);
}

mod the_checks_themselves {
    use std::path::{Path, PathBuf};

    use super::{LAYERS, circles, docs, imports, is_test, methods};

    fn named(file: &str, source: &str) -> Vec<String> {
        imports::faults(LAYERS, Path::new(file), source)
    }

    #[test]
    fn every_way_to_name_an_upper_module_is_seen() {
        for source in [
            "use crate::run::Driver;",
            "use crate::{id::RunId, run::Driver};",
            "use crate::run as other;",
            "pub use crate::run::*;",
            "use super::super::run::Driver;",
            "fn f() -> crate::run::Driver {}",
            "fn f() { super::super::run::go() }",
            "fn f() { vec![crate::run::go()] }",
            "macro_rules! m { () => { crate::run::go() }; }",
            "mod inner { use super::super::super::run::Driver; }",
        ] {
            let faults = named("step/cx.rs", source);
            assert_eq!(faults, ["step/cx.rs: `step` names `run`, which is above it"], "{source}");
        }
    }

    #[test]
    fn what_is_below_beside_inside_or_for_tests_may_be_named() {
        for source in [
            "use crate::state::State;",
            "use crate::step::Cx;",
            "use super::effects::Effects;",
            "use std::run::Driver;",
            "/// See [`crate::run::Run`].\nfn f() {}",
            "ids! { /// See [`crate::run::Run`], \"at once\".\nRun }",
            "#[cfg(test)] mod tests { use crate::run::Driver; }",
            "#[cfg(test)] use crate::run::Driver;",
        ] {
            assert_eq!(named("step/cx.rs", source), [""; 0], "{source}");
        }
        assert!(
            is_test(Path::new("llm/tool/set/tests.rs")) && !is_test(Path::new("llm/tests_of.rs"))
        );
    }

    #[test]
    fn neighbours_the_facade_and_strangers_may_not() {
        let fault = |file: &str, source: &str| named(file, source).join("");
        let beside = fault("question.rs", "use crate::context::Context;");
        assert_eq!(beside, "question.rs: `question` names `context`, which is beside it");
        let facade = fault("graph/mod.rs", "use crate::Harness;");
        assert_eq!(
            facade,
            "graph/mod.rs: `graph` names `Harness` of the facade (name the module it is in)"
        );
        let stranger = fault("shell.rs", "use std::fmt;");
        assert_eq!(stranger, "shell.rs: `shell` has no place in LAYERS");
        assert_eq!(named("lib.rs", "use crate::run::Run; use crate::Harness;"), [""; 0]);
    }

    fn files(of: &[(&str, &str)]) -> circles::Files {
        let files: Vec<_> =
            of.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
        circles::Files::of(&files)
    }

    #[test]
    fn files_that_need_each_other_are_found_wherever_the_name_passes() {
        let lib = ("lib.rs", "mod a; mod b; pub use a::A; pub use b::make as grow;");
        for (a, b) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use super::b::B;", "fn f() -> super::A { todo!() }"),
            ("fn f() { crate::grow() }", "use super::*; use crate::A;"),
        ] {
            let found = files(&[lib, ("a.rs", a), ("b.rs", b)]).circles();
            assert_eq!(found, ["a -> b -> a"], "{a} {b}");
        }
        let long = [lib, ("a.rs", "use crate::b::C;"), ("b.rs", "pub use crate::c::C;")];
        let found = files(&[&long[..], &[("c.rs", "use crate::A;")]].concat()).circles();
        assert_eq!(found, ["a -> c -> a"]);
    }

    #[test]
    fn one_way_and_between_a_parent_and_its_children_is_no_circle() {
        for of in [
            [("a.rs", "use crate::b::B;"), ("b.rs", "fn f() {}")],
            [("a/mod.rs", "mod b; use b::B;"), ("a/b.rs", "use super::A;")],
            [("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)] use crate::a::A;")],
        ] {
            assert_eq!(files(&of).circles(), [""; 0], "{of:?}");
        }
    }

    #[test]
    fn a_circle_that_leads_out_of_a_family_is_found() {
        for of in [
            // By way of a child.
            [
                ("run/a.rs", "mod c; use c::C;"),
                ("run/a/c.rs", "use crate::run::b::B;"),
                ("run/b.rs", "use super::a::A;"),
            ],
            // By way of a parent that passes a name on, and declares more.
            [
                ("run/a.rs", "mod c; pub use c::C; use super::b::B; struct A;"),
                ("run/a/c.rs", "pub struct C;"),
                ("run/b.rs", "use super::a::C;"),
            ],
        ] {
            let found = files(&of).circles_beyond_a_family();
            assert_eq!(found.len(), 1, "{found:?} in {of:?}");
            assert!(found[0].contains("run::a, ") && found[0].contains("run::b"), "{found:?}");
        }
    }

    #[test]
    fn a_circle_inside_of_a_family_is_not() {
        for of in [
            [("a.rs", "mod b; use b::B;"), ("a/b.rs", "use super::A;"), ("c.rs", "")],
            [
                ("a.rs", "mod b; mod c; use b::B;"),
                ("a/b.rs", "use super::c::C;"),
                ("a/c.rs", "use super::A;"),
            ],
            // A file that only passes names on.
            [
                ("a.rs", "mod b; mod c; pub use b::B; pub use c::C;"),
                ("a/b.rs", ""),
                ("a/c.rs", "use crate::a::B;"),
            ],
        ] {
            assert_eq!(files(&of).circles_beyond_a_family(), [""; 0], "{of:?}");
        }
    }

    #[test]
    fn files_of_a_room_name_only_those_below() {
        let room = files(&[
            ("run/mod.rs", "mod a; mod b; pub use a::A;"),
            ("run/a.rs", "use super::b::B;"),
            ("run/b.rs", ""),
        ]);
        assert_eq!(room.faults("run", &[&["b"], &["a"]]), [""; 0]);
        let fault = "run: `a` names `b`, which is not below it";
        assert_eq!(room.faults("run", &[&["a"], &["b"]]), [fault]);
        assert_eq!(room.faults("run", &[&["a", "b"]]), [fault]);
        assert_eq!(room.faults("run", &[&["b"]]), ["run: `a` has no place in its room"]);
        assert_eq!(room.faults("run", &[&["b"], &["a"], &["c"]]), ["run: there is no `c`"]);
    }

    #[test]
    fn methods_of_a_type_and_lists_of_names_are_read() {
        let source = "impl<C> Cx<C> { pub fn a(&self) {} pub(crate) fn no(&self) {} fn no() {} }
            impl Deref for Cx { fn no(&self) {} } impl Other { pub fn no(&self) {} }
            impl crate::Cx { pub fn b(self) {} } const LIST: &[&str] = &[\"x\", \"y\"];";
        assert_eq!(methods::of_type("Cx", source), ["a", "b"]);
        assert_eq!(methods::texts("LIST", source).unwrap(), ["x", "y"]);
        assert_eq!(methods::texts("GONE", source), None);
    }

    #[test]
    fn what_is_public_and_undocumented_is_found() {
        for (source, fault) in [
            ("pub fn go() {}", "fn `go`"),
            ("pub struct Go;", "struct `Go`"),
            ("/// Goes.\npub struct Go { pub far: u8 }", "field `far` of `Go`"),
            ("/// Goes.\npub enum Go { Far }", "variant `Far` of `Go`"),
            ("/// Goes.\npub trait Go { fn far(&self); }", "fn `far` of `Go`"),
            ("/// Goes.\npub trait Go { type Far; }", "type `Far` of `Go`"),
            ("impl Go { pub fn far(&self) {} }", "fn `far`"),
            ("pub const GO: u8 = 1;", "const `GO`"),
            ("pub type Go = u8;", "type `Go`"),
            ("mod inner { pub fn go() {} }", "fn `go`"),
        ] {
            assert_eq!(docs::faults(source), [format!("{fault} has no documentation")], "{source}");
        }
    }

    #[test]
    fn what_is_documented_hidden_or_private_is_not() {
        for source in [
            "/// Goes.\npub fn go() {}",
            "#[doc = include_str!(\"go.md\")]\npub mod go {}",
            "#[doc(hidden)]\npub fn go() {}",
            "fn go() {}",
            "pub(crate) fn go() {}",
            "pub(crate) struct Go { pub far: u8 }",
            "enum Go { Far }",
            "impl Far for Go { fn far(&self) {} }",
            "impl Go { fn far(&self) {} }",
            "#[cfg(test)] mod tests { pub fn go() {} }",
            "pub use go::Go;",
        ] {
            assert_eq!(docs::faults(source), [""; 0], "{source}");
        }
    }

    #[test]
    fn methods_of_every_kind_are_counted() {
        let source = "pub trait Other { fn no(&self); }
            #[async_trait] pub trait Go: Send {
                const FAR: u8; type Near;
                fn a(&self); async fn b(&self); fn c(&self) {} fn d();
            }";
        assert_eq!(methods::of("Go", source).unwrap(), ["a", "b", "c", "d"]);
        assert_eq!(methods::of("Gone", source), None);
    }
}
