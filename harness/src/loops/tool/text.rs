//! Tools for a model that knows only text: its calls are JSON objects in its replies.
//!
//! A call is an object at the top of a reply, with words, code fences or nothing around it. An object
//! inside of another is never one: if the outer object cannot be read, the model is asked again.

use harness::llm::{
    Block, Content, Entry, Message, Part, ToolName, ToolOutcome, ToolSet, Transcript, Turn, user,
};
use serde_json::{Map, Value, json};

/// How many places of a reply are tried.
const PLACES: usize = 64;

/// What a reply is.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// Text without calls.
    Answer,
    /// Calls: the name of a tool and its arguments as text.
    Calls {
        /// The words before them.
        before: String,
        calls: Vec<(ToolName, String)>,
    },
    /// It is meant to be a call, and cannot be read.
    Malformed(String),
}

/// Reads the first object of a reply that is a call, or several.
pub(super) fn read(text: &str) -> Reading {
    let mut at = 0;
    let mut broken = None;
    for _ in 0..PLACES {
        let Some(start) = next_start(text, at, broken.is_some()) else { break };
        match closed(text, start) {
            Some((end, json)) => {
                match serde_json::from_str::<Value>(&json) {
                    Ok(value) => match calls_of(&value) {
                        Some(Ok(calls)) => {
                            return Reading::Calls { before: words(&text[..start]), calls };
                        }
                        Some(Err(why)) => return Reading::Malformed(why),
                        None => {}
                    },
                    Err(error) if is_like_a_call(&json) => {
                        broken.get_or_insert_with(|| error.to_string());
                    }
                    Err(_) => {}
                }
                at = end;
            }
            None => {
                if is_like_a_call(&text[start..]) {
                    broken.get_or_insert_with(|| "a JSON value is not closed".to_owned());
                }
                // Its inside is skipped as far as it can be known: up to the next line.
                let Some(line) = text[start..].find('\n') else { break };
                at = start + line;
                if broken.is_none() {
                    continue;
                }
            }
        }
    }
    broken.map_or(Reading::Answer, Reading::Malformed)
}

/// Where the next object or list starts that is not inside of another. After one that could not be read,
/// only one at the start of a line.
fn next_start(text: &str, from: usize, after_broken: bool) -> Option<usize> {
    let starts = text[from..].match_indices(['{', '[']).map(|(at, _)| from + at);
    let mut starts = starts.filter(|&start| {
        let before = &text[..start];
        let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
        let mut last = before.trim_end().chars().rev();
        let (last, one_before) = (last.next(), last.find(|c| !c.is_whitespace()));
        // `"arguments": {` is the field of an object that begins before.
        let field = last == Some(':') && matches!(one_before, Some('"' | '\''));
        let inside = matches!(last, Some(':' | ',' | '[' | '{'));
        !field && (!after_broken || line.trim().is_empty() && !inside)
    });
    starts.next()
}

