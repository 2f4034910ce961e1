//! What `esg plan` prints for a program that has not run.
#![allow(clippy::unwrap_used)]

use std::process::Command;

const SCRIPT: &str = "\
# %% load
rows = [3, 0]
# %% rule
limit = 1
def kept(row):
    return row > limit
# %% report
print([row for row in rows if kept(row)])
";

fn plan(source: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("program.py");
    std::fs::write(&file, source).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_esg")).arg("plan").arg(&file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_steps_then_the_edges_then_a_drawing() {
    let expected = "\
steps:
   1  load
   2  rule
   3  report

edges:
  load -> report: rows (flow)
  rule -> report: kept (flow)
  rule -> report: limit (late-bound)

drawing (Mermaid):
flowchart TD
    s0[\"load\"]
    s1[\"rule\"]
    s2[\"report\"]
    s0 -->|\"rows\"| s2
    s1 -->|\"kept and limit\"| s2
";
    assert_eq!(plan(SCRIPT), expected);
}

#[test]
fn a_step_with_unsure_edges_has_a_remark() {
    let text = plan("# %% all\nexec(code)\n# %% broken\nx = = 1\n# %% alone\n");
    assert!(text.contains("   1  all (may use any name)\n"), "{text}");
    assert!(text.contains("   2  broken (line 1: "), "{text}");
}
