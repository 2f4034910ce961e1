use proptest::prelude::*;

use super::*;

fn steps(text: &str) -> Vec<(String, String)> {
    let program = Program::from_script(text).unwrap();
    program.steps().map(|step| (step.id.to_string(), step.source.to_string())).collect()
}

fn owned<const N: usize>(steps: [(&str, &str); N]) -> Vec<(String, String)> {
    steps.map(|(id, source)| (id.to_owned(), source.to_owned())).into()
}

#[test]
fn cells_become_steps() {
    let text = "#!/usr/bin/env python\n\nimport os\n\n# %% load rows\nrows = [1]\n\n\n# %%\n# nothing\n\
                # %% [markdown]\n# Words.\n# %%\nprint(rows)\n#%% last tags=[\"a b\"]\nx = 1\n";
    assert_eq!(
        steps(text),
        owned([
            ("s0", "#!/usr/bin/env python\n\nimport os"),
            ("load rows", "rows = [1]"),
            ("s1", "print(rows)"),
            ("last", "x = 1"),
        ])
    );
}

#[test]
fn what_a_marker_says() {
    for (line, name, code) in [
        ("# %%", None, true),
        ("# %% a b", Some("a b"), true),
        ("# %% a [b]", Some("a [b]"), true),
        ("# %% notes [markdown]", Some("notes"), false),
        ("# %% [raw] x=1", None, false),
        ("# %% {\"tags\": [\"a\"]}", None, true),
        ("# %%% inner", Some("inner"), true),
        ("# %% a == b", Some("a == b"), true),
    ] {
        let name = name.map(str::to_owned);
        assert_eq!(marker(line), Some(Marker { name, code }), "{line}");
    }
    for line in ["# %%time", " # %% a", "x = 1 # %%", "# % a"] {
        assert_eq!(marker(line), None, "{line}");
    }
}

#[test]
fn unnamed_cells_leave_given_names_alone() {
    let text = "# %%\na = 1\n# %% s1\nb = 1\n# %%\nc = 1\n";
    assert_eq!(steps(text), owned([("s0", "a = 1"), ("s1", "b = 1"), ("s2", "c = 1")]));
}

#[test]
fn a_marker_inside_a_string_is_text() {
    let text = "# %% a\nx = '''\n# %% b\n'''\n# %% c\ny = 1\n";
    assert_eq!(steps(text), owned([("a", "x = '''\n# %% b\n'''"), ("c", "y = 1")]));
    // The ends of strings are unknown here, so a cell that does not parse stays one cell.
    let text = "# %% a\nx = '''\n# %% b\ny = 1\n";
    assert_eq!(steps(text), owned([("a", "x = '''"), ("b", "y = 1")]));
}

#[test]
fn two_cells_of_one_name_are_reported_by_their_lines() {
    let error = Program::from_script("# %% a\nx = 1\n# %% a\ny = 1\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cells on two lines, 1 and 3, are both called `a` (rename one)"
    );
}

#[test]
fn what_would_be_read_back_as_something_else_is_not_written() {
    for (id, source) in [("a [markdown]", "x = 1"), ("a=1", "x = 1"), ("a", "x = '''\n# %% b\n'''")]
    {
        let mut program = Program::new();
        program.push(id, source).unwrap();
        let error = program.to_script().unwrap_err();
        assert!(matches!(error, ProgramError::NotACell { .. }), "{error}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        given in prop::collection::btree_map("[a-z=\\[\\]{ ]{1,8}", "[a-z= #%\n']{0,20}", 0..5)
    ) {
        let mut program = Program::new();
        for (id, source) in &given {
            program.push(id, source).unwrap();
        }
        if let Ok(script) = program.to_script() {
            let expected: Vec<(String, String)> =
                given.iter().map(|(id, source)| (id.clone(), trimmed(source).to_owned())).collect();
            prop_assert_eq!(steps(&script), expected, "{}", script);
        }
    }

    #[test]
    fn any_text_is_a_script_or_an_error(text in "(# %%|[a-z\\[\\]={}'\" \n\r\u{e9}%]){0,40}") {
        let _ = Program::from_script(&text);
    }
}
