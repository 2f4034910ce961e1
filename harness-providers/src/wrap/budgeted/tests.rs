use super::*;
use crate::wrap::Fallback;
use harness::llm::scripted::{Line, fail, say};
use harness::llm::{Scripted, StopReason, Tally, Transcript, Usage, user};

fn line(input: u64, micros: Option<u64>) -> Line {
    let line = say("ok").usage(Usage::tokens(input, 1));
    match micros {
        Some(micros) => line.cost_micros(micros),
        None => line,
    }
}

async fn ask(model: &impl Llm, cx: &CallCx) -> Result<Reply, LlmError> {
    let talk = Transcript::from_iter([user("hi")]);
    model.complete(Request::new(talk.sealed().unwrap()), cx).await
}

#[tokio::test]
async fn tokens_are_counted_over_all_calls_and_failures() {
    let broken = fail(LlmError::new(LlmErrorKind::Stream)).usage(Usage::tokens(4, 0));
    let inner = Scripted::new([line(4, None), broken, line(9, None)]);
    let model = Budgeted::new(inner.clone()).tokens(10);
    let tally = Arc::new(Tally::default());
    let cx = CallCx::detached().with_meter(tally.clone());
    ask(&model, &cx).await.unwrap();
    ask(&model, &cx).await.unwrap_err();
    ask(&model, &cx).await.unwrap();
    let error = ask(&model, &cx).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (LlmErrorKind::Budget, false));
    assert!(error.to_string().contains("19 of 10 tokens"), "{error}");
    assert_eq!(inner.seen().len(), 3);
    assert_eq!(model.spent().usage.total(), Some(19));
    assert_eq!((tally.exchanges(), tally.spend().usage.total()), (3, Some(19)));
}

#[tokio::test]
async fn cost_has_a_limit_and_an_unknown_cost_counts_as_one() {
    let inner = Scripted::new([line(1, Some(3)), line(1, Some(3)), line(1, Some(3))]);
    let model = Budgeted::new(inner).cost_micros(5);
    ask(&model, &CallCx::detached()).await.unwrap();
    ask(&model, &CallCx::detached()).await.unwrap();
    let error = ask(&model, &CallCx::detached()).await.unwrap_err();
    assert!(error.to_string().contains("6 of 5 millionths"), "{error}");

    let model = Budgeted::new(Scripted::new([line(1, None), line(1, None)])).cost_micros(5);
    ask(&model, &CallCx::detached()).await.unwrap();
    let error = ask(&model, &CallCx::detached()).await.unwrap_err();
    assert!(error.is_budget() && error.to_string().contains("set the prices"), "{error}");
}

/// Leaves charging to its caller.
struct Uncharged;

#[async_trait]
impl Llm for Uncharged {
    fn id(&self) -> ModelId {
        ModelId::new("test", "uncharged")
    }

    async fn complete(&self, _: Request<'_>, _: &CallCx) -> Result<Reply, LlmError> {
        Ok(Reply::new("ok", StopReason::End, self.id()).with_usage(Usage::tokens(6, 0)))
    }
}

#[tokio::test]
async fn usage_of_a_reply_that_was_not_charged_counts() {
    let model = Budgeted::new(Uncharged).tokens(6);
    let tally = Arc::new(Tally::default());
    ask(&model, &CallCx::detached().with_meter(tally.clone())).await.unwrap();
    assert!(ask(&model, &CallCx::detached()).await.unwrap_err().is_budget());
    // The caller charges it, as it does for every model.
    assert_eq!(tally.exchanges(), 0);
}

#[tokio::test]
async fn another_model_takes_the_place_of_one_whose_budget_is_used_up() {
    let large = Budgeted::new(Scripted::new([line(9, None)])).tokens(5);
    let model = Fallback::new(large).or(Scripted::new(["small"]));
    assert_eq!(ask(&model, &CallCx::detached()).await.unwrap().text().as_deref(), Some("ok"));
    assert_eq!(ask(&model, &CallCx::detached()).await.unwrap().text().as_deref(), Some("small"));
}
