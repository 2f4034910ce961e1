use super::*;
use crate::diagnosis::{Facts, Frame, Syntax};

/// A fault on a line about a name.
fn named(kind: &str, line: u32, name: &str) -> Fault {
    let frame = Frame { line, ..Frame::default() };
    let facts = Facts { name: Some(name.into()), ..Facts::default() };
    Fault { kind: kind.into(), frames: vec![frame], facts, ..Fault::default() }
}

fn imported(source: &str, line: u32, name: &str) -> String {
    let mut fault = named("NameError", line, name);
    fault.facts.stdlib = vec!["json".into(), "math".into()];
    propose(source, &fault).remove(0).fixed
}

#[test]
fn an_import_goes_where_imports_belong() {
    assert_eq!(
        imported("\"\"\"About.\n\nMore.\"\"\"\n\nmath.pi\n", 5, "math"),
        "\"\"\"About.\n\nMore.\"\"\"\n\nimport math\n\nmath.pi\n"
    );
    assert_eq!(
        imported("'''About.'''\nfrom __future__ import annotations\nmath.pi\n", 3, "math"),
        "'''About.'''\nfrom __future__ import annotations\nimport math\nmath.pi\n"
    );
    assert_eq!(
        imported("#!/usr/bin/python3\n# coding: utf-8\n# pi\nmath.pi\n", 4, "math"),
        "#!/usr/bin/python3\n# coding: utf-8\nimport math\n# pi\nmath.pi\n"
    );
    assert_eq!(
        imported("# All about it.\n\nmath.pi", 3, "math"),
        "# All about it.\n\nimport math\n\nmath.pi"
    );
    assert_eq!(
        imported("import os  # for os\r\nx = 1\r\njson.dumps(x)\r\n", 3, "json"),
        "import os  # for os\r\nimport json\r\nx = 1\r\njson.dumps(x)\r\n"
    );
    assert_eq!(
        imported("from os import (\n    path,\n)\nsqrt(4)\n", 4, "sqrt"),
        "from os import (\n    path,\n)\nfrom math import sqrt\nsqrt(4)\n"
    );
}

#[test]
fn a_name_is_replaced_only_where_it_is_meant() {
    let source = "f(totl=x.totl + totl, y='totl')\ntotl()\n";
    let mut fault = named("NameError", 1, "totl");
    fault.facts.locals = vec!["total".into()];
    let proposal = propose(source, &fault).remove(0);
    assert_eq!(proposal.fixed, "f(totl=x.totl + total, y='totl')\ntotl()\n");
    assert_eq!(proposal.line, 1);
    let edit = LineEdit {
        line: 1,
        old: vec!["f(totl=x.totl + totl, y='totl')".into()],
        new: vec!["f(totl=x.totl + total, y='totl')".into()],
    };
    assert_eq!(proposal.edit, edit);
}

#[test]
fn the_nearest_name_comes_first_and_none_twice() {
    let mut fault = named("NameError", 1, "itms");
    fault.facts.locals = vec!["terms".into(), "items".into(), "item".into(), "items".into()];
    fault.facts.globals = vec!["items".into()];
    let proposals = propose("print(itms)\n", &fault);
    assert_eq!(proposals[0].fixed, "print(items)\n");
    let mut texts: Vec<_> = proposals.iter().map(|p| &p.fixed).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), proposals.len());
}

#[test]
fn only_the_failing_attribute_is_replaced_where_columns_are_known() {
    let source = "a.nmae + b.nmae\n";
    let mut fault = named("AttributeError", 1, "nmae");
    fault.facts.attributes = vec!["name".into()];
    assert_eq!(propose(source, &fault)[0].fixed, "a.name + b.name\n");
    fault.frames[0].end_line = Some(1);
    fault.frames[0].end_column = Some(15);
    assert_eq!(propose(source, &fault)[0].fixed, "a.nmae + b.name\n");
}

#[test]
fn a_key_that_could_end_its_string_is_not_written() {
    let mut fault = named("KeyError", 1, "nmae");
    fault.facts.keys = vec!["na'me".into(), "nam\ne".into()];
    assert_eq!(propose("d['nmae']\n", &fault), []);
}

#[test]
fn text_over_several_lines_is_not_indented() {
    let source = "if 1:\n\tx = \"\"\"\n    a\n\"\"\"\n    y = 1\n\tz = 1\n";
    let syntax = Syntax { line: 5, message: "inconsistent".into(), ..Syntax::default() };
    let facts = Facts { syntax: Some(syntax), ..Facts::default() };
    let fault = Fault { kind: "TabError".into(), facts, ..Fault::default() };
    let proposal = propose(source, &fault).remove(0);
    assert_eq!(proposal.fixed, source.replace("    y", "\ty"));
}

#[test]
fn nothing_breaks_on_faults_that_do_not_fit_the_source() {
    let sources = [
        "",
        "x",
        "é = '",
        "f'{",
        "if\n",
        "(((",
        "\r\r\n",
        "\t:\n)",
        "def f(:\n",
        "f'é{x",
        "é(x.",
        "x \"\"\"\n\n",
        "'x'x'",
        "import",
        "{\n'a' 'b'\n",
    ];
    let messages = [
        "unexpected indent",
        "unindent",
        "expected an indented block",
        "invalid syntax",
        "'(' was never closed",
        "Missing parentheses in call to 'print'",
        "unterminated string literal",
        "f() missing 1 required",
        "f() got an unexpected keyword argument",
        "f() takes 1 positional argument",
    ];
    let kinds = [
        "SyntaxError",
        "IndentationError",
        "TabError",
        "NameError",
        "AttributeError",
        "ImportError",
        "ModuleNotFoundError",
        "KeyError",
        "TypeError",
        "",
    ];
    for source in sources {
        for message in messages {
            for kind in kinds {
                for line in [0, 1, 2, u32::MAX] {
                    let mut fault = named(kind, line, "x");
                    fault.message = message.into();
                    fault.facts.keys = vec!["xx".into(), String::new()];
                    if kind.ends_with("Error") && line != 2 {
                        let message = message.into();
                        let column = u32::MAX;
                        fault.facts.syntax =
                            Some(Syntax { line, column, message, ..Syntax::default() });
                    }
                    for proposal in propose(source, &fault) {
                        let _ = crate::patcher::judge(source, &proposal.fixed, &fault);
                    }
                }
            }
        }
    }
}
