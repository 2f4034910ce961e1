//! Options of a protocol in the body of a request.

use harness::llm::{LlmError, LlmErrorKind, ModelId, Request};
use serde_json::{Map, Value};

/// Adds the options of `protocol` to a body, in the way that [`Options`](harness::llm::Options) says:
/// objects are merged by field, lists are appended to, and everything else is replaced.
pub(crate) fn merge_options(
    body: &mut Map<String, Value>,
    request: &Request<'_>,
    protocol: &str,
    model: &ModelId,
    reserved: &[&str],
) -> Result<(), LlmError> {
    let own = request.options.map(|options| options.of(protocol)).transpose()?.flatten();
    for (name, value) in own.into_iter().flatten() {
        if reserved.contains(&name.as_str()) {
            return Err(LlmError::new(LlmErrorKind::InvalidRequest)
                .with_model(model.clone())
                .with_detail(format!("the option `{name}` belongs to the adapter")));
        }
        merge(body.entry(name.clone()).or_insert(Value::Null), value);
    }
    Ok(())
}

fn merge(into: &mut Value, value: &Value) {
    match (into, value) {
        (Value::Object(into), Value::Object(value)) => {
            for (name, value) in value {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(value)) => into.extend(value.iter().cloned()),
        (into, value) => *into = value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::llm::{Options, Transcript, user};
    use serde_json::json;

    #[test]
    fn options_are_merged() {
        let mut body = json!({"a": {"b": 1, "c": 2}, "d": ["x"], "e": 1});
        merge(&mut body, &json!({"a": {"b": 3}, "d": ["y"], "e": {"f": 1}, "g": null}));
        let expected = json!({"a": {"b": 3, "c": 2}, "d": ["x", "y"], "e": {"f": 1}, "g": null});
        assert_eq!(body, expected);
    }

    #[test]
    fn what_belongs_to_the_adapter_is_refused() {
        let talk = Transcript::from_iter([user("hi")]);
        let options = Options::new().with("p", json!({"model": "m-2"}));
        let request = Request::new(talk.sealed().unwrap()).options(&options);
        let (mut body, model) = (Map::new(), ModelId::new("p", "m"));
        let error = merge_options(&mut body, &request, "p", &model, &["model"]).unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::InvalidRequest);
        assert!(merge_options(&mut body, &request, "q", &model, &["model"]).is_ok());
        assert!(body.is_empty());
    }
}
