//! The functions that a step defines, as far as they can be stored.
use std::collections::BTreeMap;
use std::sync::Arc;

use super::values::Function;
use crate::scan::Scan;

/// The functions of a step that hold nothing but their code.
pub(super) fn functions(step: &str, source: &str, scan: &Scan) -> BTreeMap<Arc<str>, Function> {
    let mut found = BTreeMap::new();
    for definition in &scan.definitions {
        let text = source.get(definition.range.clone()).unwrap_or_default();
        let name: Arc<str> = definition.name.as_str().into();
        // A decorator may return anything.
        let head = text.strip_prefix("def ").and_then(|text| text.strip_prefix(&*name));
        let holds_nothing = head.is_some_and(has_no_values);
        // Defined twice, or bound otherwise too, it is not known which one is left.
        let is_once = scan.definitions.iter().filter(|one| one.name == definition.name).count()
            == 1
            && scan.sure_writes.contains(&name)
            && !scan.rebinds.contains(&name);
        if holds_nothing && is_once {
            let lines = definition.lines.start().saturating_sub(1);
            let text = format!("{}{text}", "\n".repeat(lines)).into();
            let loads = scan.summaries.get(&name).into_iter().flat_map(|names| names.iter());
            let function = Function {
                step: step.into(),
                text,
                syntax: definition.syntax,
                loads: loads.map(Arc::from).collect(),
            };
            found.insert(name, function);
        }
    }
    found
}

/// Whether a list of parameters surely gives none a value, which is made once and may change.
fn has_no_values(text: &str) -> bool {
    let mut open = 0_usize;
    for one in text.chars() {
        match one {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => {
                open = open.saturating_sub(1);
                if open == 0 {
                    return true;
                }
            }
            '=' | '"' | '\'' | '#' => return false,
            _ => {}
        }
    }
    false
}
