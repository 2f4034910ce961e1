//! A file of tests, as code steps that run after those of the program.

// Python has many kinds of statements, and a few matter here.
#![allow(clippy::wildcard_enum_match_arm)]

use harness::esg::{Program, ProgramError};
use ruff_python_ast::{Parameters, Stmt, StmtImportFrom};
use ruff_python_parser::parse_module;
use ruff_text_size::Ranged as _;

/// Why a file of tests cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    /// It is no Python.
    #[error("it does not parse: {0}")]
    Syntax(String),
    /// It imports the module instead of names from it.
    #[error(
        "line {line}: `import {module}` (write `from {module} import ..`: the tests run after the program)"
    )]
    Module { line: usize, module: String },
    /// A test has arguments.
    #[error(
        "`{name}` has arguments (a test here has none: fixtures and parameters need a test runner)"
    )]
    Arguments { name: String },
    /// There is no test in it.
    #[error("it has neither a function `test_..` nor another statement")]
    Empty,
    /// A step of it is refused.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Adds the tests to the program whose module has this name: the file as one step, and each of its
/// functions `test_..` as one that calls it. Returns their ids.
///
/// The tests see the names of the program, so an import of names from its module is left out.
pub(crate) fn add_checks(
    program: &mut Program,
    module: &str,
    tests: &str,
) -> Result<Vec<String>, CheckError> {
    let parsed = parse_module(tests).map_err(|error| CheckError::Syntax(error.to_string()))?;
    let mut source = String::with_capacity(tests.len());
    let (mut copied, mut calls) = (0, Vec::new());
    let body = &parsed.syntax().body;
    for statement in body {
        match statement {
            Stmt::ImportFrom(import) if is_of(import, module) => {
                let (start, end) = (import.start().to_usize(), import.end().to_usize());
                source.push_str(&tests[copied..start]);
                source.push_str(&renames(import));
                copied = end;
            }
            Stmt::Import(import)
                if import.names.iter().any(|alias| alias.name.as_str() == module) =>
            {
                let line = tests[..import.start().to_usize()].matches('\n').count() + 1;
                return Err(CheckError::Module { line, module: module.to_owned() });
            }
            Stmt::FunctionDef(test) if test.name.starts_with("test") => {
                calls.push((test.name.to_string(), called(&test.name, &test.parameters, 0)?));
            }
            Stmt::ClassDef(class) if class.name.starts_with("Test") => {
                for test in &class.body {
                    let Stmt::FunctionDef(test) = test else { continue };
                    if test.name.starts_with("test") {
                        let name = format!("{}.{}", class.name, test.name);
                        let call = called(&test.name, &test.parameters, 1)?;
                        calls.push((name, format!("{}().{call}", class.name)));
                    }
                }
            }
            _ => {}
        }
    }
    source.push_str(&tests[copied..]);
    if body.is_empty() {
        return Err(CheckError::Empty);
    }
    program.push("tests", source.trim_end())?;
    let mut ids = vec!["tests".to_owned()];
    for (name, call) in calls {
        program.push(&name, &call)?;
        ids.push(name);
    }
    Ok(ids)
}

fn is_of(import: &StmtImportFrom, module: &str) -> bool {
    import.level <= 1 && import.module.as_ref().is_some_and(|name| name.as_str() == module)
}

/// What is left of an import whose names are there already. The lines stay as many as they were.
fn renames(import: &StmtImportFrom) -> String {
    let renamed = import.names.iter().filter_map(|alias| {
        let name = alias.asname.as_ref()?;
        Some(format!("{name} = {}", alias.name))
    });
    let renamed: Vec<_> = renamed.collect();
    match renamed.is_empty() {
        true => "pass".to_owned(),
        false => renamed.join("; "),
    }
}

/// The call of a test that has no argument but those of its object.
fn called(name: &str, parameters: &Parameters, own: usize) -> Result<String, CheckError> {
    let required = parameters.iter_non_variadic_params().filter(|it| it.default.is_none()).count();
    match required == own {
        true => Ok(format!("{name}()")),
        false => Err(CheckError::Arguments { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_is_a_step_and_sees_the_names_of_the_program() {
        let mut program = Program::new();
        let tests = "import math\nfrom shop import total, tax as t\n\n\
                     def test_total():\n    assert total([1]) == 1\n\n\
                     class TestTax:\n    def test_none(self):\n        assert t(0) == 0\n";
        let ids = add_checks(&mut program, "shop", tests).unwrap();
        assert_eq!(ids, ["tests", "test_total", "TestTax.test_none"]);
        let source = &*program.step("tests").unwrap().source;
        assert!(source.starts_with("import math\nt = tax\n\ndef test_total"), "{source}");
        assert_eq!(&*program.step("TestTax.test_none").unwrap().source, "TestTax().test_none()");
    }

    #[test]
    fn what_needs_a_test_runner_is_refused() {
        let refused =
            |tests: &str| add_checks(&mut Program::new(), "shop", tests).unwrap_err().to_string();
        assert!(refused("\nimport shop\n").starts_with("line 2: `import shop` (write"));
        assert!(refused("def test_a(tmp_path): pass\n").starts_with("`test_a` has arguments"));
        assert!(refused("def test_a(:\n").starts_with("it does not parse"));
        assert!(refused("# none\n").starts_with("it has neither"));
    }
}
