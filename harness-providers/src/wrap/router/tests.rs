use super::*;
use harness::llm::Transcript;
use harness::llm::{
    Document, Image, Message, Scripted, ToolCall, ToolOutcome, ToolSet, tool, user,
};
use serde_json::{Value, json};

fn model(name: &str, caps: Caps) -> Scripted {
    Scripted::from_fn(|_| "ok").with_id(ModelId::new("test", name)).with_caps(caps)
}

async fn replied(router: &Router, request: Request<'_>) -> Result<String, LlmError> {
    Ok(router.complete(request, &CallCx::detached()).await?.model.model().to_owned())
}

#[tokio::test]
async fn a_function_picks_by_the_request() {
    let router = Router::new(|request| request.system.unwrap_or("small").to_owned())
        .with("small", model("s", Caps::default().tools(true)))
        .with("large", model("l", Caps::default().tools(true).images(true)));
    let talk = Transcript::from_iter([user("hi")]);
    let request = Request::new(talk.sealed().unwrap());
    assert_eq!(replied(&router, request).await.unwrap(), "s");
    assert_eq!(replied(&router, request.system("large")).await.unwrap(), "l");
    let error = replied(&router, request.system("huge")).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::InvalidRequest);
    assert!(error.to_string().contains("no model `huge`, but `small`, `large`"), "{error}");
    assert_eq!(router.caps(), Caps::default().tools(true));
}

#[tokio::test]
async fn the_first_model_that_can_do_what_the_request_needs_is_picked() {
    let router = Router::by_caps()
        .with("plain", model("plain", Caps::default()))
        .with("tools", model("tools", Caps::default().tools(true).tool_choice(true)))
        .with("eyes", model("eyes", Caps::default().images(true).documents(true).tools(true)))
        .with("json", model("json", Caps::default().structured_output(true).reasoning(true)));
    let tools = ToolSet::builder().with(tool("t", "", |_: Value| async { Ok(()) })).build();
    let (tools, schema) = (tools.unwrap(), json!({}));
    let talk = Transcript::from_iter([user("hi")]);
    let plain = Request::new(talk.sealed().unwrap());
    assert_eq!(replied(&router, plain).await.unwrap(), "plain");
    assert_eq!(replied(&router, plain.effort(Effort::Off)).await.unwrap(), "plain");
    assert_eq!(replied(&router, plain.tools(&tools)).await.unwrap(), "tools");
    let forced = plain.tools(&tools).tool_choice(ToolChoice::Required);
    assert_eq!(replied(&router, forced).await.unwrap(), "tools");
    assert_eq!(replied(&router, plain.schema("s", &schema)).await.unwrap(), "json");
    assert_eq!(replied(&router, plain.effort(Effort::Low)).await.unwrap(), "json");

    let error = replied(&router, plain.tools(&tools).schema("s", &schema)).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::Unsupported);
    assert!(error.to_string().contains("`plain` lacks tools, structured_output"), "{error}");
    assert!(router.caps().images && router.caps().structured_output);
}

#[tokio::test]
async fn images_count_wherever_they_are() {
    let router = Router::by_caps()
        .with("blind", model("blind", Caps::default()))
        .with("eyes", model("eyes", Caps::default().images(true).documents(true)));
    let outcome = ToolOutcome::ok(Document::Url("https://e.org/a.pdf".into()));
    let talks = [
        Transcript::from_iter([user(Image::Url("https://e.org/a.png".into()))]),
        Transcript::from_iter([
            user("hi"),
            Message::Assistant(Turn::new([ToolCall::new("c", "t", "{}").into()])),
            Message::Outcome { call: "c".into(), outcome },
        ]),
    ];
    for talk in talks {
        let request = Request::new(talk.sealed().unwrap());
        assert_eq!(replied(&router, request).await.unwrap(), "eyes");
    }
}
