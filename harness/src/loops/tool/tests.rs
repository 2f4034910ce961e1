use harness::llm::{ToolCall, ToolOutcome, ToolSet, Transcript, Turn, tool, user};
use serde_json::{Value, json};

use super::text::{Reading, instructions, read, rendered};

fn calls(text: &str) -> Vec<(String, Value)> {
    match read(text) {
        Reading::Calls { calls, .. } => calls
            .into_iter()
            .map(|(name, arguments)| {
                (name.to_string(), serde_json::from_str(&arguments).unwrap_or(arguments.into()))
            })
            .collect(),
        other => panic!("{text:?}: {other:?}"),
    }
}

fn malformed(text: &str) {
    assert!(matches!(read(text), Reading::Malformed(_)), "{text:?}: {:?}", read(text));
}

fn answer(text: &str) {
    assert_eq!(read(text), Reading::Answer, "{text:?}");
}

#[test]
fn a_call_is_found_in_words_and_fences() {
    let plain = r#"{"tool": "ls", "arguments": {"path": "/a"}}"#;
    let expected = vec![("ls".to_owned(), json!({"path": "/a"}))];
    for text in [
        plain.to_owned(),
        format!("  \n{plain}\n\n"),
        format!("```json\n{plain}\n```"),
        format!("I will look.\n```\n{plain}\n```\nDone."),
        format!("Action: {plain}"),
        format!("Here is the call: {plain} and so on {{ }}"),
        format!("{{placeholder}} [1] {plain}"),
        format!("{plain}\n{{\"tool\": \"rm\", \"arguments\": {{}}}}"),
        plain.replace("arguments", "args"),
        plain.replace("arguments", "parameters"),
        plain.replace("tool", "action"),
        plain.replace("tool", "name"),
    ] {
        assert_eq!(calls(&text), expected, "{text}");
    }
    let Reading::Calls { before, .. } = read(&format!("I will look.\n```json\n{plain}\n```"))
    else {
        panic!("it is a call");
    };
    assert_eq!(before, "I will look.");
}

#[test]
fn several_calls_are_one_object_or_a_list() {
    let expected = vec![("a".to_owned(), json!({"n": 1})), ("b".to_owned(), json!({}))];
    let list = r#"[{"tool": "a", "arguments": {"n": 1}}, {"tool": "b"}]"#;
    for text in
        [list.to_owned(), format!("{{\"calls\": {list}}}"), format!("ok\n{{\"actions\": {list}}}")]
    {
        assert_eq!(calls(&text), expected, "{text}");
    }
    for text in [
        r#"{"calls": ["ls"]}"#,
        r#"{"calls": "ls"}"#,
        r#"{"calls": []}"#,
        r#"{"actions": [{"x": 1}]}"#,
    ] {
        malformed(text);
    }
}

#[test]
fn strings_hold_what_models_write_into_them() {
    let text = "{\"tool\": \"say\", \"thought\": \"one\ntwo\ttabs\", \"arguments\": {\"text\": \"a } \\\" { [\n\u{1}é😀\"}}";
    assert_eq!(calls(text), [("say".to_owned(), json!({"text": "a } \" { [\n\u{1}é😀"}))]);
    // The arguments as text that is JSON.
    let text = r#"{"name": "ls", "arguments": "{\"path\": \"/\"}"}"#;
    assert_eq!(calls(text), [("ls".to_owned(), json!({"path": "/"}))]);
    // Arguments that are no object go to the ruling, which refuses them.
    assert_eq!(calls(r#"{"tool": "ls", "arguments": [1]}"#), [("ls".to_owned(), json!([1]))]);
}

#[test]
fn a_nested_object_is_never_the_call() {
    for text in [
        // Cut short.
        r#"{"tool": "post", "arguments": {"tool": "rm", "arguments": {}}"#,
        "{\"tool\": \"post\", \"arguments\":\n{\"tool\": \"rm\", \"arguments\": {}}",
        "{\"calls\": [\n{\"tool\": \"rm\", \"arguments\": {}},\n{\"tool\": \"rm\"}",
        // Quotes that end a string too early.
        r#"{"tool": "x", "thought": "he said "no" to me", "arguments": {"tool": "rm"}}"#,
        r#"{"thought": "a "} b", "arguments": {"tool": "rm", "arguments": {}}}"#,
        // Single quotes, a comma too many, a word that is no JSON.
        r#"{'tool': 'x', 'arguments': {"tool": "rm"}}"#,
        r#"{"tool": "x", "arguments": {"tool": "rm"},}"#,
        r#"{"tool": "x", "arguments": {"action": "rm"}, "sure": True}"#,
        r#"{"tool": "x", "arguments": {"tool": "rm"]}"#,
    ] {
        match read(text) {
            Reading::Malformed(_) | Reading::Answer => {}
            Reading::Calls { calls, .. } => panic!("{text}: {calls:?}"),
        }
    }
    let deep = format!("{}{}", "{\"tool\":".repeat(100_000), "}".repeat(100_000));
    malformed(&deep);
    malformed(&"[{\"tool\": ".repeat(5_000));
}

#[test]
fn a_whole_call_after_a_broken_one_is_taken_at_the_start_of_a_line() {
    let text = "{\"thought\": \"I will\n{\"tool\": \"ls\", \"arguments\": {}}";
    assert_eq!(calls(text), [("ls".to_owned(), json!({}))]);
}

#[test]
fn other_text_is_an_answer() {
    for text in [
        "",
        "  \n",
        "It rains.",
        "[1, 2, 3]",
        "The set {a, b} is [x].",
        r#"{"name": "Ada", "born": 1815}"#,
        r#"{"rows": [{"id": 1}]}"#,
        "an open { brace",
        "fn main() { println!(\"{}\", 1); }",
        "😀 { é",
    ] {
        answer(text);
    }
    malformed(r#"{"tool": "ls", "argum"#);
    malformed("```json\n{\"tool\": \"ls\",\n```");
}

#[test]
fn a_conversation_is_rendered_without_calls() {
    let one = ToolCall::new("c1", "ls", r#"{"path": "/"}"#);
    let mut talk = Transcript::from_iter([
        user("look"),
        Turn::new(["Let me see.".into(), one.clone().into()]).into(),
    ]);
    talk.record(&one.id, ToolOutcome::ok("bin etc")).unwrap();
    talk.push(Turn::from("There are two.").into());
    let text = serde_json::to_value(rendered(&talk)).unwrap();
    assert_eq!(
        text,
        json!([
            {"user": [{"text": "look"}]},
            {"assistant": {"blocks": [
                {"text": "Let me see."},
                {"text": "{\"arguments\":{\"path\":\"/\"},\"tool\":\"ls\"}"},
            ]}},
            {"user": [{"text": "ok of `ls`:"}, {"text": "bin etc"}]},
            {"assistant": {"blocks": [{"text": "There are two."}]}},
        ])
    );
}

#[test]
fn the_model_is_sent_descriptions_and_schemas() {
    let ls = tool("ls", "Lists files", async |_: Value| Ok("bin"));
    let tools = ToolSet::builder().with(ls).build().unwrap();
    let text = instructions(Some("Be brief."), &tools);
    assert!(text.starts_with("Be brief.\n\nYou can call tools."), "{text}");
    assert!(
        text.contains("- ls: Lists files\n  {\"") && text.contains("\"type\":\"object\""),
        "{text}"
    );
}
