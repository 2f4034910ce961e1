//! Calls with the wrong arguments.

use super::{Found, Rule, Scene};
use crate::diagnosis::nearest;

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let Some(callee) = &scene.fault.facts.callee else {
        return;
    };
    let message = &scene.fault.message;
    if message.contains("unexpected keyword argument")
        || message.contains("invalid keyword argument")
    {
        misspelt(scene, found, &callee.name, &callee.parameters);
    } else if message.contains("() missing ") {
        missing(scene, found, &callee.name, &callee.parameters);
    } else if callee.method
        && (message.contains(" positional argument")
            || message.contains(" got multiple values for "))
    {
        without_self(scene, found, callee.line.unwrap_or(0) as usize, &callee.name);
    }
}

/// The brackets of each call of `name` in the failing statement.
fn calls<'a>(scene: &'a Scene<'_>, name: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let opens = scene.named(name).map(|index| index + 1);
    let opens =
        opens.filter(|open| scene.lexed.is(*open, "(") && !scene.lexed.tokens[*open].nested);
    opens.filter_map(|open| {
        let depth = scene.lexed.tokens[open].depth;
        let close = (open + 1..scene.lexed.tokens.len())
            .find(|i| scene.lexed.is(*i, ")") && scene.lexed.tokens[*i].depth == depth)?;
        Some((open, close))
    })
}

fn misspelt(scene: &Scene<'_>, found: &mut Found<'_>, callee: &str, parameters: &[String]) {
    let Some(name) = scene.fault.facts.name.as_deref() else {
        return;
    };
    let places = || scene.named(name).filter(|index| scene.is_argument(*index));
    let mut calls = calls(scene, callee).map(|(open, close)| open..close).peekable();
    // The call that has the argument: another one may have the right one. The callee may be called by
    // another name.
    let anywhere = calls.peek().is_none().then_some(0..usize::MAX);
    let found_in = calls.chain(anywhere).find_map(|inside| {
        let place = places().find(|index| inside.contains(index))?;
        Some((place, inside))
    });
    let Some((place, inside)) = found_in else { return };
    let given: Vec<&str> = scene
        .statement
        .iter()
        .filter(|index| scene.is_argument(**index) && inside.contains(*index))
        .map(|index| scene.text(*index))
        .collect();
    let free = parameters.iter().map(String::as_str).filter(|name| !given.contains(name));
    for near in nearest(name, free) {
        let edits = vec![(scene.span(place), near.to_owned())];
        let why = format!("`{callee}` takes no argument `{name}`; it takes `{near}`");
        found.add(Rule::MisspeltArgument, why, edits);
    }
}

/// Adds one argument left out, when a variable in scope has its name.
fn missing(scene: &Scene<'_>, found: &mut Found<'_>, callee: &str, parameters: &[String]) {
    let facts = &scene.fault.facts;
    let Some(name) = facts.name.as_deref() else {
        return;
    };
    let one = scene.fault.message.contains("missing 1 ");
    let Some((open, close)) = calls(scene, callee).next() else {
        return;
    };
    if !one || !parameters.iter().any(|parameter| parameter == name) {
        return;
    }
    let own = |scope: &Vec<String>| scope.iter().any(|known| known == name);
    let values = match own(&facts.locals) || own(&facts.globals) {
        true => vec![name],
        false => {
            let scopes = facts.locals.iter().chain(&facts.globals);
            nearest(name, scopes.map(String::as_str).filter(|known| *known != callee))
        }
    };
    for value in values {
        let last = close - 1;
        let at = scene.span(last).end;
        let lead = match scene.text(last) {
            _ if last == open => "",
            "," => " ",
            _ => ", ",
        };
        let why = format!("`{callee}` needs an argument `{name}`; `{value}` is at hand");
        found.add(Rule::MissingArgument, why, vec![(at..at, format!("{lead}{name}={value}"))]);
    }
}

/// A method defined without the object it is called on.
fn without_self(scene: &Scene<'_>, found: &mut Found<'_>, line: usize, callee: &str) {
    // With decorators the line is that of the first of them.
    let from = scene.lines.start(line);
    let open = (0..scene.lexed.tokens.len()).find(|index| {
        scene.span(*index).start >= from
            && scene.lexed.is(*index, "(")
            && *index >= 2
            && scene.lexed.is(index - 1, callee)
            && scene.lexed.is(index - 2, "def")
    });
    let Some(open) = open.filter(|_| line > 0) else {
        return;
    };
    if ["self", "cls"].contains(&scene.text(open + 1)) {
        return;
    }
    let at = scene.span(open).end;
    let lead = if scene.lexed.is(open + 1, ")") { "self" } else { "self, " };
    let why = format!("`{callee}` is called on an object but does not take it");
    found.add(Rule::MissingSelf, why, vec![(at..at, lead.to_owned())]);
}
