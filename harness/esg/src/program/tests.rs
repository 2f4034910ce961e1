use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn ids(program: &Program) -> Vec<&str> {
    program.steps().map(|step| &*step.id).collect()
}

fn source<'a>(program: &'a Program, id: &str) -> &'a str {
    &program.step(id).unwrap().source
}

fn three() -> Program {
    let mut program = Program::new();
    for id in ["a", "b", "c"] {
        program.push(id, &format!("{id} = 1")).unwrap();
    }
    program
}

#[test]
fn steps_come_go_and_move() {
    let mut program = three();
    program.insert_before("b", "between", "x = 2").unwrap();
    assert_eq!(ids(&program), ["a", "between", "b", "c"]);
    program.move_before("c", "a").unwrap();
    assert_eq!(ids(&program), ["c", "a", "between", "b"]);
    program.move_last("a").unwrap();
    assert_eq!(ids(&program), ["c", "between", "b", "a"]);
    program.remove("between").unwrap();
    assert_eq!(ids(&program), ["c", "b", "a"]);
    assert_eq!(program.position("a"), Some(2));
    assert_eq!(program.position("between"), None);
    assert_eq!(program.len(), 3);
}

#[test]
fn versions_form_a_tree_and_none_is_lost() {
    let mut program = three();
    let first = program.step("a").unwrap().version;
    let second = program.replace("a", "a = 2").unwrap();
    assert_eq!(program.rollback(first).unwrap(), first);
    assert_eq!(source(&program, "a"), "a = 1");
    let third = program.replace("a", "a = 3").unwrap();
    assert_eq!(program.version(second).unwrap().parent, Some(first));
    assert_eq!(program.version(third).unwrap().parent, Some(first));
    assert_eq!(&*program.version(second).unwrap().source, "a = 2");
    assert_eq!(third.to_string(), "v4");
    assert_eq!(program.versions().len(), 5);
}

#[test]
fn a_removed_step_comes_back_to_its_place() {
    let mut program = three();
    let version = program.step("b").unwrap().version;
    program.remove("b").unwrap();
    program.rollback(version).unwrap();
    assert_eq!(ids(&program), ["a", "b", "c"]);
    program.remove("b").unwrap();
    program.remove("c").unwrap();
    program.rollback(version).unwrap();
    assert_eq!(ids(&program), ["a", "b"]);
    program.remove("b").unwrap();
    let again = program.push("b", "b = 9").unwrap();
    assert_eq!(program.version(again).unwrap().parent, Some(version));
}

#[test]
fn what_changes_nothing_is_not_kept() {
    let mut program = three();
    let mark = program.mark();
    let version = program.step("a").unwrap().version;
    assert_eq!(program.replace("a", "a = 1").unwrap(), version);
    assert_eq!(program.rollback(version).unwrap(), version);
    program.move_before("a", "b").unwrap();
    program.move_last("c").unwrap();
    assert_eq!(program.operations(mark), []);
    program.input("n", json!(1)).unwrap();
    program.input("n", json!(1)).unwrap();
    assert_eq!(program.operations(mark).len(), 1);
    assert_eq!(program.operations(999), []);
}

#[test]
fn inputs_have_versions() {
    let mut program = three();
    let first = program.input("rows", json!([1, 2])).unwrap();
    let second = program.input("rows", json!([3])).unwrap();
    assert_eq!(program.version(second).unwrap().parent, Some(first));
    program.rollback(first).unwrap();
    let inputs: Vec<(&str, &str)> =
        program.inputs().map(|input| (&*input.name, &*input.json)).collect();
    assert_eq!(inputs, [("rows", "[1,2]")]);
    assert_eq!(ids(&program), ["a", "b", "c"]);
    assert_eq!(program.position("a"), Some(0));
    for bad in ["", "1a", "a b", "if", "a.b", " a", "(a)", "ﬁ", "None"] {
        let error = program.input(bad, json!(1)).unwrap_err();
        assert!(matches!(error, ProgramError::BadInput { .. }), "{bad}: {error}");
    }
}

