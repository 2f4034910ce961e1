use serde_json::json;

use super::*;

fn read(notebook: &Value) -> Result<Vec<(String, String)>, ProgramError> {
    let program = Program::from_notebook(&notebook.to_string())?;
    Ok(program.steps().map(|step| (step.id.to_string(), step.source.to_string())).collect())
}

fn owned<const N: usize>(steps: [(&str, &str); N]) -> Vec<(String, String)> {
    steps.map(|(id, source)| (id.to_owned(), source.to_owned())).into()
}

#[test]
fn code_cells_become_steps() {
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "markdown", "source": "# Words", "metadata": {}},
        {"cell_type": "code", "id": "a1", "source": ["x = 1\n", "y = 2"], "metadata": {"tags": ["t"]}},
        {"cell_type": "code", "id": "a2", "source": "z = x", "metadata": {"name": "third"}},
        {"cell_type": "code", "source": "w = (x\n  % 2)", "metadata": {}, "outputs": []},
        {"cell_type": "code", "id": "a3", "source": "  \n", "metadata": {}},
    ]});
    assert_eq!(
        read(&notebook).unwrap(),
        owned([("a1", "x = 1\ny = 2"), ("third", "z = x"), ("s0", "w = (x\n  % 2)")])
    );
}

#[test]
fn the_older_form_is_read_too() {
    let notebook = json!({"nbformat": 3, "worksheets": [{"cells": [
        {"cell_type": "code", "input": ["x = 1"], "language": "python"},
    ]}]});
    assert_eq!(read(&notebook).unwrap(), owned([("s0", "x = 1")]));
}

#[test]
fn ipython_syntax_is_reported_with_its_position() {
    for (source, line, text) in [
        ("%pip install y", 1, "%pip install y"),
        ("%matplotlib inline\n%time y()", 2, "%time y()"),
        ("if x:\n    %matplotlib inline", 2, "%matplotlib inline"),
        ("x = 1\n!pip install y", 2, "!pip install y"),
        ("%%bash\nls -l", 1, "%%bash"),
        ("if x:\n    %time y()", 2, "%time y()"),
        ("files = !ls", 1, "files = !ls"),
        ("x?", 1, "x?"),
    ] {
        let notebook = json!({"nbformat": 4, "cells": [
            {"cell_type": "code", "source": "a = 1"},
            {"cell_type": "code", "source": source},
        ]});
        let expected = ProgramError::Magic { cell: 2, line, text: text.to_owned() };
        assert_eq!(read(&notebook), Err(expected), "{source}");
    }
}

#[test]
fn a_line_on_how_figures_are_shown_becomes_a_comment() {
    let notebook = json!({"nbformat": 4, "cells": [
        {"cell_type": "code", "source": "%matplotlib inline"},
        {"cell_type": "code", "source": "import numpy\n%matplotlib  notebook\nx = 5 % 2"},
    ]});
    assert_eq!(
        read(&notebook).unwrap(),
        owned([("s0", "import numpy\n# %matplotlib  notebook\nx = 5 % 2")])
    );
}

#[test]
fn an_invalid_notebook_is_refused_with_the_reason() {
    for (text, why) in [
        ("nonsense", "this is not a notebook: expected ident"),
        ("[]", "this is not a notebook: it has no `nbformat`"),
        ("{\"nbformat\": 2}", "this is not a notebook: its `nbformat` is 2"),
        ("{\"nbformat\": 4}", "this is not a notebook: it has no list `cells`"),
        (
            "{\"nbformat\": 4, \"cells\": [{\"cell_type\": \"code\", \"source\": [1]}]}",
            "this is not a notebook: cell 1 has no text",
        ),
    ] {
        let error = Program::from_notebook(text).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
    let twice = json!({"nbformat": 4, "cells": [
        {"cell_type": "code", "id": "a", "source": "x = 1"},
        {"cell_type": "code", "id": "a", "source": "y = 1"},
    ]});
    assert_eq!(
        read(&twice).unwrap_err().to_string(),
        "two cells, 1 and 2, are both called `a` (rename one)"
    );
}
