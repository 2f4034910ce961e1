use super::*;

fn texts(source: &str) -> Vec<&str> {
    let lexed = lex(source);
    lexed.tokens.iter().filter(|t| t.kind != Kind::End).map(|t| lexed.text(t)).collect()
}

#[test]
fn names_in_strings_and_comments_are_not_tokens() {
    assert_eq!(
        texts("x = 'x \\' y' # x\nz **= rb\"x\""),
        ["x", "=", "'x \\' y'", "# x", "z", "**=", "rb\"x\""]
    );
    assert_eq!(
        texts("a = \"\"\"x\n'y\"\"\" + 1.5e-3"),
        ["a", "=", "\"\"\"x\n'y\"\"\"", "+", "1.5e-3"]
    );
}

#[test]
fn fields_of_f_strings_are_read() {
    assert_eq!(
        texts("f'{a} {{b}} {c[\"d\"]:>{w}} {e!r}'"),
        ["f'{a} {{b}} {c[\"d\"]:>{w}} {e!r}'", "a", "c", "[", "\"d\"", "]", "w", "e"]
    );
    assert!(lex("f'{a[}'\n").loose.is_empty());
}

#[test]
fn statements_continue_in_brackets() {
    let source = "a = [\n  1,\n]\nb = 1 \\\n  + 2\n";
    let lexed = lex(source);
    assert_eq!(lexed.statements().len(), 2);
    let at = source.find("1,").unwrap();
    assert_eq!(lexed.statement(at..at).len(), 6);
}

#[test]
fn indentation_shows_where_a_bracket_was_meant_to_close() {
    let source = "x = foo(1, [2, 3\ny = 2\n";
    let lexed = lex(source);
    let held_until = source.find('\n').unwrap();
    assert_eq!(
        lexed.loose,
        [Loose::Open { open: 6, held_until }, Loose::Open { open: 3, held_until }]
    );
    assert_eq!(lexed.statements().len(), 2);
}

#[test]
fn crossed_and_loose_brackets_are_found() {
    assert_eq!(lex("f(a[0)").loose, [Loose::Crossed { open: 3, close: 5, closes_outer: true }]);
    assert_eq!(lex("a[0)").loose, [Loose::Crossed { open: 1, close: 3, closes_outer: false }]);
    assert_eq!(lex("f(a))").loose, [Loose::Close { close: 4 }]);
}

#[test]
fn an_open_string_ends_with_its_line() {
    let lexed = lex("print('abc)\nx = 1\n");
    assert_eq!(lexed.open_strings, [2]);
    assert_eq!(lexed.text(&lexed.tokens[2]), "'abc)");
}

#[test]
fn odd_sources_are_read_to_their_end() {
    for source in
        ["", "'", "\\", "f'{", "f'{{", "\u{0}", "é = 'ü", "0x", "\"\"\"", "rf\"", "((((\n)", "f'\\"]
    {
        let lexed = lex(source);
        assert!(lexed.tokens.iter().all(|t| t.span.end <= source.len()), "{source:?}");
    }
}
