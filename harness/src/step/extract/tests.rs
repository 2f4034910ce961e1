use super::*;
use crate::llm::scripted::{Line, call, say, say_json};
use crate::llm::{CallCx, Llm, LlmErrorKind, Scripted};
use futures_util::FutureExt;
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Mood {
    name: String,
    level: u8,
}

fn mood(level: u8) -> Value {
    json!({"name": "calm", "level": level})
}

impl Ask for Scripted {
    type Error = LlmError;

    fn ask<'a>(&'a self, request: Request<'a>, _: u32) -> BoxFuture<'a, Result<Reply, LlmError>> {
        async move { self.complete(request, &CallCx::detached()).await }.boxed()
    }

    fn is_unsupported(error: &LlmError) -> bool {
        error.kind() == LlmErrorKind::Unsupported
    }
}

async fn extracted<T: DeserializeOwned + JsonSchema>(model: &Scripted) -> Result<T, ExtractError> {
    let talk = Transcript::from_iter([user("how am I?")]);
    let request = Request::new(talk.sealed().unwrap()).system("be kind");
    extract(model, model.caps(), request).await.map_err(|failed| match failed {
        Failed::Asking(error) => error.into(),
        Failed::Reading(error) => error,
    })
}

fn native(model: Scripted) -> Scripted {
    model.with_caps(Caps::default().structured_output(true))
}

fn text(model: Scripted) -> Scripted {
    model.with_caps(Caps::default())
}

#[tokio::test]
async fn a_model_with_structured_output_gets_the_schema() {
    let model = native(Scripted::new([say_json(&mood(3))]));
    assert_eq!(extracted::<Mood>(&model).await.unwrap().level, 3);
    let seen = &model.seen()[0];
    assert_eq!(seen.schema.as_ref().unwrap()["required"], json!(["name", "level"]));
    assert_eq!((seen.system.as_deref(), &seen.tools[..]), (Some("be kind"), &[][..]));
}

#[tokio::test]
async fn a_model_with_tools_must_call_one() {
    let model = Scripted::new([call("answer", mood(3))]);
    assert_eq!(extracted::<Mood>(&model).await.unwrap().level, 3);
    let seen = &model.seen()[0];
    assert_eq!(seen.tool_choice, ToolChoice::Tool("answer".into()));
    assert_eq!(seen.tools[0].input_schema["type"], "object");
    assert!(seen.schema.is_none());
}

#[tokio::test]
async fn another_model_is_instructed_and_may_add_words() {
    let reply = format!("Sure:\n```json\n{}\n```", mood(3));
    let model = text(Scripted::new([say(reply)]));
    assert_eq!(extracted::<Mood>(&model).await.unwrap().level, 3);
    let system = model.seen()[0].system.clone().unwrap();
    assert!(system.starts_with("be kind\n\n") && system.contains("\"level\""), "{system}");
}

fn unsupported() -> LlmError {
    LlmError::new(LlmErrorKind::Unsupported)
}

#[tokio::test]
async fn a_schema_that_one_way_cannot_express_goes_the_next() {
    let all = Caps::default().structured_output(true).tools(true).tool_choice(true);
    let ways = |model: &Scripted| {
        let ways = |seen: &crate::llm::scripted::Seen| match seen {
            seen if seen.schema.is_some() => "native",
            seen if !seen.tools.is_empty() => "tool",
            _ => "text",
        };
        model.seen().iter().map(ways).collect::<Vec<_>>()
    };
    let model = Scripted::new([Line::from(unsupported()), call("answer", mood(3))]).with_caps(all);
    assert_eq!(extracted::<Mood>(&model).await.unwrap().level, 3);
    assert_eq!(ways(&model), ["native", "tool"]);
    // The second request goes the way that has worked.
    let bad = json!({"name": "calm", "level": 300});
    let refused = || Line::from(unsupported());
    let script = [refused(), refused(), say_json(&bad), say_json(&mood(3))];
    let model = Scripted::new(script).with_caps(all);
    assert_eq!(extracted::<Mood>(&model).await.unwrap().level, 3);
    assert_eq!(ways(&model), ["native", "tool", "text", "text"]);
    // Without tools the instructions are next, and after them there is nothing.
    let model = native(Scripted::new([unsupported(), unsupported()]));
    let error = extracted::<Mood>(&model).await.unwrap_err();
    assert!(matches!(&error, ExtractError::Llm(llm) if llm.kind() == LlmErrorKind::Unsupported));
    assert_eq!(ways(&model), ["native", "text"]);
}

