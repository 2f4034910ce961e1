//! Lines from the terminal, and answers to the questions of tools.

use std::io::{self, BufRead as _, Write as _};

use examples::shown;
use harness::approval::{Approval, Arguments, Scope};
use harness::{Answers, Interrupt};
use serde_json::Value;

/// Prints lines.
pub(super) fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// A line of the user. `None` at the end of the input.
pub(super) fn line(prompt: &str) -> io::Result<Option<String>> {
    write!(io::stdout(), "{prompt}")?;
    io::stdout().flush()?;
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned())),
    }
}

/// Asks about each call. `None` at the end of the input: the questions stay open.
pub(super) fn answers(asked: &[Interrupt]) -> io::Result<Option<Answers>> {
    let mut all = Answers::none();
    for asked in asked {
        let Some(approval) = answer(asked)? else { return Ok(None) };
        // An approval always encodes.
        let value = serde_json::to_value(approval).unwrap_or_default();
        all = all.and(Answers::json(asked.id.clone(), value).by("the terminal"));
    }
    Ok(Some(all))
}

fn answer(asked: &Interrupt) -> io::Result<Option<Approval>> {
    let (tool, arguments) = (&asked.question["tool"], &asked.question["arguments"]);
    say(&format!("call {} with {}?", shown(&tool.to_string()), shown(&arguments.to_string())))?;
    loop {
        let prompt = "[y]es, [a]lways with these arguments, [n]o, [e]dit JSON, [s]ay TEXT: ";
        let Some(said) = line(prompt)? else { return Ok(None) };
        if let Some(approval) = read(&said, arguments) {
            return Ok(Some(approval));
        }
        say("(nothing was approved)")?;
    }
}

/// What a line means. An empty one means nothing.
fn read(said: &str, arguments: &Value) -> Option<Approval> {
    let (word, rest) = said.trim().split_once(' ').unwrap_or((said.trim(), ""));
    match (word, rest.trim()) {
        ("y" | "yes", "") => Some(Approval::approve()),
        ("a" | "always", "") => {
            Some(Approval::approve().remember(Scope::Session, Arguments::exactly(arguments)))
        }
        ("n" | "no", "") => Some(Approval::reject()),
        ("n" | "no", why) => Some(Approval::reject_because(why)),
        ("e" | "edit", json) => {
            let edited: Value = serde_json::from_str(json).ok()?;
            edited.is_object().then(|| Approval::approve().edited(edited))
        }
        ("s" | "say", "") => None,
        ("s" | "say", text) => Some(Approval::steer(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_empty_line_approves_nothing() {
        let arguments = json!({"text": "a"});
        for nothing in ["", "  ", "ok", "yes please", "e", "edit {", "e []", "s", "Y"] {
            assert_eq!(read(nothing, &arguments), None, "{nothing:?}");
        }
        assert_eq!(read(" y ", &arguments), Some(Approval::approve()));
        assert_eq!(read("no, why", &arguments), None);
        assert_eq!(read("n not now", &arguments), Some(Approval::reject_because("not now")));
    }
}
