//! Numbers joined to text with `+`.

use super::{Found, Rule, Scene};

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let message = &scene.fault.message;
    let joined = message.starts_with("can only concatenate str")
        || (message.starts_with("unsupported operand type(s) for +") && message.contains("'str'"));
    let operands = &scene.fault.facts.operands;
    if !joined || !operands.iter().any(|operand| operand.kind == "str") {
        return;
    }
    let mut edits = Vec::new();
    for operand in operands.iter().filter(|o| matches!(o.kind.as_str(), "int" | "float" | "bool")) {
        let start = scene.lines.byte(operand.line as usize, operand.column as usize);
        let end = scene.lines.byte(operand.end_line as usize, operand.end_column as usize);
        let (Some(start), Some(end)) = (start, end) else {
            continue;
        };
        if start < end {
            edits.push((start..end, format!("str({})", &scene.source[start..end])));
        }
    }
    let why = "a number is joined to text: `str(…)` makes it text".to_owned();
    found.add(Rule::NumberInText, why, edits);
}
