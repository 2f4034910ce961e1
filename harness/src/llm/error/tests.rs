use super::*;
use LlmErrorKind as Kind;

const KINDS: [LlmErrorKind; 16] = [
    Kind::RateLimited { retry_after: None },
    Kind::RateLimited { retry_after: Some(Duration::from_millis(2500)) },
    Kind::Overloaded,
    Kind::ContextLength,
    Kind::Timeout { phase: TimeoutPhase::Connect },
    Kind::Timeout { phase: TimeoutPhase::Headers },
    Kind::Timeout { phase: TimeoutPhase::Read },
    Kind::Timeout { phase: TimeoutPhase::Total },
    Kind::Auth,
    Kind::InvalidRequest,
    Kind::UnknownModel,
    Kind::Unsupported,
    Kind::BadReply,
    Kind::Stream,
    Kind::Budget,
    Kind::Unavailable,
];

#[test]
fn every_kind_has_its_text_and_advice() {
    let lines = KINDS.map(|kind| {
        let error = LlmError::new(kind);
        let retry = if error.is_retryable() { "retry" } else { "no" };
        format!("{} | {error} | {retry}", kind.name())
    });
    insta::assert_snapshot!(lines.join("\n"), @"
rate_limited | the model is rate limited (try again later) | retry
rate_limited | the model is rate limited (try again after 2.5s) | retry
overloaded | the model is overloaded (try again later or use another model) | retry
context_length | the model cannot read a request this long (shorten the transcript or use a model that reads more) | no
timeout | the model could not be connected to in time (try again or allow more time) | retry
timeout | the model did not begin to reply in time (try again or allow more time) | retry
timeout | the model paused its reply for too long (try again or allow more time) | retry
timeout | the model did not finish its reply in time (try again or allow more time) | retry
auth | the model did not accept the credentials (check the key and what it may use) | no
invalid_request | the model did not accept the request (change the request) | no
unknown_model | the model does not exist or is not available with this key (check its name) | no
unsupported | the model does not support the request (remove the unsupported part or use another model) | no
bad_reply | the model sent a reply that does not follow its protocol (try again or use another model) | retry
stream | the model ended its reply early (try again) | retry
budget | the model was not called because the budget is used up (raise the budget) | no
unavailable | the model cannot be reached (try again later or use another model) | retry
");
}

#[test]
fn message_has_model_detail_and_remedy() {
    let error = LlmError::new(Kind::Unsupported)
        .with_model(ModelId::new("ollama", "llama3"))
        .with_detail("pictures by\naddress")
        .with_remedy("send them inline");
    insta::assert_snapshot!(error, @"model `ollama/llama3` does not support the request: pictures by address (send them inline)");
}

#[test]
fn long_details_are_truncated() {
    let error = LlmError::new(Kind::InvalidRequest).with_detail("é".repeat(5_000));
    let text = error.to_string();
    assert_eq!(text.matches('é').count(), DETAIL);
    assert!(text.contains("é… ("));
}

#[test]
fn the_source_is_the_advice_and_its_source_the_cause() {
    let error = LlmError::new(Kind::Unavailable).because("connection refused");
    let advice = error.source().unwrap().downcast_ref::<Advice>().unwrap();
    assert!(advice.retryable);
    assert_eq!(advice.source().unwrap().to_string(), "connection refused");
}

#[test]
fn advice_can_be_replaced() {
    let error = LlmError::new(Kind::Unavailable).with_advice(Advice::give_up());
    assert!(!error.is_retryable());
    assert!(!Advice::find(&error).unwrap().retryable);
}

#[test]
fn a_result_stays_small() {
    assert_eq!(size_of::<LlmError>(), size_of::<usize>());
}
