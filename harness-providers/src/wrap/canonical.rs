//! Requests as JSON that is the same for equal requests.

use harness::llm::{LlmError, LlmErrorKind, ModelId, Request};
use serde_json::{Value, json};

/// Everything of a request that a model sees, in one order.
pub(super) fn canonical(model: &ModelId, request: &Request<'_>) -> Result<Value, LlmError> {
    let bad = |error: serde_json::Error| {
        LlmError::new(LlmErrorKind::InvalidRequest)
            .with_model(model.clone())
            .with_detail("the request has no JSON form")
            .because(error)
    };
    let mut of_request = serde_json::to_value(request).map_err(bad)?;
    if let Value::Object(fields) = &mut of_request {
        // Marks save cost and change no reply.
        fields.remove("cache");
        // What is not set is left out, so that a later field changes no stored request.
        fields.retain(|_, value| !value.is_null() && *value != json!([]));
        let tools = fields.get_mut("tools").and_then(Value::as_array_mut);
        for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
            // Models do not see these.
            tool.remove("effect");
            tool.remove("timeout");
        }
    }
    let mut whole = json!({"model": model.to_string(), "request": of_request});
    // Objects keep the order of insertion if some crate of the program asks for that.
    whole.sort_all_objects();
    Ok(whole)
}

/// The digest of a canonical request.
pub(super) fn digest(canonical: &Value) -> [u8; 32] {
    hmac_sha256::Hash::hash(canonical.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::llm::{
        CacheMark, EffectClass, Effort, Options, Part, ToolChoice, ToolSet, Transcript, tool, user,
    };
    use std::collections::HashSet;

    fn key(model: &str, request: Request<'_>) -> [u8; 32] {
        digest(&canonical(&ModelId::new("p", model), &request).unwrap())
    }

    fn tools(description: &str, effect: EffectClass) -> ToolSet {
        let one = tool("t", description, |_: Value| async { Ok(()) }).effect(effect);
        ToolSet::builder().with(one).build().unwrap()
    }

    #[test]
    fn whatever_a_model_sees_changes_the_key() {
        let talk = Transcript::from_iter([user("hi")]);
        let other = Transcript::from_iter([user("ho")]);
        let plain = Request::new(talk.sealed().unwrap());
        let (one, two) = (tools("a", EffectClass::Read), tools("b", EffectClass::Read));
        let (schema, strict) = (json!({"type": "object"}), json!({"type": "string"}));
        let options = Options::new().with("a", json!({"top_k": 5}));
        let keys = [
            key("m", plain),
            key("n", plain),
            key("m", Request::new(other.sealed().unwrap())),
            key("m", plain.system("brief")),
            key("m", plain.tools(&one)),
            key("m", plain.tools(&two)),
            key("m", plain.tools(&one).tool_choice(ToolChoice::Tool("t"))),
            key("m", plain.tools(&one).tool_choice(ToolChoice::Required)),
            key("m", plain.max_tokens(5)),
            key("m", plain.temperature(0.5)),
            key("m", plain.schema("s", &schema)),
            key("m", plain.schema("s", &strict)),
            key("m", plain.schema("t", &schema)),
            key("m", plain.stop_sequences(&["END"])),
            key("m", plain.seed(u64::MAX)),
            key("m", plain.seed(u64::MAX - 1)),
            key("m", plain.effort(Effort::Low)),
            key("m", plain.options(&options)),
        ];
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    }

    #[test]
    fn what_a_model_does_not_see_changes_nothing() {
        let parts =
            |json: &str| -> Vec<Part> { vec![serde_json::from_str::<Value>(json).unwrap().into()] };
        let talk = Transcript::from_iter([user(parts(r#"{"a": 1, "b": 2}"#))]);
        let same = Transcript::from_iter([user(parts(r#"{"b": 2, "a": 1}"#))]);
        let plain = Request::new(talk.sealed().unwrap());
        assert_eq!(key("m", plain), key("m", Request::new(same.sealed().unwrap())));
        let marks = [CacheMark::System];
        assert_eq!(key("m", plain), key("m", plain.cache(&marks)));
        let (read, write) = (tools("a", EffectClass::Read), tools("a", EffectClass::Write));
        assert_eq!(key("m", plain.tools(&read)), key("m", plain.tools(&write)));
        assert_eq!(key("m", plain.stop_sequences(&[])), key("m", plain));
    }
}
