use super::*;
use crate::program::Program;

fn program() -> Program {
    let script = "# %% load\nrows = [limit]\ndef total(): return sum(rows) + rate\n\
                  # %% rate\nrate = 2\n# %% report\nprint(total())\n";
    let mut program = Program::from_script(script).unwrap();
    program.input("limit", 3.into()).unwrap();
    program
}

#[test]
fn edges_are_drawn_for_mermaid() {
    let expected = "\
flowchart TD
    s0([\"input limit\"])
    s1[\"load\"]
    s2[\"rate\"]
    s3[\"report\"]
    s0 -->|\"limit\"| s1
    s1 -->|\"total and rows\"| s3
    s2 -.->|\"rate\"| s3
";
    assert_eq!(program().edges().to_mermaid(), expected);
}

#[test]
fn edges_are_drawn_for_graphviz() {
    let expected = "\
digraph {
    node [shape=box]
    s0 [label=\"input limit\", shape=oval]
    s1 [label=\"load\"]
    s2 [label=\"rate\"]
    s3 [label=\"report\"]
    s0 -> s1 [label=\"limit\"]
    s1 -> s3 [label=\"total and rows\"]
    s2 -> s3 [label=\"rate\", style=dotted]
}
";
    assert_eq!(program().edges().to_dot(), expected);
}

#[test]
fn no_id_breaks_out_of_its_label() {
    let mut program = Program::new();
    program.push("a\"]|<b>\\", "x = 1").unwrap();
    let edges = program.edges();
    assert!(edges.to_mermaid().contains("s0[\"a#34;]#124;#60;b#62;#92;\"]\n"));
    assert!(edges.to_dot().contains("s0 [label=\"a\\\"]|<b>\\\\\"]\n"));
}

#[test]
fn an_arrow_names_a_few_channels_and_counts_the_others() {
    let channels = |many: usize| -> Vec<Entity> {
        (0..many).map(|at| Entity::name(&format!("n{at}"))).collect()
    };
    assert_eq!(named(&channels(5)), "n0, n1, n2, n3 and n4");
    assert_eq!(named(&channels(9)), "n0, n1, n2, n3 and 5 more");
}