#[tokio::test]
async fn a_reply_that_does_not_match_is_sent_back_once() {
    let bad = json!({"name": "calm", "level": 300});
    let models = [
        native(Scripted::new([say_json(&bad), say_json(&mood(3))])),
        Scripted::new([call("answer", bad.clone()), call("answer", mood(3))]),
        text(Scripted::new([say("no idea"), say_json(&mood(3))])),
    ];
    for model in models {
        assert_eq!(extracted::<Mood>(&model).await.unwrap().level, 3);
        let seen = model.seen();
        assert_eq!(seen.len(), 2);
        let again = serde_json::to_string(&seen[1].transcript).unwrap();
        assert!(again.contains("does not match the schema"), "{again}");
        assert!(seen[1].transcript.sealed().is_ok());
    }
}

#[tokio::test]
async fn a_second_mismatch_is_a_typed_error() {
    let bad = || say_json(&json!({"name": "calm", "level": 300}));
    let model = native(Scripted::new([bad(), bad(), say_json(&mood(3))]));
    let error = extracted::<Mood>(&model).await.unwrap_err();
    assert!(Advice::find(&error).unwrap().retryable);
    insta::assert_snapshot!(
        error,
        @"two replies of the model do not match the type asked for: at `level`: expected at most 255, found 300 (simplify the type or use another model)"
    );
    assert_eq!(model.seen().len(), 2, "it is asked no third time");
}

#[tokio::test]
async fn a_refusal_is_not_asked_again() {
    let model = native(Scripted::new([say("I cannot").stop(StopReason::Refusal)]));
    let error = extracted::<Mood>(&model).await.unwrap_err();
    assert!(matches!(error, ExtractError::Refused { .. }));
    assert!(!Advice::find(&error).unwrap().retryable);
    assert_eq!(model.seen().len(), 1);
}

#[tokio::test]
async fn an_error_of_the_model_passes_through() {
    let model = Scripted::new([LlmError::new(LlmErrorKind::Overloaded)]);
    let error = extracted::<Mood>(&model).await.unwrap_err();
    assert!(matches!(&error, ExtractError::Llm(llm) if llm.kind() == LlmErrorKind::Overloaded));
    assert!(Advice::find(&error).unwrap().retryable);
}

#[tokio::test]
async fn a_type_that_is_no_object_is_a_field_of_one() {
    let model = native(Scripted::new([say_json(&json!({"value": [1, 2]}))]));
    assert_eq!(extracted::<Vec<u8>>(&model).await.unwrap(), [1, 2]);

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Tree {
        children: Vec<Tree>,
    }
    let model = native(Scripted::new([say_json(&json!({"children": [{"children": []}]}))]));
    assert_eq!(extracted::<Tree>(&model).await.unwrap().children.len(), 1);
    let bad = json!({"value": [{"children": 1}]});
    let model = native(Scripted::new([say_json(&bad), say_json(&bad)]));
    let error = extracted::<Vec<Tree>>(&model).await.unwrap_err();
    assert!(matches!(error, ExtractError::Mismatch { .. }));
}

#[tokio::test]
async fn a_reply_that_was_cut_says_so() {
    let cut = || say("{\"name\": \"ca").stop(StopReason::MaxTokens);
    let model = native(Scripted::new([cut(), cut()]));
    let error = extracted::<Mood>(&model).await.unwrap_err();
    assert!(error.to_string().contains("reached its token limit"), "{error}");
}
