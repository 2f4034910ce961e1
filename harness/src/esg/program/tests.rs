use super::*;

fn ids(program: &Program) -> Vec<&str> {
    program.steps().map(|step| &*step.id).collect()
}

fn source<'a>(program: &'a Program, id: &str) -> &'a str {
    &program.step(id).unwrap().source
}

#[test]
fn steps_come_go_and_move() {
    let mut program = Program::new();
    for id in ["a", "b", "c"] {
        program.push(id, &format!("{id} = 1")).unwrap();
    }
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
