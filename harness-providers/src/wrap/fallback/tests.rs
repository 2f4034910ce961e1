use super::*;
use harness::llm::scripted::{fail, say};
use harness::llm::{LlmErrorKind, Scripted, StopReason, Tally, Transcript, Usage, user};
use std::time::Instant;

const BUSY: LlmErrorKind = LlmErrorKind::Overloaded;

fn named(name: &str, lines: Vec<harness::llm::scripted::Line>) -> Scripted {
    Scripted::new(lines).with_id(ModelId::new("test", name))
}

fn error(kind: LlmErrorKind) -> harness::llm::scripted::Line {
    fail(LlmError::new(kind)).usage(Usage::tokens(1, 0))
}

async fn ask(model: &impl Llm, cx: &CallCx) -> Result<Reply, LlmError> {
    let talk = Transcript::from_iter([user("hi")]);
    model.complete(Request::new(talk.sealed().unwrap()), cx).await
}

/// Emits a part and fails.
struct Breaks;

#[async_trait]
impl Llm for Breaks {
    fn id(&self) -> ModelId {
        ModelId::new("test", "breaks")
    }

    async fn complete(&self, _: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        cx.emit(&Delta::Text("half a".into()));
        cx.charge(&Usage::tokens(3, 1).into());
        Err(LlmError::new(LlmErrorKind::Stream))
    }
}

#[tokio::test]
async fn advice_decides_whether_the_next_model_is_asked() {
    let cases = [
        (BUSY, true),
        (LlmErrorKind::RateLimited { retry_after: None }, true),
        (LlmErrorKind::Unavailable, true),
        (LlmErrorKind::Stream, true),
        (LlmErrorKind::BadReply, true),
        (LlmErrorKind::Auth, true),
        (LlmErrorKind::UnknownModel, true),
        (LlmErrorKind::Unsupported, true),
        (LlmErrorKind::ContextLength, true),
        (LlmErrorKind::InvalidRequest, false),
        (LlmErrorKind::Budget, false),
    ];
    for (kind, asked) in cases {
        let second = named("b", vec![say("from b")]);
        let model = Fallback::new(named("a", vec![error(kind)])).or(second.clone());
        let reply = ask(&model, &CallCx::detached()).await;
        assert_eq!(reply.is_ok(), asked, "{kind:?}");
        assert_eq!(second.seen().len(), usize::from(asked), "{kind:?}");
        match reply {
            Ok(reply) => assert_eq!(reply.model, ModelId::new("test", "b")),
            Err(error) => assert_eq!(error.kind(), kind),
        }
    }
}

#[tokio::test]
async fn every_exchange_is_charged() {
    let tally = Arc::new(Tally::default());
    let second = named("b", vec![say("b").usage(Usage::tokens(10, 2))]);
    let model = Fallback::new(named("a", vec![error(BUSY)])).or(second);
    ask(&model, &CallCx::detached().with_meter(tally.clone())).await.unwrap();
    assert_eq!((tally.exchanges(), tally.spend().usage.total()), (2, Some(13)));
}

#[tokio::test]
async fn a_listener_discards_the_parts_of_the_reply_that_failed() {
    let model = Fallback::new(named("a", vec![error(BUSY)]))
        .or(Breaks)
        .or(named("c", vec![say("a whole")]));
    let talk = Transcript::from_iter([user("hi")]);
    let mut stream = model.stream(Request::new(talk.sealed().unwrap()), &CallCx::detached());
    let mut heard = Vec::new();
    while let Some(delta) = stream.next().await {
        match delta.unwrap() {
            Delta::Text(text) => heard.push(text),
            Delta::Restart => heard.push("restart".into()),
            Delta::Stop(reason) => assert_eq!(reason, StopReason::End),
            _ => {}
        }
    }
    assert_eq!(heard, ["half a", "restart", "a ", "whole"]);
    assert_eq!(stream.reply().await.unwrap().text().as_deref(), Some("a whole"));
}

#[tokio::test]
async fn the_error_that_a_retry_may_mend_first_is_returned() {
    let limited =
        |seconds| LlmErrorKind::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
    let kinds = |kinds: Vec<LlmErrorKind>| {
        let mut models = kinds.into_iter().map(|kind| named("m", vec![error(kind)]));
        let first = Fallback::new(models.next().unwrap());
        models.fold(first, Fallback::or)
    };
    let of = async |models| ask(&kinds(models), &CallCx::detached()).await.unwrap_err().kind();
    assert_eq!(of(vec![LlmErrorKind::Auth, limited(9), limited(3)]).await, limited(3));
    assert_eq!(of(vec![limited(9), LlmErrorKind::InvalidRequest]).await, limited(9));
    assert_eq!(of(vec![LlmErrorKind::Auth, LlmErrorKind::UnknownModel]).await, LlmErrorKind::Auth);
}

#[tokio::test]
async fn after_the_deadline_no_model_is_asked() {
    let second = named("b", vec![say("late")]);
    let model = Fallback::new(named("a", vec![error(BUSY)])).or(second.clone());
    let cx = CallCx::detached().with_deadline(Instant::now());
    assert_eq!(ask(&model, &cx).await.unwrap_err().kind(), BUSY);
    assert!(second.seen().is_empty());
}

#[test]
fn it_can_do_what_all_can_do() {
    let of = |caps| named("m", vec![]).with_caps(caps);
    let all = Caps::default().tools(true).images(true).context_tokens(9);
    let model = Fallback::new(of(all)).or(of(Caps::default().tools(true).context_tokens(5)));
    assert_eq!(model.caps(), Caps::default().tools(true).context_tokens(5));
    assert_eq!(model.id(), ModelId::new("test", "m"));
}
