//! How two requests differ.

use serde_json::Value;

/// The recorded request that is most like another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nearest {
    /// Its line in the file.
    pub(super) line: usize,
    /// The first difference.
    pub(super) difference: String,
}

pub(super) fn nearest<'a>(
    request: &Value,
    recorded: impl Iterator<Item = (usize, &'a Value)>,
) -> Option<Nearest> {
    let compared = recorded.map(|(line, recorded)| {
        let mut differences = Vec::new();
        compare(request, recorded, "", &mut differences);
        (line, differences)
    });
    let (line, differences) = compared.min_by_key(|(_, differences)| differences.len())?;
    Some(Nearest { line, difference: differences.into_iter().next()? })
}

/// Names the places where they differ, and no values: errors are logged.
fn compare(request: &Value, recorded: &Value, at: &str, differences: &mut Vec<String>) {
    let below = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    let only = |there: bool, name: &str| match there {
        true => format!("`{}` is not in it", below(name)),
        false => format!("`{}` is only in it", below(name)),
    };
    match (request, recorded) {
        (Value::Object(one), Value::Object(two)) => {
            for (name, value) in one {
                match two.get(name) {
                    Some(other) => compare(value, other, &below(name), differences),
                    None => differences.push(only(true, name)),
                }
            }
            let missing = two.keys().filter(|name| !one.contains_key(*name));
            differences.extend(missing.map(|name| only(false, name)));
        }
        (Value::Array(one), Value::Array(two)) => {
            for (index, (value, other)) in one.iter().zip(two).enumerate() {
                compare(value, other, &below(&index.to_string()), differences);
            }
            let same = one.len().min(two.len());
            let rest = same..one.len().max(two.len());
            let there = one.len() > two.len();
            differences.extend(rest.map(|index| only(there, &index.to_string())));
        }
        _ if request == recorded => {}
        _ => differences.push(format!("`{at}` differs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_place_of_the_first_difference_from_the_nearest_is_named() {
        let recorded = [
            json!({"request": {"system": "other", "transcript": [{"user": "x"}]}}),
            json!({"request": {"system": "brief", "transcript": [{"user": "hi"}], "a/b": 1}}),
        ];
        let of = |request: Value| nearest(&request, (2..).zip(&recorded)).unwrap();
        let differs = |line, text: &str| Nearest { line, difference: text.to_owned() };
        let talk = json!([{"user": "ho"}]);
        assert_eq!(
            of(json!({"request": {"system": "brief", "transcript": talk, "a/b": 1}})),
            differs(3, "`/request/transcript/0/user` differs")
        );
        let talk = json!([{"user": "hi"}]);
        assert_eq!(
            of(json!({"request": {"system": "brief", "transcript": talk}})),
            differs(3, "`/request/a~1b` is only in it")
        );
        let talk = json!([{"user": "x"}, {"user": "y"}]);
        assert_eq!(
            of(json!({"request": {"system": "other", "transcript": talk}})),
            differs(2, "`/request/transcript/1` is not in it")
        );
        assert_eq!(nearest(&json!({}), std::iter::empty()), None);
    }
}