/// The end of the value that starts at `start`, and its text with the control characters of its strings
/// escaped. `None` if it is not closed.
fn closed(text: &str, start: usize) -> Option<(usize, String)> {
    let mut json = String::new();
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    for (at, c) in text[start..].char_indices() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            match c {
                '\n' => json.push_str("\\n"),
                '\r' => json.push_str("\\r"),
                '\t' => json.push_str("\\t"),
                c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => json.push(c),
            }
            continue;
        }
        json.push(c);
        match c {
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                if open.pop() != Some(c) {
                    return None;
                }
                if open.is_empty() {
                    return Some((start + at + c.len_utf8(), json));
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether text that cannot be read may be meant as a call.
fn is_like_a_call(text: &str) -> bool {
    ["\"tool\"", "\"calls\"", "\"action\"", "\"actions\"", "'tool'", "'action'"]
        .iter()
        .any(|name| text.contains(name))
}

/// The calls that a value is. `None` if it is none, and an error if it is meant as one.
fn calls_of(value: &Value) -> Option<Result<Vec<(ToolName, String)>, String>> {
    let several = match value {
        Value::Array(several) => several,
        Value::Object(fields) => {
            match ["calls", "actions", "tool_calls"].iter().find_map(|name| fields.get(*name)) {
                None => return call_of(fields).map(|call| Ok(vec![call])),
                Some(Value::Array(several)) if !several.is_empty() => several,
                Some(_) => return Some(Err("`calls` is not a list of calls".to_owned())),
            }
        }
        _ => return None,
    };
    let calls = several.iter().map(|one| one.as_object().and_then(call_of));
    let read: Option<Vec<_>> = calls.collect();
    match (read, value) {
        (Some(calls), _) if !calls.is_empty() => Some(Ok(calls)),
        (_, Value::Object(_)) => {
            Some(Err("an element of `calls` is not an object with `tool`".to_owned()))
        }
        _ => None,
    }
}

fn call_of(fields: &Map<String, Value>) -> Option<(ToolName, String)> {
    let arguments =
        ["arguments", "args", "input", "parameters"].iter().find_map(|name| fields.get(*name));
    let name = match (fields.get("tool").or(fields.get("action")), arguments) {
        (Some(Value::String(name)), _) => name,
        // `name` alone is a field of many objects.
        (None, Some(_)) => fields.get("name")?.as_str()?,
        _ => return None,
    };
    let arguments = match arguments {
        None => "{}".to_owned(),
        Some(Value::String(text)) if serde_json::from_str::<Map<_, _>>(text).is_ok() => {
            text.clone()
        }
        // What is no object is refused by the ruling, with the schema.
        Some(arguments) => arguments.to_string(),
    };
    Some((name.into(), arguments))
}

/// The words before a call, without the fence that opens its code block.
fn words(before: &str) -> String {
    let before = before.trim_end();
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let kept = match before[line..].trim_start().starts_with("```") {
        true => &before[..line],
        false => before,
    };
    kept.trim().to_owned()
}

/// The instructions of the model, with the tools and how to call them.
pub(super) fn instructions(system: Option<&str>, tools: &ToolSet) -> String {
    let mut text = system.map(|system| format!("{system}\n\n")).unwrap_or_default();
    text.push_str(
        "You can call tools. To call one, reply with one JSON object and nothing else:\n\
         {\"tool\": \"NAME\", \"arguments\": {..}}\n\
         To call several at once:\n\
         {\"calls\": [{\"tool\": \"NAME\", \"arguments\": {..}}, ..]}\n\
         The next message has the results. To answer, reply with text in place of JSON.\n\n\
         The tools, each with the JSON schema of its arguments:\n",
    );
    for spec in tools.specs() {
        text.push_str(&format!("- {}: {}\n  {}\n", spec.name, spec.description, spec.input_schema));
    }
    text
}

/// The transcript as text, without calls: a call is the JSON that the model has written, and the results
/// are the message after it.
pub(super) fn rendered(talk: &Transcript) -> Transcript {
    let mut rendered = Transcript::new();
    for entry in talk.entries() {
        match entry {
            Entry::Assistant(turn) if turn.calls().next().is_some() => {
                let (turn, results) = split(turn);
                rendered.push(turn.into());
                rendered.push(user(results));
            }
            Entry::Assistant(turn) => {
                rendered.push(turn.clone().into());
            }
            entry => {
                if let Entry::User(content) = entry {
                    rendered.push(Message::User(content.clone()));
                }
            }
        }
    }
    rendered
}

/// A turn without calls, and the results of its calls.
fn split(turn: &Turn) -> (Turn, Content) {
    let (mut plain, mut calls, mut results) = (turn.clone(), Vec::new(), Vec::new());
    plain.blocks.clear();
    for block in &turn.blocks {
        let Block::Call { call, outcome } = block else {
            plain.blocks.push(block.clone());
            continue;
        };
        let arguments = call.json().unwrap_or_else(|_| call.arguments.clone().into());
        calls.push(json!({"tool": call.name, "arguments": arguments}));
        let outcome = outcome.as_ref().unwrap_or(&ToolOutcome::Skipped);
        results.push(Part::Text(format!("{} of `{}`:", outcome.kind(), call.name)));
        results.extend(outcome.content().iter().cloned());
    }
    let calls = match &calls[..] {
        [one] => one.to_string(),
        several => json!({"calls": several}).to_string(),
    };
    plain.blocks.push(Block::Text(calls));
    (plain, results.into())
}