#[test]
fn what_is_refused_says_so_and_changes_nothing() {
    let mut program = three();
    program.push("clean", "x = 1").unwrap();
    let before = program.clone();
    let said = |error: ProgramError| error.to_string();
    assert_eq!(
        said(program.replace("claen", "").unwrap_err()),
        "there is no step `claen` (did you mean `clean`?)"
    );
    assert_eq!(
        said(program.insert_before("zzzzz", "new", "").unwrap_err()),
        "there is no step `zzzzz` (see `Program::steps` for those there are)"
    );
    assert_eq!(
        said(program.push("a", "").unwrap_err()),
        "step `a` already exists (replace it, or use another id)"
    );
    for bad in ["", "a\nb", &"x".repeat(201)] {
        let error = program.push(bad, "").unwrap_err();
        assert!(matches!(error, ProgramError::BadId { .. }), "{error}");
    }
    assert!(program.rollback(VersionId(99)).is_err());
    assert!(program.artifact("report", [Part::step("claen")]).is_err());
    assert!(program.artifact("report", []).is_err());
    assert_eq!(program, before);
}

#[test]
fn a_version_knows_where_it_comes_from() {
    let mut program = three();
    let first = program.step("a").unwrap().version;
    let patch = Provenance::new(ProvenanceKind::Patched).agent("fixer").call("c-3").parent(first);
    let change = Operation::from(Change::replaced("a", "a = 2")).signed(patch.clone());
    let version = program.apply(change.clone()).unwrap().unwrap();
    let made = program.version(version).unwrap();
    assert_eq!((&made.provenance, made.parent), (&patch, Some(first)));
    assert_eq!(
        serde_json::to_value(&program.operations(3)[0]).unwrap(),
        json!({
            "change": {"replaced": {"step": "a", "source": "a = 2"}},
            "provenance": {"kind": "patched", "agent": "fixer", "call": "c-3", "parent": first},
        })
    );
    assert_eq!(
        serde_json::to_value(&program.operations(0)[0]).unwrap(),
        json!({"change": {"added": {"step": "a", "source": "a = 1"}}}),
    );
}

#[test]
fn a_change_for_a_former_version_is_refused() {
    let mut program = three();
    program.input("k", json!(1)).unwrap();
    let [a, k] = [0, 3].map(|at| program.versions()[at].id);
    let current = program.replace("a", "a = 2").unwrap();
    program.input("k", json!(2)).unwrap();
    let before = program.clone();
    let id = |id: &str| -> Arc<str> { id.into() };
    for (change, parent) in [
        (Change::replaced("a", "a = 3"), a),
        (Change::Removed { step: id("a") }, a),
        (Change::Moved { step: id("a"), before: None }, a),
        (Change::RolledBack { version: a }, a),
        (Change::Input { name: id("k"), value: json!(3) }, k),
        (Change::InputJson { name: id("k"), json: id("3") }, k),
        (Change::RolledBack { version: k }, k),
    ] {
        let sign = Provenance::default().parent(parent);
        let refused = program.apply(Operation::from(change.clone()).signed(sign)).unwrap_err();
        assert!(
            matches!(&refused, ProgramError::Outdated { parent: was, .. } if *was == parent),
            "{change:?}: {refused}"
        );
    }
    assert_eq!(program, before);
    let sign = Provenance::default().parent(current);
    program.apply(Operation::from(Change::replaced("a", "a = 3")).signed(sign)).unwrap();
}

/// A random change. Few names make conflicts likely.
fn some_operation() -> impl Strategy<Value = (u8, usize, usize)> {
    (0u8..8, 0usize..6, 0usize..6)
}

fn perform(program: &mut Program, (kind, left, right): (u8, usize, usize)) {
    let id = |at: usize| format!("step{at}");
    // Most are refused at some point, which must have no effect.
    let _ = match kind {
        0 => program.push(&id(left), &format!("a = {right}")).map(|_| ()),
        1 => program.insert_before(&id(right), &id(left), "b = 1").map(|_| ()),
        2 => program.replace(&id(left), &format!("a = {right}  # two")).map(|_| ()),
        3 => program.remove(&id(left)),
        4 => program.move_before(&id(left), &id(right)),
        5 => program.rollback(VersionId((left * 6 + right) as u32)).map(|_| ()),
        6 => program.input(&format!("in{left}"), json!(right)).map(|_| ()),
        _ => program.artifact(&id(left), [Part::step(&id(right)), Part::symbol("a")]),
    };
}

proptest! {
    #[test]
    fn a_program_is_the_sum_of_its_operations(done in prop::collection::vec(some_operation(), 0..60)) {
        let mut program = Program::new();
        for operation in done {
            perform(&mut program, operation);
        }
        let text = serde_json::to_string(program.operations(0)).unwrap();
        let operations: Vec<Operation> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(Program::fold(operations).unwrap(), program);
    }
}
